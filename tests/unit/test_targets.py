import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from functions.adapters.targets import Handler, TargetCaller
from functions.domain.instants import SECOND
from functions.domain.target_options import USUAL
from functions.ports import Failed, Invocation, Outcome, Succeeded
from functions.worker.handlers import HANDLERS
from functions.worker.handlers.registry import handler
from tests.builders import NOON
from tests.http_sink import HttpSink, answering, http_sink

SHORT = timedelta(milliseconds=200)
NO_ANSWER = Failed("Timeout: no answer within 0.2 s")
INVOCATION = Invocation(
    job_id="j1~acme~2e~a0~1~b0~x",
    tenant="acme",
    idempotency_key="acme#x",
    attempt=2,
    fence=7,
    scheduled_at=NOON,
    deadline=NOON + 10 * SECOND,
)


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    with http_sink() as sink:
        yield sink


def test_a_target_gets_the_payload_and_all_it_needs_to_deduplicate(sink: HttpSink):
    assert call(f"{sink.url}/hook?a=b", '{"n":"é"}') == Succeeded('{"status": 200}')

    request = sink.requests[0]
    assert (request.method, request.path, request.body) == ("POST", "/hook?a=b", '{"n":"é"}')
    told = {name: value for name, value in request.headers.items() if name.startswith(("tickwheel", "idempotency"))}
    assert told == {
        "idempotency-key": "acme#x",
        "tickwheel-job-id": "j1~acme~2e~a0~1~b0~x",
        "tickwheel-tenant": "acme",
        "tickwheel-attempt": "2",
        "tickwheel-fence": "7",
        "tickwheel-scheduled-at": "2027-03-01T12:00:00.000Z",
    }
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == "Tickwheel/1"


def test_a_job_without_a_payload_sends_null(sink: HttpSink):
    call(sink.url, None)

    assert sink.requests[0].body == "null"


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_2xx_is_a_success(sink: HttpSink, status: int):
    sink.respond = answering(status)

    assert call(sink.url) == Succeeded(json.dumps({"status": status}))


@pytest.mark.parametrize("status", [304, 400, 404, 429, 500, 503])
def test_every_other_status_is_a_failure_that_may_be_tried_again(sink: HttpSink, status: int):
    sink.respond = answering(status)

    assert call(sink.url) == Failed(f"the target answered {status}")


def test_a_redirect_is_not_followed(sink: HttpSink):
    sink.respond = answering(307, Location=f"{sink.url}/elsewhere")

    assert call(f"{sink.url}/hook") == Failed("the target answered 307")
    assert [request.path for request in sink.requests] == ["/hook"]


def test_a_refused_connection_is_a_failure():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]

    assert "Connection refused" in error_of(call(f"http://127.0.0.1:{port}/"))


def test_a_target_that_does_not_answer_within_the_timeout_has_failed(sink: HttpSink):
    def hang(_: BaseHTTPRequestHandler) -> None:
        sink.released.wait(60)

    sink.respond = hang

    assert call(sink.url, timeout=SHORT) == NO_ANSWER


def test_a_target_that_drips_its_headers_has_failed_at_the_timeout_and_is_cut_off(sink: HttpSink):
    cut_off = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\n")
        try:
            # Never a pause that a socket's own timeout would see.
            while not sink.released.wait(SHORT.total_seconds() / 10):
                request.wfile.write(b"X: y\r\n")
        except ConnectionError:
            cut_off.set()

    sink.respond = drip
    started_at = time.monotonic()

    assert call(sink.url, timeout=SHORT) == NO_ANSWER

    assert time.monotonic() - started_at < 30
    assert cut_off.wait(60)


def test_an_answer_whose_body_stalls_is_told_by_its_status_at_once(sink: HttpSink):
    def stall(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "10")
        request.end_headers()
        sink.released.wait(60)

    sink.respond = stall
    started_at = time.monotonic()

    assert call(sink.url, timeout=timedelta(seconds=60)) == Succeeded('{"status": 200}')
    assert time.monotonic() - started_at < 30


def test_an_answer_whose_body_breaks_off_is_told_by_its_status(sink: HttpSink):
    def break_off(request: BaseHTTPRequestHandler) -> None:
        request.send_response(503)
        request.send_header("Content-Length", "10")
        request.end_headers()
        request.wfile.write(b"half")
        request.connection.shutdown(socket.SHUT_RDWR)

    sink.respond = break_off

    assert call(sink.url) == Failed("the target answered 503")


def test_a_caller_goes_on_after_a_target_that_was_cut_off(sink: HttpSink):
    def hang(_: BaseHTTPRequestHandler) -> None:
        sink.released.wait(60)

    caller = TargetCaller({})
    sink.respond = hang
    assert caller.call(sink.url, "1", INVOCATION, options=USUAL, timeout=SHORT) == NO_ANSWER

    sink.respond = answering(204)
    assert caller.call(sink.url, "1", INVOCATION, options=USUAL, timeout=10 * SECOND) == Succeeded('{"status": 204}')


@pytest.mark.parametrize(
    "url", ["https://", "https://[::1", "https://example.com:99999/", "https://" + "a" * 64 + ".example/"]
)
def test_a_bad_url_is_a_failure_that_no_attempt_can_help(url: str):
    outcome = call(url)

    assert isinstance(outcome, Failed)
    assert outcome.is_permanent


def test_an_attempt_is_one_request_even_when_its_connection_breaks(sink: HttpSink):
    sink.respond = lambda request: request.connection.shutdown(socket.SHUT_RDWR)

    assert isinstance(call(sink.url), Failed)
    assert len(sink.requests) == 1


def test_a_body_that_drips_is_cut_off_at_the_timeout_and_changes_nothing(sink: HttpSink):
    cut_off = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", "1000000")
        request.end_headers()
        try:
            # Far longer than the timeout, with never a pause that a socket's own timeout would see.
            while not sink.released.wait(SHORT.total_seconds() / 10):
                request.wfile.write(b".")
        except ConnectionError:
            cut_off.set()

    sink.respond = drip

    assert call(sink.url, timeout=2 * SECOND) == Succeeded('{"status": 200}')
    assert cut_off.wait(60)


def test_a_chunked_body_that_drips_is_cut_off_at_the_timeout_and_changes_nothing(sink: HttpSink):
    cut_off = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        try:
            while not sink.released.wait(SHORT.total_seconds() / 10):
                request.wfile.write(b"1\r\n.\r\n")
        except ConnectionError:
            cut_off.set()

    sink.respond = drip

    assert call(sink.url, timeout=2 * SECOND) == Succeeded('{"status": 200}')
    assert cut_off.wait(60)


def test_a_body_that_never_ends_is_cut_off(sink: HttpSink):
    cut_off = threading.Event()

    def pour(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(10**12))
        request.end_headers()
        try:
            while True:
                request.wfile.write(b"." * 65_536)
        except ConnectionError:
            cut_off.set()

    sink.respond = pour

    call(sink.url, timeout=timedelta(seconds=60))

    assert cut_off.wait(60)


def test_a_connection_is_used_again_after_an_ordinary_answer(sink: HttpSink):
    caller = TargetCaller({})
    ports: list[int] = []

    def remember(request: BaseHTTPRequestHandler) -> None:
        ports.append(request.client_address[1])
        request.send_response(200)
        request.send_header("Content-Length", "5")
        request.end_headers()
        request.wfile.write(b"hello")

    sink.respond = remember
    for _ in range(3):
        caller.call(sink.url, "1", INVOCATION, options=USUAL, timeout=10 * SECOND)

    assert len(set(ports)) == 1


def test_a_handler_gets_the_payload_and_what_it_is_told_and_its_value_is_the_result():
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

    assert call("handler:x", handlers={"x": fail}) == Failed("LookupError: no such invoice")


@pytest.mark.parametrize("value", [object(), {1, 2}, float("nan"), [float("inf")]])
def test_a_handler_whose_value_is_no_json_has_failed(value: Any):
    assert isinstance(call("handler:x", handlers={"x": lambda *_: value}), Failed)


def test_a_handler_that_overruns_its_timeout_has_failed():
    release = threading.Event()

    outcome = call("handler:x", handlers={"x": lambda *_: release.wait(60)}, timeout=SHORT)
    release.set()

    assert outcome == NO_ANSWER


@pytest.mark.parametrize(
    "leave", [lambda: sys.exit(3), lambda: _raise(KeyboardInterrupt()), lambda: _raise(BaseError())]
)
def test_a_handler_that_wants_to_end_its_process_has_failed_for_itself(leave: Callable[[], Any]):
    caller = TargetCaller({"x": lambda *_: leave(), "y": lambda *_: 1})

    outcome = caller.call("handler:x", None, INVOCATION, options=USUAL, timeout=60 * SECOND)

    assert isinstance(outcome, Failed)
    assert not outcome.is_permanent
    assert caller.call("handler:y", None, INVOCATION, options=USUAL, timeout=60 * SECOND) == Succeeded("1")


def test_a_handler_that_exits_is_told_by_its_code():
    assert call("handler:x", handlers={"x": lambda *_: sys.exit(3)}) == Failed("SystemExit: 3")


def test_an_unknown_handler_is_a_failure_that_no_attempt_can_help():
    handlers: dict[str, Handler] = {"b": lambda *_: None, "a": lambda *_: None}

    assert call("handler:x", handlers=handlers) == Failed(
        "there is no handler 'x'; registered are: a, b", is_permanent=True
    )
    assert "registered are: none" in error_of(call("handler:x"))


def test_every_installation_has_an_echo():
    assert call("handler:echo", '{"n":1}', handlers=HANDLERS) == Succeeded('{"payload": {"n": 1}, "attempt": 2}')


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="two handlers called 'echo'"):
        handler("echo")(lambda *_: None)


def call(
    target: str,
    payload: str | None = "1",
    *,
    handlers: dict[str, Handler] | None = None,
    timeout: timedelta = timedelta(seconds=60),
) -> Outcome:
    return TargetCaller(handlers or {}).call(target, payload, INVOCATION, options=USUAL, timeout=timeout)


class BaseError(BaseException):
    """What no `except Exception` catches."""


def _raise(error: BaseException) -> Any:
    raise error


def error_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed)
    return outcome.error
