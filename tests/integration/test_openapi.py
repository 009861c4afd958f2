"""The API does what it says of itself, whatever it is asked: the real handler on moto, and no request by hand."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from datetime import timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import pytest
from schemathesis import Case

from functions.adapters.dynamodb.breakers import DynamoDBBreakerStore
from functions.adapters.dynamodb.table import Table
from functions.adapters.dynamodb.tables import TENANTS
from functions.api.openapi import document
from functions.domain.instants import format_instant
from functions.worker.handlers.registry import HANDLERS
from testkit.builders import a_breaker
from testkit.events import Context
from tests.described import CHECKS, Known, for_each_case, operations_of
from tests.integration.stage import Stage

JOB = {"tenant": "acme", "target": "handler:echo"}
LAST = "9999-12-31T23:59:59.999999Z"
"""Behind it there is no instant; a generator of instants does not come this far."""

TEXTS = ("text/", "application/json", "application/javascript", "application/xml")
"""What API Gateway hands on as text; the rest comes in base64."""


@pytest.mark.long
@pytest.mark.parametrize("operation", operations_of(document()))
def test_whatever_is_asked_is_answered_as_described(stage: Stage, monkeypatch: pytest.MonkeyPatch, operation: str):
    monkeypatch.setitem(HANDLERS, "long", lambda payload, invocation: {"statusCode": 202})
    gateway = Gateway(stage)

    def ask(case: Case) -> None:
        case.call_and_validate(app=gateway, checks=CHECKS)

    for_each_case(document(), operation, seeded(stage), ask, examples=15, coverage=True)


class Gateway:
    """API Gateway before the handler, as a WSGI application."""

    def __init__(self, stage: Stage) -> None:
        self._handler = stage.module("api").handler

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = self._handler(event_of(environ), Context())
        status = HTTPStatus(answer["statusCode"])
        start_response(f"{status.value} {status.phrase}", list(answer["headers"].items()))
        return [answer["body"].encode()]


def event_of(environ: dict[str, Any]) -> dict[str, Any]:
    """A request as the event of an HTTP API: its path is decoded, values of one name are joined by commas."""
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"].encode("latin-1").decode()
    query: dict[str, str] = {}
    for name, value in parse_qsl(environ["QUERY_STRING"], keep_blank_values=True):
        query[name] = f"{query[name]},{value}" if name in query else value
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_") or (name == "CONTENT_TYPE" and value)
    }
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    is_text = headers.get("content-type", "text/").startswith(TEXTS)
    return {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": environ["QUERY_STRING"],
        **({"queryStringParameters": query} if query else {}),
        "headers": headers,
        "requestContext": {
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1"},
            "requestId": "request-1",
            "stage": "$default",
        },
        **({"body": body.decode(errors="replace") if is_text else base64.b64encode(body).decode()} if body else {}),
        "isBase64Encoded": bool(body) and not is_text,
    }


def seeded(stage: Stage) -> Known:
    """Of each kind something that can be asked for, in more than one state."""
    jobs: list[str] = []
    for target, state in (("echo", "succeeded"), ("none-of-this-name", "failed"), ("long", "running")):
        jobs.append(stage.submit(target=f"handler:{target}", retry={"attempts": 1})["id"])
        stage.work()
        assert stage.get(jobs[-1])["state"] == state
    jobs += [
        stage.submit(delay=3_600, payload={"n": 1}, delivery=delivery)["id"]
        for delivery in ("exactly_once", "at_least_once", "at_most_once")
    ]
    for schedule_id, rule in {"nightly": {"cron": "0 3 * * *"}, "often": {"every": {"interval": 600}}}.items():
        definition = {**rule, "job": {"target": "handler:echo"}, "timezone": "Europe/Berlin"}
        status, answer = stage.call("PUT", f"/v1/schedules/{schedule_id}", definition, query={"tenant": "acme"})
        assert status == 201, answer
    breaker = a_breaker(tenant="acme", opened_at=stage.now())
    DynamoDBBreakerStore(Table(stage.dynamodb, TENANTS.name)).put(breaker, seen=None)
    operations: list[str] = []
    for action in ("export", "cancel"):
        asked = {"tenant": "acme", "action": action, "target": "handler:none-of-this-name"}
        operations.append(stage.call("POST", "/v1/operations", asked)[1]["id"])
        stage.module("operations").handler({}, Context())
    schedule = {"cron": "0 4 * * *", "job": {"target": "handler:echo"}}
    weekly = {
        "rrule": {"rule": "FREQ=WEEKLY;WKST=SU;BYDAY=MO", "starts_at": "2027-01-01T09:00"},
        "job": {"target": "handler:echo"},
    }
    start = format_instant(stage.now() - timedelta(days=2))
    _, page = stage.call("GET", "/v1/dead-letters", query={"tenant": "acme"})
    (letter,) = page["dead_letters"]
    return {
        "tenant": ["acme", "globex"],
        "target": ["handler:echo", "https://example.com/hook"],
        "destination": [breaker.destination],
        "timezone": ["Europe/Berlin"],
        "cron": ["0 3 * * *"],
        "JobBody": [JOB, {**JOB, "delay": "PT1H", "priority": "low", "tags": ["eu"]}],
        "JobPatch": [{"delay": 7_200}],
        "ScheduleBody": [schedule, {**schedule, "end": LAST}, weekly],
        "SchedulePatch": [{"cron": "0 4 * * *"}, {"start": LAST}],
        "BackfillBody": [{"start": start, "end": format_instant(stage.now()), "overlap": "allow"}],
        "FireCountsBody": [{"tenant": "acme", "start": LAST}],
        "PurgeBody": [{"tenant": "acme", "since": LAST}],
        "OperationBody": [
            {"tenant": "globex", "action": "cancel", "tag": "eu", "due_until": LAST},
            {"tenant": "globex", "action": "reschedule", "all": True, "by": "-PT1H"},
            {"tenant": "globex", "action": "reschedule", "all": True, "to": LAST, "spread": "P1D"},
            {"tenant": "globex", "action": "run_now", "schedule": "nightly", "rate": 2, "dry_run": True},
        ],
        "ReplayBody": [{"tenant": "acme", "until": LAST}],
        "TenantBody": [{"plan": "small", "limits": {"weight": 2, "top_priority": "high"}, "note": "x"}],
        "TenantPatchBody": [{"limits": {"weight": None}, "plan": None, "version": 0}],
        "/v1/jobs": jobs,
        "/v1/schedules": ["nightly", "often"],
        "/v1/dead-letters": [letter["id"]],
        "/v1/operations": operations,
        "/v1/tenants": ["acme"],
    }
