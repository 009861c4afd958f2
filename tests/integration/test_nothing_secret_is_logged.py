"""Canaries in everything that may be secret, through every handler and every kind of failure: none may reach a log.

What may be shown to the owner of a job, by the API alone, is in `test_what_is_reported_to_the_owner_is_in_no_log`.
"""

import json
import logging
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from importlib import import_module
from typing import Any

import botocore.client
import pytest
from botocore.exceptions import ClientError

from functions.adapters.wire.client import SignedClient
from testkit.events import Context, an_sqs_event
from tests.http_sink import HttpSink, answering, saying
from tests.integration.stage import Stage

MARK = "canary"
PAYLOAD = {"card": f"{MARK}-payload"}
HEADERS = {"Authorization": f"Bearer {MARK}-header", "X-Api-Key": f"{MARK}-header"}
TENANT = {"tenant": "acme"}
HOUR = 3_600


class Lines(logging.Handler):
    """What CloudWatch would keep: our own lines as Powertools writes them, of libraries warnings and worse."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """All of it: Powertools keeps its own lines from handlers of the root."""
        return True

    def emit(self, record: logging.LogRecord) -> None:
        is_own = record.name in ("tickwheel", "service_undefined")
        if is_own or record.levelno >= logging.WARNING:
            logger = import_module("functions.runtime.observability").logger
            self.lines.append(logger.registered_formatter.format(record))


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    handler = Lines()
    # A handler of an earlier test would complain that its output is closed.
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logging.getLogger().addHandler(handler)
    yield handler.lines
    logging.getLogger().removeHandler(handler)


@pytest.fixture(autouse=True)
def quiet(stage: Stage, lines: list[str], capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """After each test: there are lines, and no canary is in any of them, nor in a metric."""
    secret = json.dumps({"current_id": "k1", "current": f"{MARK}-master-{'m' * 40}"})
    stage.secrets.put_secret_value(SecretId=stage.webhook_secret, SecretString=secret)
    yield
    printed = capsys.readouterr()
    assert lines
    keys = stage.call("GET", "/v1/tenants/acme/webhook-keys")[1].get("keys", ())
    for secret in (MARK, *(key["secret"] for key in keys)):
        leaks = [line for line in (*lines, printed.out, printed.err) if secret in line]
        assert not leaks, leaks[0][:2_000]


def reset(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(f"{MARK}-answer is no status line\r\n\r\n".encode())
    request.close_connection = True


def unreadable_header(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(f"HTTP/1.1 500 no\r\n{MARK}-answer\r\nX: {MARK}-answer\r\n\r\n".encode())
    request.close_connection = True


ANSWERS: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {
    "success": saying(f"{MARK}-answer".encode()),
    "refusal": saying(f"{MARK}-answer".encode(), 404, X_Secret=f"{MARK}-answer"),
    "fault": saying(f"{MARK}-answer".encode(), 503, Retry_After=f"{MARK}-answer"),
    "redirect": answering(302, Location=f"http://{MARK}-answer.example/"),
    "later": answering(202),
    "no http": reset,
    "half http": unreadable_header,
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_of_a_call_over_http(stage: Stage, sink: HttpSink, answer: Callable[[Any], None]) -> None:
    sink.respond = answer
    stage.submit(**a_job(f"{sink.url}/{MARK}-path?token={MARK}-query"))
    stage.work()
    assert sink.requests[0].headers["authorization"] == f"Bearer {MARK}-header"


@pytest.mark.parametrize(
    "target",
    [
        f"http://127.0.0.1:1/{MARK}-path?token={MARK}-query",
        f"http://no-such-host.invalid/{MARK}-path?token={MARK}-query",
        f"http://10.0.0.1/{MARK}-path?token={MARK}-query",
        "arn:aws:sqs:us-east-1:123456789012:nowhere",
        "handler:nobody",
    ],
)
def test_of_a_call_that_comes_to_nothing(stage: Stage, target: str) -> None:
    job = a_job(target)
    if not target.startswith("http"):
        del job["http"]
    stage.submit(**job)
    stage.work()


def test_of_a_handler_that_repeats_its_payload(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def leak(payload: Any, _: Any) -> None:
        raise ValueError(f"cannot charge {payload}")

    registry = import_module("functions.worker.handlers.registry").HANDLERS
    monkeypatch.setitem(registry, "leak", leak)
    job = stage.submit(target="handler:leak", payload=PAYLOAD, retry={"attempts": 1})["id"]
    stage.work()
    assert MARK in stage.get(job)["error"]


REFUSED: list[Any] = [
    {"target": f"https://user:{MARK}-password@example.com/"},
    {"target": f"ftp://{MARK}"},
    {"target": "handler:echo", "payload": f"{MARK}" * 100_000},
    {"target": "handler:echo", "pay_load": PAYLOAD},
    {"target": "https://example.com", "http": {"headers": {"Authorization": f"{MARK}\n"}}},
    {"target": "https://example.com", "http": {"headers": {f"Authorization: {MARK}": "x"}}},
    {"target": "https://example.com", "http": f"{MARK}"},
    {"target": "handler:echo", "delay": f"{MARK}"},
    f"{MARK}",
    [[MARK]],
]


@pytest.mark.parametrize("body", REFUSED)
def test_of_a_submission_that_is_refused(stage: Stage, body: Any) -> None:
    whole = {"tenant": "acme", **body} if isinstance(body, dict) else body
    assert stage.call("POST", "/v1/jobs", whole, headers={"authorization": f"{MARK}"})[0] == 422
    assert stage.call("POST", "/v1/jobs:batch", {"jobs": [whole]})[0] in (200, 422)
    assert stage.call("PUT", "/v1/schedules/s", {"every": "PT1H", "job": body}, query=TENANT)[0] == 422
    said(stage)


def test_of_a_body_that_is_no_json(stage: Stage) -> None:
    assert stage.call("POST", "/v1/jobs", raw=f'{{"payload": "{MARK}')[0] == 422
    said(stage)


def test_of_a_token(stage: Stage) -> None:
    headers = {"authorization": f"Bearer {MARK}-token"}
    token = {"sub": "ann", "tenant": "acme", "email": f"{MARK}@example.com"}
    status, _ = stage.call("POST", "/v1/jobs", a_job("https://example.com/"), headers=headers, token=token)
    assert status == 403
    said(stage)


def test_of_a_foreign_message(stage: Stage) -> None:
    for body in (f"{MARK}", f'{{"v":1,"t":"{MARK}","j":[{{"i":"{MARK}"}}]}}', f'{{"v":"{MARK}"}}'):
        stage.sqs.send_message(QueueUrl=stage.urls["normal"], MessageBody=body)
    messages = stage.receive()
    stage.module("worker").handler(an_sqs_event(messages, queue="normal"), Context())
    stage.module("dead_letters").handler(an_sqs_event(messages, queue="dead", receive_count=10), Context())
    assert len(stage.letters()) >= 3


def test_of_schedules_and_what_is_done_to_them(stage: Stage) -> None:
    schedule = {"every": "PT1M", "job": {**a_job("https://example.com/")}}
    del schedule["job"]["tenant"], schedule["job"]["retry"]
    assert stage.call("PUT", "/v1/schedules/s", schedule, query=TENANT)[0] == 201
    assert stage.call("PATCH", "/v1/schedules/s", {"job": {"payload": PAYLOAD}}, query=TENANT)[0] == 200
    for verb in ("pause", "resume", "trigger"):
        stage.call("POST", f"/v1/schedules/s:{verb}", {"note": "why"}, query=TENANT)
    stage.scan()
    stage.module("sweeper").handler({}, Context())
    assert stage.call("DELETE", "/v1/schedules/s", query=TENANT)[0] in (200, 204)


def test_of_changes_and_of_operations(stage: Stage, sink: HttpSink) -> None:
    target = f"{sink.url}/{MARK}-path?token={MARK}-query"
    job = stage.submit(**a_job(target), delay=HOUR)["id"]
    stage.call("PATCH", f"/v1/jobs/{job}", {"payload": PAYLOAD, "delay": 2 * HOUR})
    for action in ("cancel", "export"):
        asked = {"action": action, "tenant": "acme", "target": target, "due_until": "2100-01-01T00:00:00Z"}
        stage.call("POST", "/v1/operations", asked)
    stage.module("operations").handler({}, Context())


def test_of_dead_letters_that_are_replayed_and_purged(stage: Stage, sink: HttpSink) -> None:
    sink.respond = saying(f"{MARK}-answer".encode(), 404)
    target = f"{sink.url}/{MARK}-path?token={MARK}-query"
    stage.submit(**a_job(target))
    stage.work()
    for verb in ("replay", "purge"):
        assert stage.call("POST", f"/v1/dead-letters:{verb}", {"tenant": "acme", "target": target})[1]["matched"] == 1
        stage.work(within_seconds=2)


def test_of_a_target_that_settles_by_itself(stage: Stage, sink: HttpSink) -> None:
    sink.respond = answering(202)
    job = stage.submit(**a_job(sink.url))["id"]
    stage.work()
    failure = {"fence": 1, "error": f"{MARK}-error", "permanent": True}
    assert stage.call("POST", f"/v1/jobs/{job}/fail", failure)[0] == 200


def bury(stage: Stage) -> None:
    stage.sqs.send_message(QueueUrl=stage.urls["low"], MessageBody=f"{MARK}")
    event = an_sqs_event(stage.receive("low"), queue="dead", receive_count=10)
    stage.module("dead_letters").handler(event, Context())


FAILING = {
    "the claim": ("UpdateItem", lambda stage: stage.work()),
    "reading": ("GetItem", lambda stage: stage.call("GET", "/v1/tenants/acme")),
    "promotion": ("Query", lambda stage: stage.scan()),
    "leases": ("UpdateItem", lambda stage: stage.scan()),
    "sending": ("SendMessageBatch", lambda stage: stage.call("POST", "/v1/jobs", a_job("https://example.com/"))),
    "sweeping": ("GetItem", lambda stage: stage.module("sweeper").handler({}, Context())),
    "operating": ("Query", lambda stage: stage.module("operations").handler({}, Context())),
    "burying": ("PutItem", bury),
    "signing": ("GetSecretValue", lambda stage: stage.work()),
}


@pytest.mark.parametrize(("operation", "act"), FAILING.values(), ids=FAILING)
def test_of_a_store_whose_errors_repeat_what_it_was_sent(
    stage: Stage,
    sink: HttpSink,
    monkeypatch: pytest.MonkeyPatch,
    operation: str,
    act: Callable[[Stage], Any],
    lines: list[str],
) -> None:
    stage.submit(**a_job(sink.url))
    for name in ("api", "worker", "scanner", "sweeper", "operations", "dead_letters"):
        stage.module(name)

    def quoting(call: Callable[..., Any]) -> Callable[..., Any]:
        def quote(self: Any, name: str, parameters: Any) -> Any:
            if name == operation:
                message = f"{MARK}-store {json.dumps(parameters, default=str)}"
                raise ClientError({"Error": {"Code": "ValidationException", "Message": message}}, name)
            return call(self, name, parameters)

        return quote

    with monkeypatch.context() as patched:
        for kind in (botocore.client.BaseClient, SignedClient):
            client: Any = kind
            patched.setattr(client, "_make_api_call", quoting(client._make_api_call))
        escaped = outcome(act, stage)
    # Lambda would log its text, and those of its causes.
    assert escaped is None or (MARK not in str(escaped) and not escaped.__cause__ and escaped.__suppress_context__)
    assert any("ClientError" in line for line in lines)


def test_what_is_reported_to_the_owner_is_in_no_log(stage: Stage, sink: HttpSink) -> None:
    sink.respond = saying(f"{MARK}-answer".encode(), 404)
    target = f"{sink.url}/{MARK}-path?token={MARK}-query"
    failed = stage.submit(**a_job(target))["id"]
    stage.work()
    _, found = stage.call("GET", "/v1/dead-letters", query=TENANT)
    letter = stage.call("GET", f"/v1/dead-letters/{found['dead_letters'][0]['id']}")[1]
    sink.respond = saying(f"{MARK}-answer".encode())
    succeeded = stage.submit(**a_job(target))["id"]
    stage.work()

    assert letter["payload"] == PAYLOAD
    assert letter["target"] == target
    assert f"{MARK}-answer" in json.dumps(stage.get(succeeded)["result"])
    # Neither what a target says to a refusal, nor the values of headers, is shown to anybody.
    assert f"{MARK}-answer" not in json.dumps(letter) + json.dumps(stage.get(failed))
    assert f"{MARK}-header" not in json.dumps(letter)


def a_job(target: str) -> dict[str, Any]:
    job = {"tenant": "acme", "target": target, "payload": PAYLOAD, "retry": {"attempts": 2, "base": 1}}
    return {**job, "http": {"headers": HEADERS}}


def outcome(act: Callable[[Stage], Any], stage: Stage) -> Exception | None:
    """What leaves the handler."""
    try:
        act(stage)
    except Exception as error:  # noqa: BLE001  whatever it is, it is looked at
        return error
    return None


def said(stage: Stage) -> None:
    """A refusal has no line of its own: something else has to be in the log for the comparison."""
    stage.submit()
    stage.work()
