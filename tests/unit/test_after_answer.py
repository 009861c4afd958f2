import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from functions.runtime.after_answer import RUNTIME_API, AfterAnswer
from tickwheel.demo.loopback_server import KeptAliveRequest, LoopbackServer

SOON = 10


class Lambda:
    """What Lambda offers to the extensions of a process: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-extensions-api.html."""

    def __init__(self, *, status: int = 200) -> None:
        self.registered: list[tuple[str, list[str]]] = []
        self.reports: queue.Queue[str] = queue.Queue()
        self.invocations: queue.Queue[int] = queue.Queue()
        outer = self

        class Extensions(KeptAliveRequest):
            def do_POST(self) -> None:
                body = json.loads(self.read_body())
                outer.registered.append((self.headers["Lambda-Extension-Name"], body["events"]))
                self._answer(status, {"Lambda-Extension-Identifier": "an-identifier"})

            def do_GET(self) -> None:
                outer.reports.put(self.headers["Lambda-Extension-Identifier"])
                self._answer(outer.invocations.get(), {})

            def _answer(self, status: int, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in {**headers, "Content-Length": "2"}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"{}")

        self.server = LoopbackServer(Extensions, poll_seconds=0.05)

    def invoke(self, *, status: int = 200) -> None:
        self.invocations.put(status)

    def wait_for_report(self) -> str:
        return self.reports.get(timeout=SOON)


@pytest.fixture
def a_lambda(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Lambda]]:
    with ExitStack() as servers:

        def make(**options: int) -> Lambda:
            made = Lambda(**options)
            server = servers.enter_context(made.server)
            monkeypatch.setenv(RUNTIME_API, server.url.removeprefix("http://"))
            return made

        yield make


def test_outside_of_lambda_the_work_is_done_before_the_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(RUNTIME_API, raising=False)
    done: list[str] = []

    AfterAnswer(lambda: done.append("counted")).answered()

    assert done == ["counted"]


def test_in_lambda_nobody_waits_for_the_work_and_lambda_hears_when_it_is_done(a_lambda: Callable[..., Lambda]):
    service, may_end, begun = a_lambda(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(SOON)

    after = AfterAnswer(work)
    assert service.wait_for_report() == "an-identifier"
    service.invoke()
    after.answered()

    assert begun.wait(SOON)
    assert service.reports.empty()
    may_end.set()
    assert service.wait_for_report() == "an-identifier"
    assert service.registered == [("after-answer", ["INVOKE"])]


def test_the_work_waits_for_the_answer(a_lambda: Callable[..., Lambda]):
    service, answered, seen = a_lambda(), threading.Event(), queue.Queue[bool]()
    after = AfterAnswer(lambda: seen.put(answered.is_set()))
    service.wait_for_report()
    service.invoke()

    answered.set()
    after.answered()

    assert seen.get(timeout=SOON)


def test_work_that_fails_does_not_hold_up_the_next_invocation(a_lambda: Callable[..., Lambda]):
    service, tries = a_lambda(), queue.Queue[int]()

    def work() -> None:
        tries.put(1)
        raise ValueError

    after = AfterAnswer(work)
    for _ in range(2):
        service.wait_for_report()
        service.invoke()
        after.answered()
        tries.get(timeout=SOON)

    assert service.wait_for_report()


def test_a_lambda_that_takes_no_extensions_gets_the_work_before_the_answer(a_lambda: Callable[..., Lambda]):
    a_lambda(status=403)
    done: list[str] = []

    AfterAnswer(lambda: done.append("counted")).answered()

    assert done == ["counted"]


def test_a_process_that_cannot_report_any_more_ends_and_does_not_hang(a_lambda: Callable[..., Lambda]):
    service = a_lambda()
    service.invoke(status=500)
    program = f"import time; from {AfterAnswer.__module__} import AfterAnswer; AfterAnswer(print); time.sleep(60)"

    ended = subprocess.run([sys.executable, "-c", program], env=dict(os.environ), timeout=60, check=False)

    assert ended.returncode == 1
