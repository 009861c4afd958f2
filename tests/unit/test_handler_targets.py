import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

from functions.adapters.targets.handlers import Handler
from functions.ports.targets import Failed, Invocation, Pending, Succeeded
from functions.worker.handlers import HANDLERS
from functions.worker.handlers.registry import handler
from tests.unit.calling import INVOCATION, NO_ANSWER, SHORT, a_caller, call, failure_of


def test_a_handler_gets_the_payload_and_what_it_is_given_and_its_value_is_the_result():
    seen: list[tuple[Any, Invocation]] = []

    def remember(payload: Any, invocation: Invocation) -> Any:
        seen.append((payload, invocation))
        return {"done": [1, None]}

    assert call("handler:x", '{"n":1}', handlers={"x": remember}) == Succeeded('{"done": [1, null]}')
    assert seen == [({"n": 1}, INVOCATION)]


def test_a_handler_of_a_job_without_a_payload_gets_none():
    assert call("handler:x", None, handlers={"x": lambda payload, _: payload is None}) == Succeeded("true")


def test_a_handler_that_raises_has_failed_with_what_it_raised():
    def fail(_: Any, __: Invocation) -> Any:
        raise LookupError("no such invoice")

    assert call("handler:x", handlers={"x": fail}) == Failed(
        "LookupError: no such invoice", error_class="handler_error"
    )


def test_a_handler_that_returns_a_202_goes_on_by_itself():
    assert call("handler:x", handlers={"x": lambda *_: {"statusCode": 202, "body": "later"}}) == Pending()


@pytest.mark.parametrize("value", [{"statusCode": 200}, {"statusCode": "202"}, [202], 202])
def test_a_handler_that_returns_anything_else_has_succeeded(value: Any):
    assert isinstance(call("handler:x", handlers={"x": lambda *_: value}), Succeeded)


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), [float("inf")]])
def test_a_handler_whose_value_is_no_json_has_failed(value: Any):
    outcome = failure_of(call("handler:x", handlers={"x": lambda *_: value}))

    assert (outcome.error_class, outcome.is_permanent) == ("handler_error", False)


def test_a_handler_that_overruns_its_timeout_has_failed():
    release = threading.Event()

    outcome = call("handler:x", handlers={"x": lambda *_: release.wait(60)}, timeout=SHORT)
    release.set()

    assert outcome == NO_ANSWER


def test_calls_one_after_the_other_share_a_thread_and_nothing_else():
    seen: ContextVar[int] = ContextVar("seen", default=0)
    threads: list[threading.Thread] = []

    def look(payload: Any, _: Any) -> int:
        threads.append(threading.current_thread())
        before = seen.get()
        seen.set(payload)
        return before

    caller = a_caller({"look": look})
    for _ in range(50):
        assert call("handler:look", "7", caller=caller) == Succeeded("0", "0")

    assert len(set(threads)) < 50


def test_a_call_that_overruns_has_its_thread_for_itself():
    release, threads = threading.Event(), list[threading.Thread]()

    def wait(payload: Any, _: Any) -> None:
        threads.append(threading.current_thread())
        if payload:
            release.wait(60)

    caller = a_caller({"wait": wait})
    call("handler:wait", "true", caller=caller, timeout=SHORT)
    for _ in range(20):
        call("handler:wait", "false", caller=caller)
    release.set()

    assert threads[0] not in threads[1:]


@pytest.mark.parametrize(
    "leave", [lambda: sys.exit(3), lambda: _raise(KeyboardInterrupt()), lambda: _raise(BaseError())]
)
def test_a_handler_that_wants_to_end_its_process_has_failed_for_itself(leave: Callable[[], Any]):
    caller = a_caller({"x": lambda *_: leave(), "y": lambda *_: 1})

    outcome = failure_of(call("handler:x", caller=caller))

    assert (outcome.error_class, outcome.is_permanent) == ("handler_error", False)
    assert call("handler:y", caller=caller) == Succeeded("1")


def test_a_handler_that_exits_is_reported_by_its_code():
    assert failure_of(call("handler:x", handlers={"x": lambda *_: sys.exit(3)})).error == "SystemExit: 3"


def test_an_unknown_handler_is_a_failure_of_its_job_that_no_attempt_can_help():
    handlers: dict[str, Handler] = {"b": lambda *_: None, "a": lambda *_: None}

    assert call("handler:x", handlers=handlers) == Failed(
        "there is no handler 'x'; registered are: a, b",
        error_class="handler_missing",
        is_permanent=True,
        is_its_own=True,
    )
    assert "registered are: none" in failure_of(call("handler:x")).error


def test_every_installation_has_an_echo():
    assert call("handler:echo", '{"n":1}', handlers=HANDLERS) == Succeeded('{"payload": {"n": 1}, "attempt": 2}')


def test_every_installation_has_a_trial_that_takes_its_time_and_fails_as_it_is_asked_to(
    monkeypatch: pytest.MonkeyPatch,
):
    slept: list[float] = []
    monkeypatch.setattr("functions.worker.handlers.echo.time.sleep", slept.append)

    early = failure_of(call("handler:trial", '{"succeeds_at": 3}', handlers=HANDLERS))
    at_last = call("handler:trial", '{"succeeds_at": 2, "seconds": 9}', handlers=HANDLERS)
    call("handler:trial", '{"seconds": 86400}', handlers=HANDLERS)

    assert early.error == "RuntimeError: attempt 2 fails, as it was asked to"
    assert at_last == Succeeded('{"payload": {"succeeds_at": 2, "seconds": 9}, "attempt": 2}')
    assert slept == [0, 9, 10]


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="two handlers called 'echo'"):
        handler("echo")(lambda *_: None)


class BaseError(BaseException):
    """What no `except Exception` catches."""


def _raise(error: BaseException) -> Any:
    raise error
