"""What the client sends has the fields that the API's description says a request has, call by call.

The fields of a job and of a schedule are held where these values are tested: `NewJob` and `NewSchedule`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest

from functions.api.openapi import document
from tests.api_server import Answer, ApiServer, Request
from tests.unit.test_client import a_client
from tickwheel.client import Client
from tickwheel.client.dead_letters import DeadLetterFilter
from tickwheel.client.jobs import NewJob
from tickwheel.client.operations import JobFilter
from tickwheel.client.schedules import NewSchedule
from tickwheel.errors import TickwheelError

DOCUMENT = document()
NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
JOBS = JobFilter(
    tenant="acme", due_from=NOON, due_until=NOON + HOUR, target="x", schedule="nightly", tag="eu", all=True
)
LETTERS = DeadLetterFilter(
    tenant="acme", since=NOON, until=NOON + HOUR, target="x", error_class="timeout", schedule="nightly", tag="eu"
)
HOURLY = NewSchedule("hourly", tenant="acme", cron="0 * * * *", target="handler:echo")
EVERYTHING_OF_A_TENANT: Mapping[str, Any] = {
    "plan": "gold",
    "limits": {"weight": 2},
    "principals": ["arn:aws:iam::123456789012:role/billing"],
    "note": "on trial",
    "version": 3,
}
TURN: Mapping[str, Any] = {"note": "maintenance", "version": 3}

CALLS: Mapping[str, tuple[Callable[[Client], Any], ...]] = {
    "POST /v1/jobs:batch": (lambda client: client.submit_many([NewJob("handler:echo", tenant="acme")]),),
    "POST /v1/jobs/{id}/heartbeat": (lambda client: client.heartbeat("j1", fence=1, lease=HOUR),),
    "POST /v1/jobs/{id}/complete": (lambda client: client.complete("j1", fence=1, result=[1]),),
    "POST /v1/jobs/{id}/fail": (
        lambda client: client.fail("j1", fence=1, error="no paper", permanent=True, retry_after=HOUR),
    ),
    "POST /v1/schedules:batch": (lambda client: client.schedules.put_many([HOURLY]),),
    "POST /v1/schedules:fires": (
        lambda client: client.schedules.count_fires([HOURLY], start=NOON, hours=2, spread=HOUR),
        lambda client: client.schedules.count_fires_of("acme", start=NOON, hours=2, spread=HOUR),
    ),
    "POST /v1/schedules/{id}:pause": (lambda client: client.schedules.pause("nightly", tenant="acme", note="why"),),
    "POST /v1/schedules/{id}:resume": (lambda client: client.schedules.resume("nightly", tenant="acme", note="why"),),
    "POST /v1/schedules/{id}:trigger": (
        lambda client: client.schedules.trigger("nightly", tenant="acme", overlap="allow"),
    ),
    "POST /v1/schedules/{id}:backfill": (
        lambda client: client.schedules.backfill(
            "nightly",
            tenant="acme",
            start=NOON,
            end=NOON + HOUR,
            overlap="allow",
            per_minute=9,
            dry_run=True,
            after="x",
        ),
    ),
    "POST /v1/dead-letters:replay": (lambda client: client.dead_letters.replay_many(LETTERS, rate=5),),
    "POST /v1/dead-letters:purge": (
        lambda client: client.dead_letters.purge_many(LETTERS),
        lambda client: client.dead_letters.count(LETTERS),
    ),
    "POST /v1/breakers:reset": (lambda client: client.reset_breaker("acme", "https://example.com"),),
    "PUT /v1/flows/{key}": (
        lambda client: client.set_flow("stripe", rate="60/min", burst=10, concurrency=5, ordered=True),
    ),
    "POST /v1/operations": (
        lambda client: client.operations.cancel(JOBS, dry_run=True),
        lambda client: client.operations.reschedule(JOBS, by=HOUR),
        lambda client: client.operations.reschedule(JOBS, to=NOON, spread=HOUR),
        lambda client: client.operations.run_now(JOBS, rate=5),
        lambda client: client.operations.export(JOBS),
    ),
    "PUT /v1/tenants/{id}": (lambda client: client.tenants.put("acme", **EVERYTHING_OF_A_TENANT),),
    "PATCH /v1/tenants/{id}": (lambda client: client.tenants.patch("acme", **EVERYTHING_OF_A_TENANT),),
    "POST /v1/tenants/{id}:pause": (lambda client: client.tenants.pause("acme", **TURN),),
    "POST /v1/tenants/{id}:resume": (lambda client: client.tenants.resume("acme", **TURN),),
    "POST /v1/tenants/{id}:drain": (lambda client: client.tenants.drain("acme", **TURN),),
    "POST /v1/pause": (lambda client: client.pause(**TURN),),
    "POST /v1/resume": (lambda client: client.resume(**TURN),),
}
"""Calls with all that they take, which together send every field of a body."""

HELD_ELSEWHERE = {"JobBody", "ScheduleBody"}
MERGE_PATCHES = {"JobPatch", "SchedulePatch"}
"""What these say is the caller's own, field by field."""

UNSENT: Mapping[str, set[str]] = {"ReplayBody": {"dry_run"}}  # letters are counted by a dry purge
"""Fields that no call sends."""

MORE = Answer(
    200,
    {"next": "more", "matched": 0, "replayed": 0, "dead_letters": [], "failed": [], "results": [], "start": "from"}
    | {"examined_until": "2027-03-01T00:00:00.000Z"},
)
"""A page with another behind it, for calls that ask page by page."""
REFUSED = Answer(400, {"status": 400, "code": "enough", "title": "That was all"})


def bodies() -> Iterator[tuple[str, str]]:
    """The operations that take a body, each with its shape."""
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            if "requestBody" in operation:
                (content,) = operation["requestBody"]["content"].values()
                yield f"{method.upper()} {path}", content["schema"]["$ref"].rpartition("/")[2]


SHAPES = dict(bodies())


@cache
def sent(ask: Callable[[Client], Any]) -> list[Request]:
    """What a call sends, page by page."""
    with ApiServer(MORE, otherwise=lambda _: REFUSED) as server, a_client(server) as client, suppress(TickwheelError):
        ask(client)
    return server.requests


def test_each_body_that_is_described_is_sent_by_a_call() -> None:
    assert {shape for operation, shape in SHAPES.items() if operation not in CALLS} == HELD_ELSEWHERE | MERGE_PATCHES
    assert CALLS.keys() <= SHAPES.keys()


@pytest.mark.parametrize("operation", CALLS)
def test_calls_send_the_fields_of_the_body_that_is_described_and_no_others(operation: str) -> None:
    method, _, path = operation.partition(" ")
    asked = [request for call in CALLS[operation] for request in sent(call)]

    for request in asked:
        assert request.method == method
        assert re.fullmatch(re.sub(r"\{\w+\}", "[^/:]+", path), request.path.partition("?")[0])
    fields = set(DOCUMENT["components"]["schemas"][SHAPES[operation]]["properties"])
    assert {name for request in asked for name in request.json} == fields - UNSENT.get(SHAPES[operation], set())


@pytest.mark.parametrize("operation", CALLS)
def test_each_call_sends_what_its_body_must_have(operation: str) -> None:
    required = set(DOCUMENT["components"]["schemas"][SHAPES[operation]].get("required", ()))

    assert all(required <= request.json.keys() for call in CALLS[operation] for request in sent(call))
