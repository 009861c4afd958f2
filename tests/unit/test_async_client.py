"""The client on an event loop: what only it has. What it shares with the other one, the tests of that one hold of both."""

import asyncio
import inspect
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from datetime import timedelta
from typing import Any, get_origin, get_type_hints

import pytest
from botocore.credentials import Credentials

from scripts.sync_client import written
from testkit.in_memory import Scheduler
from tests.api_server import Answer, ApiServer, Request, accept_all
from tests.pages import read_page
from tickwheel.client import AsyncClient, Backoff, Client, NewSchedule, Timeouts
from tickwheel.errors import ApiProblem, InvalidRequest, Unreachable

JOB = Answer(200, {"id": "x", "tenant": "acme", "state": "running", "due_at": "2030-01-31T09:00:00Z"})
BUSY = Answer(429, {"code": "throttled", "title": "Too many requests"}, (("Retry-After", "30"),))


def a_client(server: ApiServer, **options: Any) -> AsyncClient:
    options = {"credentials": Credentials("key", "secret"), **options}
    return AsyncClient(server.url, region="us-east-1", **options)


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(coroutine, timeout=30))


def parts_of(kind: type[Any]) -> Iterator[tuple[str, type[Any]]]:
    """A client and the groups of its calls, by name."""
    yield "", kind
    for name in ("schedules", "dead_letters", "operations", "tenants"):
        if kind is Client:
            client: Any = Client("https://a.example", region="us-east-1", credentials=Credentials("k", "s"))
        else:
            client = AsyncClient("https://a.example", region="us-east-1", credentials=Credentials("k", "s"))
        yield name, type(getattr(client, name))


def test_the_client_is_written_from_its_asynchronous_source() -> None:
    stale = {file.name for file, text in written().items() if file.read_text(encoding="utf-8") != text}

    assert stale == set(), "run `make format`, after a change of tickwheel/client/async_api.py or async_calls"


def test_each_call_is_there_twice_with_the_same_arguments() -> None:
    for (name, kind), (_, asynchronous) in zip(parts_of(Client), parts_of(AsyncClient), strict=True):
        calls = {call for call in vars_of(kind) if not call.startswith("_")}
        assert calls - {"close"} == {call for call in vars_of(asynchronous) if not call.startswith("_")} - {"aclose"}
        for call in calls - {"close", "endpoint"}:
            own, other = getattr(kind, call), getattr(asynchronous, call)
            assert list(inspect.signature(own).parameters) == list(inspect.signature(other).parameters), (name, call)
            returned = get_origin(get_type_hints(other)["return"])
            assert inspect.iscoroutinefunction(other) or returned is AsyncIterator, (name, call)


def test_the_page_names_every_call() -> None:
    rows = {
        row.split("|")[1].strip(" `"): row for row in read_page("python-client.md").splitlines() if "| `client" in row
    }

    for name, kind in parts_of(Client):
        calls = {call for call in vars_of(kind) if not call.startswith("_")} - {"close", "endpoint"}
        named = set(re.findall(r"`(\w+)`", rows[f"client.{name}".rstrip(".")].split("|")[2]))
        assert calls == named, name


def vars_of(kind: type[Any]) -> set[str]:
    return {name for each in kind.__mro__[:-1] for name in vars(each)}


def test_no_call_answers_with_what_has_no_type() -> None:
    untyped = {
        call
        for _, kind in parts_of(Client)
        for call in vars_of(kind)
        if not call.startswith("_") and callable(getattr(kind, call))
        if (get_origin(hint := get_type_hints(getattr(kind, call)).get("return")) or hint) in (Any, dict)
    }

    assert untyped == {"payload"}  # which is whatever was submitted


def test_jobs_are_submitted_side_by_side() -> None:
    together = threading.Barrier(3)

    def take(request: Request) -> Answer:
        together.wait(timeout=20)
        return accept_all(request)

    async def submit(server: ApiServer) -> None:
        async with a_client(server) as client:
            await asyncio.gather(*(client.submit("handler:echo", tenant="acme") for _ in range(3)))

    with ApiServer(otherwise=take) as server:
        run(submit(server))

    assert len(server.requests) == 3


def test_a_wait_leaves_the_event_loop_to_others_and_ends_when_it_is_cancelled() -> None:
    waits: list[float] = []

    async def give_up(server: ApiServer) -> None:
        async with a_client(server, on_wait=lambda wait: waits.append(wait.seconds)) as client:
            began = time.monotonic()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.submit("handler:echo", tenant="acme"), timeout=0.5)
            assert time.monotonic() - began < 10
            server.answer_with(JOB)
            assert (await client.get("x")).id == "x"

    with ApiServer(BUSY) as server:
        run(give_up(server))

    assert len(waits) == 1
    assert len(server.requests) == 2


def test_a_request_that_is_cancelled_on_its_way_leaves_the_client_usable() -> None:
    let_go = threading.Event()

    def linger(request: Request) -> Answer:
        let_go.wait(20)
        return JOB

    async def give_up(server: ApiServer) -> None:
        async with a_client(server) as client:
            asking = asyncio.create_task(client.get("x"))
            while not server.requests:  # noqa: ASYNC110  # its thread has no event of this loop
                await asyncio.sleep(0.01)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            let_go.set()
            assert (await client.get("x")).state == "running"

    with ApiServer(otherwise=linger) as server:
        run(give_up(server))


def test_credentials_that_may_have_to_be_fetched_are_read_in_a_thread() -> None:
    class Fetched(Credentials):
        read_in: threading.Thread | None = None

        def get_frozen_credentials(self):
            self.read_in = threading.current_thread()
            return super().get_frozen_credentials()

    credentials = Fetched("key", "secret")

    async def ask(server: ApiServer) -> None:
        async with a_client(server, credentials=credentials) as client:
            await client.get("x")

    with ApiServer(JOB) as server:
        run(ask(server))

    assert credentials.read_in not in (None, threading.main_thread())
    assert "Credential=key/" in server.requests[0].headers["authorization"]


def test_a_list_is_read_page_by_page_as_it_is_gone_through() -> None:
    def page(request: Request) -> Answer:
        after = "next" if "after=" not in request.path else None
        return Answer(
            200, {"flows": [{"tenant": None, "key": "k", "rate": None, "burst": None, "concurrency": 1}], "next": after}
        )

    async def look(server: ApiServer) -> None:
        async with a_client(server) as client:
            async for flow in client.flows():
                assert flow.key == "k"
                assert len(server.requests) == 1
                break
            assert [flow.concurrency async for flow in client.flows()] == [1, 1]

    with ApiServer(otherwise=page) as server:
        run(look(server))


def test_a_total_bounds_a_call_with_its_waits() -> None:
    async def ask(server: ApiServer) -> None:
        async with a_client(server, timeout=Timeouts(total=timedelta(seconds=20))) as client:
            await client.get("x")

    with ApiServer(BUSY) as server, pytest.raises(ApiProblem, match="Too many"):
        run(ask(server))

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "timeout", [timedelta(seconds=0.2), Timeouts(read=timedelta(seconds=0.2)), Timeouts(total=timedelta(seconds=0.2))]
)
def test_a_silence_ends_an_attempt(timeout: timedelta | Timeouts) -> None:
    let_go = threading.Event()

    def linger(request: Request) -> Answer:
        let_go.wait(20)
        return JOB

    with ApiServer(otherwise=linger) as server:
        client = Client(server.url, region="us-east-1", timeout=timeout, backoff=Backoff(attempts=1))
        with client, pytest.raises(Unreachable) as unreachable:
            client.get("x")
        let_go.set()

    assert unreachable.value.may_have_been_applied


def test_a_timeout_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"timeout\.read: is a timedelta \(got 30\)"):
        Timeouts(read=30)  # type: ignore[arg-type]


def test_the_scheduler_in_memory_has_an_asynchronous_client() -> None:
    nightly = NewSchedule("nightly", tenant="acme", cron="0 3 * * *", target="https://shop.example/nightly")

    async def order(scheduler: Scheduler) -> str:
        async with scheduler.async_client() as client:
            await client.schedules.put(nightly)
            assert [each.id async for each in client.schedules.list(tenant="acme")] == ["nightly"]
            job = await client.submit("https://shop.example/remind", tenant="acme", delay=timedelta(days=3))
            with pytest.raises(ApiProblem, match="404"):
                await client.get("j1~acme~nothing")
            return job.id

    with Scheduler() as scheduler:
        job_id = asyncio.run(order(scheduler))
        scheduler.advance(days=3, minutes=1)

        assert scheduler.client.get(job_id).state == "succeeded"
        assert len(scheduler.calls_of("https://shop.example/nightly")) == 3


def test_a_value_of_the_client_is_had_without_a_library_of_http() -> None:
    code = "import sys; from tickwheel.client import NewJob, Timeouts; print({'httpx', 'botocore', 'anyio'} & set(sys.modules))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed == "set()\n"
