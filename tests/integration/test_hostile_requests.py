"""Whatever anybody sends, the API answers with what is wrong about it, and pages nobody: on AWS's own engine."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from functions.api.http.problems import CONTENT_TYPE
from functions.api.openapi import document
from functions.worker.handlers.registry import HANDLERS
from testkit.dynamodb_local import DynamoDBLocal
from testkit.events import Context, a_request
from tests.described import Known, operations_of
from tests.hostile import Request, requests_of
from tests.http_sink import http_sink
from tests.integration.restoring import stage_on
from tests.integration.stage import Stage
from tests.integration.test_openapi import seeded

pytestmark = pytest.mark.dynamodb_local


@pytest.fixture
def stage(dynamodb_local: DynamoDBLocal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with http_sink() as sink, stage_on(dynamodb_local, sink, monkeypatch) as restored:
        # Hundreds of requests of one caller: each is to reach its route.
        monkeypatch.setenv("PLANS", '{"default": {"read_rate": "unlimited"}}')
        yield restored.stage


@pytest.mark.long
@pytest.mark.parametrize("operation", operations_of(document()))
def test_no_mistake_of_a_caller_is_a_fault_of_the_stage(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], operation: str
):
    monkeypatch.setitem(HANDLERS, "long", lambda payload, invocation: {"statusCode": 202})
    known = with_more(seeded(stage), stage)
    capsys.readouterr()

    asked = [(request, ask(stage, request)) for request in requests_of(document(), operation, known)]

    found = [
        f"{request.method} {request.path[:120]}: {request.what}: {complaint(answer)}"
        for request, answer in asked
        if complaint(answer)
    ]
    assert not found, "\n".join(found[:20])
    assert '"requests_failed"' not in capsys.readouterr().out


def with_more(known: Known, stage: Stage) -> Known:
    """And the job of a target that is too long for a breaker, which only a key could tell; and a bookmark of dead letters."""
    long = stage.submit(target=f"https://{'a' * 1_100}.example/", delay=3_600)["id"]
    bookmark = stage.call("GET", "/v1/dead-letters", query={"tenant": "acme", "since": "2000-01-01T00:00:00Z"})[1][
        "next"
    ]
    return {**known, "/v1/jobs": [*known["/v1/jobs"], long], "bookmarks": [bookmark]}


def ask(stage: Stage, request: Request) -> dict[str, Any]:
    event = a_request(
        request.method, request.path, raw=request.body, query=dict(request.query), headers=dict(request.headers)
    )
    return stage.module("api").handler(event, Context())


def complaint(answer: dict[str, Any]) -> str:
    """What is wrong with an answer; empty for nothing."""
    status, body = answer["statusCode"], json.loads(answer["body"])
    kind = answer["headers"]["Content-Type"]
    if status < 400:
        jobs = [result["status"] for result in body.get("results", ()) if result.get("status", 0) >= 500]
        return f"{jobs} of its jobs" if jobs else ""
    is_described = kind == CONTENT_TYPE and body["status"] == status and body["code"] and body["title"]
    is_looked_at = body.get("code") != "read_rate_exceeded"
    return "" if status < 500 and is_described and is_looked_at else f"{status} {kind} {body}"
