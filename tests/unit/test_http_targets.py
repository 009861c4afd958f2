import gzip
import json
import logging
import socket
import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from functions.adapters.targets.http import BODY_LIMIT
from functions.domain.targets.options import Method
from functions.domain.targets.webhooks import WebhookKey, keys_of, signed_headers
from functions.ports.targets import Failed, Pending, Succeeded
from testkit.fakes import FakeClock, GivenWebhookKeys
from testkit.fakes.webhook_keys import MASTER
from tests.http_sink import HttpSink, answering, cut_off, half_of, http_sink, saying
from tests.unit.calling import NO_ANSWER, SHORT, a_caller, busy, call, failure_of, wait_for_calls


def test_a_target_gets_the_payload_and_all_it_needs_to_deduplicate(sink: HttpSink):
    assert call(f"{sink.url}/hook?a=b", '{"n":"é"}') == Succeeded('{"status":200}')

    request = sink.requests[0]
    assert (request.method, request.path, request.body) == ("POST", "/hook?a=b", '{"n":"é"}')
    headers = {
        name: value for name, value in request.headers.items() if name.startswith(("tickwheel", "idempotency", "trace"))
    }
    assert headers == {
        "idempotency-key": "acme#x",
        "tickwheel-job-id": "j1~acme~2e~a0~1~b0~x",
        "tickwheel-tenant": "acme",
        "tickwheel-attempt": "2",
        "tickwheel-fence": "7",
        "tickwheel-scheduled-at": "2027-03-01T12:00:00.000Z",
        "tickwheel-key-ids": "k1",
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    }
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == "Tickwheel/1"


@pytest.mark.parametrize("payload", ['{"n":"é"}', None])
@pytest.mark.parametrize("method", [Method.POST, Method.GET])
def test_a_request_is_signed_with_the_keys_of_its_tenant(sink: HttpSink, method: Method, payload: str | None):
    keys = (MASTER, WebhookKey("k0", b"o" * 64))
    call(sink.url, payload, caller=a_caller(keys=GivenWebhookKeys(keys)), method=method)

    (request,) = sink.requests
    expected = signed_headers(
        keys_of("acme", keys), idempotency_key="acme#x", body=request.body.encode(), at=FakeClock().now()
    )
    assert {name: request.headers[name.lower()] for name in expected} == expected


@pytest.mark.parametrize("method", [Method.POST, Method.PUT, Method.PATCH])
def test_a_job_without_a_payload_sends_null(sink: HttpSink, method: Method):
    call(sink.url, None, method=method)

    assert (sink.requests[0].method, sink.requests[0].body) == (method, "null")


@pytest.mark.parametrize("method", [Method.GET, Method.DELETE])
def test_a_method_that_needs_no_body_has_none_without_a_payload(sink: HttpSink, method: Method):
    call(sink.url, None, method=method)
    call(sink.url, "[1]", method=method)

    assert [(request.method, request.body) for request in sink.requests] == [(method, ""), (method, "[1]")]
    assert "content-type" not in sink.requests[0].headers
    assert sink.requests[1].headers["content-type"] == "application/json"


def test_a_job_s_headers_are_sent_and_may_say_what_the_body_and_the_caller_are(sink: HttpSink):
    call(
        sink.url,
        headers=(("X-Shop", "7"), ("authorization", "Bearer t"), ("CONTENT-TYPE", "application/x+json")),
    )

    headers = sink.requests[0].headers
    assert (headers["x-shop"], headers["authorization"]) == ("7", "Bearer t")
    assert headers["content-type"] == "application/x+json"
    assert headers["user-agent"] == "Tickwheel/1"


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_a_2xx_is_a_success(sink: HttpSink, status: int):
    sink.respond = answering(status)

    assert call(sink.url) == Succeeded(f'{{"status":{status}}}')


def test_a_202_says_that_the_target_goes_on_by_itself_unless_the_job_calls_it_a_success(sink: HttpSink):
    sink.respond = answering(202)

    assert call(sink.url) == Pending()
    assert call(sink.url, success_codes=(200, 202)) == Succeeded('{"status":202}')


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_a_status_of_a_passing_trouble_may_be_tried_again(sink: HttpSink, status: int):
    sink.respond = answering(status)

    assert call(sink.url) == Failed(f"the target answered {status}", error_class=f"http_{status}")


def test_any_other_4xx_is_the_fault_of_its_job_and_no_attempt_can_help(sink: HttpSink):
    sink.respond = answering(404)

    assert call(sink.url) == Failed(
        "the target answered 404", error_class="http_404", is_permanent=True, is_its_own=True
    )
    assert call(sink.url, retry_codes=(404,)) == Failed("the target answered 404", error_class="http_404")


def test_a_target_that_names_a_wait_is_given_it(sink: HttpSink):
    sink.respond = answering(503, Retry_After="120")

    assert failure_of(call(sink.url)).retry_after == timedelta(minutes=2)


def test_a_redirect_is_not_followed_and_no_attempt_can_help(sink: HttpSink):
    sink.respond = answering(307, Location=f"{sink.url}/elsewhere")

    outcome = failure_of(call(f"{sink.url}/hook"))

    assert (outcome.error_class, outcome.is_permanent, outcome.is_its_own) == ("redirect", True, False)
    assert outcome.error.startswith("the target answered 307, but redirects are not followed")
    assert [request.path for request in sink.requests] == ["/hook"]


def test_a_refused_connection_is_a_failure_that_may_be_tried_again():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]

    outcome = failure_of(call(f"http://127.0.0.1:{port}/"))

    assert outcome.error.startswith("NewConnectionError: no connection to 127.0.0.1: ")
    assert "Connection refused" in outcome.error
    assert (outcome.error_class, outcome.is_permanent) == ("connection", False)


def test_a_peer_that_speaks_no_tls_is_a_failure_of_its_own_class(sink: HttpSink):
    outcome = failure_of(call(sink.url.replace("http:", "https:")))

    assert (outcome.error_class, outcome.is_permanent) == ("tls", False)


def test_an_answer_that_is_no_http_is_a_broken_connection(sink: HttpSink):
    sink.respond = lambda request: _write(request, b"SSH-2.0-OpenSSH\r\n")

    assert failure_of(call(sink.url)).error_class == "connection"


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


def test_a_call_that_was_given_up_while_it_connected_sends_nothing(sink: HttpSink):
    connecting, given_up = threading.Event(), threading.Event()
    before = busy()

    class SlowGuard:
        def connect(self, *_: Any, **__: Any) -> socket.socket:
            connecting.set()
            given_up.wait(60)
            return socket.create_connection(("127.0.0.1", int(sink.url.rsplit(":", 1)[1])))

    caller = a_caller(addresses=SlowGuard())
    assert call(sink.url, caller=caller, timeout=SHORT) == NO_ANSWER
    assert connecting.is_set()

    given_up.set()
    wait_for_calls(since=before)
    assert sink.requests == []


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (b'{"id": 7, "x": [null]}', {"status": 200, "body": {"id": 7, "x": [None]}}),
        (b"done", {"status": 200, "body": "done"}),
        ("gr\u00fc\u00df dich".encode(), {"status": 200, "body": "gr\u00fc\u00df dich"}),
        (b"\xff\xfe", {"status": 200, "body": "\ufffd\ufffd"}),
        (b"", {"status": 200}),
    ],
)
def test_what_a_target_says_is_the_result(sink: HttpSink, body: bytes, result: Any):
    sink.respond = saying(body)

    assert result == result_of(call(sink.url))


def test_a_body_that_came_packed_is_unpacked_and_what_cannot_be_unpacked_changes_nothing(sink: HttpSink):
    sink.respond = saying(gzip.compress(b'{"n":1}'), Content_Encoding="gzip")
    assert result_of(call(sink.url)) == {"status": 200, "body": {"n": 1}}

    sink.respond = saying(b"not packed", Content_Encoding="gzip")
    assert result_of(call(sink.url)) == {"status": 200, "truncated": True}


def test_a_small_body_that_unpacks_to_a_huge_one_is_cut(sink: HttpSink):
    sink.respond = saying(gzip.compress(b"0" * 50_000_000), Content_Encoding="gzip")

    outcome = call(sink.url)

    assert result_of(outcome)["truncated"] is True


@pytest.mark.parametrize("size", [BODY_LIMIT - 1, BODY_LIMIT, BODY_LIMIT + 1, 10 * BODY_LIMIT])
def test_a_large_body_is_read_up_to_its_limit_and_stays_valid_json(sink: HttpSink, size: int):
    sink.respond = saying(b"a" * size)

    outcome = call(sink.url)

    assert isinstance(outcome, Succeeded)
    answer = result_of(outcome)
    assert len(answer["body"]) == min(size, BODY_LIMIT + 1)
    assert answer.get("truncated", False) is (size > BODY_LIMIT)


def test_json_of_the_most_bytes_that_are_read_is_whole_and_a_byte_more_is_not(sink: HttpSink):
    sink.respond = saying(b'{"n":1}'.ljust(BODY_LIMIT))
    assert result_of(call(sink.url)) == {"status": 200, "body": {"n": 1}}

    sink.respond = saying(b'{"n":1}'.ljust(BODY_LIMIT + 1))
    assert result_of(call(sink.url))["truncated"] is True


def test_an_answer_whose_body_stalls_is_reported_by_its_status_after_a_moment(sink: HttpSink):
    sink.respond = half_of(b"half", lambda _: sink.released.wait(60))
    started_at = time.monotonic()

    outcome = call(sink.url, timeout=timedelta(seconds=60))

    assert result_of(outcome) == {"status": 200, "body": "half", "truncated": True}
    assert time.monotonic() - started_at < 30


def test_an_answer_whose_body_breaks_off_is_reported_by_its_status(sink: HttpSink):
    sink.respond = half_of(b"half", cut_off, 503)

    assert call(sink.url) == Failed("the target answered 503", error_class="http_503")


def test_a_caller_goes_on_after_a_target_that_was_cut_off(sink: HttpSink):
    def hang(_: BaseHTTPRequestHandler) -> None:
        sink.released.wait(60)

    caller = a_caller()
    sink.respond = hang
    assert call(sink.url, caller=caller, timeout=SHORT) == NO_ANSWER

    sink.respond = answering(204)
    assert call(sink.url, caller=caller) == Succeeded('{"status":204}')


@pytest.mark.parametrize(
    "url", ["https://", "https://[::1", "https://example.com:99999/", "https://" + "a" * 64 + ".example/"]
)
def test_a_bad_url_is_a_failure_that_no_attempt_can_help(url: str):
    outcome = failure_of(call(url))

    assert (outcome.error_class, outcome.is_permanent) == ("invalid", True)


def test_an_unknown_scheme_is_a_failure_that_no_attempt_can_help():
    outcome = failure_of(call("gopher://example.com/"))

    assert "unknown scheme 'gopher'" in outcome.error
    assert (outcome.error_class, outcome.is_permanent) == ("invalid", True)


def test_an_attempt_is_one_request_even_when_its_connection_breaks(sink: HttpSink):
    sink.respond = lambda request: request.connection.shutdown(socket.SHUT_RDWR)

    assert failure_of(call(sink.url)).error_class == "connection"
    assert len(sink.requests) == 1


@pytest.mark.parametrize("is_used_again", [False, True])
@pytest.mark.parametrize("framing", ["Content-Length: 1000000", "Transfer-Encoding: chunked", "Connection: close"])
def test_a_body_that_drips_is_cut_off_after_a_moment_and_changes_nothing(
    sink: HttpSink, framing: str, is_used_again: bool
):
    before = busy()
    cut_off = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n".encode())
        try:
            # Never a pause that a socket's own timeout would see.
            is_over = False
            while not is_over:
                request.wfile.write(b"1\r\n.\r\n" if "chunked" in framing else b".")
                is_over = sink.released.wait(SHORT.total_seconds() / 10)
        except ConnectionError:
            cut_off.set()

    caller = a_caller()
    if is_used_again:
        call(sink.url, caller=caller)
    sink.respond = drip

    outcome = call(sink.url, caller=caller, timeout=timedelta(seconds=60))

    result = result_of(outcome)
    assert (result["status"], result["truncated"]) == (200, True)
    assert set(result["body"]) == {"."}
    assert cut_off.wait(50)
    wait_for_calls(since=before)


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
    caller = a_caller()
    ports: list[int] = []

    def remember(request: BaseHTTPRequestHandler) -> None:
        ports.append(request.client_address[1])
        saying(b"hello")(request)

    sink.respond = remember
    for _ in range(3):
        call(sink.url, caller=caller)

    assert len(set(ports)) == 1


def test_proxies_of_the_environment_are_not_used(sink: HttpSink, monkeypatch: pytest.MonkeyPatch):
    with http_sink() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)

        call(sink.url)

        assert proxy.requests == []
        assert len(sink.requests) == 1


def test_nothing_of_a_request_or_of_its_answer_is_logged(sink: HttpSink, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    sink.respond = lambda request: _write(
        request, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nbroken header with s3cret\r\n\r\n"
    )

    call(f"{sink.url}/s3cret?s3cret", '"s3cret"', headers=(("X-Key", "s3cret"),))

    assert "s3cret" not in caplog.text


def result_of(outcome: Any) -> Any:
    assert isinstance(outcome, Succeeded)
    return json.loads(outcome.result)


def _write(request: BaseHTTPRequestHandler, text: bytes) -> None:
    request.wfile.write(text)
    request.close_connection = True
