"""The health of the stage over the real tables, as an operator asks for it."""

from datetime import timedelta
from typing import Any

import pytest

from functions.adapters.dynamodb.breakers import DynamoDBBreakerStore
from functions.adapters.dynamodb.table import Table
from functions.adapters.dynamodb.tables import SHARDS, TENANTS
from functions.services.tenants.plans import KNOWN_FOR
from testkit.builders import a_breaker
from testkit.events import Context
from tests.integration.stage import Stage


def health(stage: Stage, **options: Any) -> dict[str, Any]:
    status, answer = stage.call("GET", "/v1/health", **options)
    assert status == 200, answer
    return answer


@pytest.fixture
def running(stage: Stage) -> Stage:
    """Scanned and swept."""
    stage.scan()
    stage.module("sweeper").handler({}, Context())
    return stage


def test_a_stage_that_runs_is_ok(running: Stage):
    running.submit()
    running.module("sweeper").handler({}, Context())

    answer = health(running)

    assert (answer["status"], answer["reasons"]) == ("ok", [])
    assert [each["priority"] for each in answer["classes"]] == ["critical", "high", "normal", "low"]
    normal = answer["classes"][2]
    assert (normal["depth"], normal["waiting"], normal["budget"]) == (1, 1, 50_000)
    assert (normal["lag_seconds"], normal["age_seconds"], normal["is_shed"]) == (0, 0, False)
    assert answer["shards"] == {
        "count": 2,
        "unscanned": {"count": 0, "first": []},
        "cursors_behind": 0,
        "cursors_held": 0,
        "worst": [],
    }
    assert answer["stage"] == "local"
    assert answer["sweeper"]["is_fresh"]
    assert 240 < answer["sweeper"]["audit_age_seconds"] < 400
    assert answer["breakers"] == {"count": 0, "first": []}
    assert answer["pause"] == {"is_paused": False, "note": "", "since": None}
    assert answer["tenants"] == {"count": 0, "first": []}


def test_a_stage_whose_rules_do_not_fire_is_unknown_and_names_its_shards(running: Stage):
    running.travel(timedelta(minutes=6))

    answer = health(running)

    assert answer["status"] == "unknown"
    assert answer["reasons"][0] == "the sweeper has published nothing for 6 minutes"
    assert answer["reasons"][-1] == "nobody has scanned 2 of 2 shards for 3 minutes: 0, 1"
    assert answer["shards"]["unscanned"] == {"count": 2, "first": [0, 1]}
    assert not answer["sweeper"]["is_fresh"]


def test_a_stage_that_was_never_swept_does_not_know_its_queues(stage: Stage):
    stage.dynamodb.delete_item(TableName=SHARDS.name, Key={"k": {"S": "conditions"}})

    answer = health(stage)

    assert answer["status"] == "unknown"
    assert answer["sweeper"] == {"published_at": None, "is_fresh": False, "audited_to": None, "audit_age_seconds": None}
    assert {each[name] for each in answer["classes"] for name in ("depth", "waiting", "budget", "lag_seconds")} == {
        None
    }
    assert {each["is_shed"] for each in answer["classes"]} == {None}


def test_what_a_paused_tenant_holds_is_reported_and_makes_nothing_behind(running: Stage):
    running.call("POST", "/v1/tenants/acme:pause", {"note": "why"})
    running.submit(delay=200)
    running.forget_modules()
    running.travel(timedelta(minutes=4))
    running.scan()
    running.module("sweeper").handler({}, Context())

    answer = health(running)

    assert answer["status"] == "ok", answer["reasons"]
    assert (answer["shards"]["cursors_behind"], answer["shards"]["cursors_held"]) == (0, 1)
    assert [shard["held"] for shard in answer["shards"]["worst"]] == [{"count": 1, "first": ["acme"]}]
    assert [(each["tenant"], each["status"], each["note"]) for each in answer["tenants"]["first"]] == [
        ("acme", "paused", "why")
    ]
    assert answer["tenants"]["first"][0]["since"] is not None


def test_a_pause_of_all_shows_with_its_note(running: Stage):
    running.call("POST", "/v1/pause", {"note": "the database moves"})
    running.travel(KNOWN_FOR)

    answer = health(running)

    assert answer["status"] == "paused"
    assert (answer["pause"]["is_paused"], answer["pause"]["note"]) == (True, "the database moves")
    assert answer["pause"]["since"] in answer["reasons"][0]


def test_open_breakers_of_all_tenants_are_reported(running: Stage):
    store = DynamoDBBreakerStore(Table(running.dynamodb, TENANTS.name))
    for tenant in ("globex", "acme"):
        breaker = a_breaker(tenant=tenant, opened_at=running.now(), error_class="timeout")
        store.put(breaker, seen=None)

    answer = health(running)["breakers"]

    assert answer["count"] == 2
    assert [(each["tenant"], each["destination"], each["state"]) for each in answer["first"]] == [
        ("acme", "https://example.com", "open"),
        ("globex", "https://example.com", "open"),
    ]
    assert (
        running.call("POST", "/v1/breakers:reset", {"tenant": "acme", "destination": "https://example.com"})[0] == 200
    )
    assert health(running)["breakers"]["count"] == 1


def test_what_goes_on_is_reported_by_the_minute(running: Stage):
    for _ in range(3):
        running.submit(priority="high")
    running.work("high")

    answer = health(running)["pulse"]

    assert len(answer["minutes"]) == 16
    assert 0 < answer["minutes"][-1]["seconds"] <= 60
    assert {minute["seconds"] for minute in answer["minutes"][:-1]} == {60}
    sums = {name: sum(minute[name] for minute in answer["minutes"]) for name in ("submitted", "started", "succeeded")}
    # What came behind the first write of its process waits for the next.
    assert sums == {"submitted": 1, "started": 3, "succeeded": 3}
    by_class = {each["priority"]: each for each in answer["lag"]}
    assert by_class["high"]["attempts"] == 3
    assert 900 < by_class["high"]["p50_ms"] <= by_class["high"]["p999_ms"] < 60_000
    assert by_class["low"] == {
        "priority": "low",
        "attempts": 0,
        **dict.fromkeys(("p50_ms", "p95_ms", "p99_ms", "p999_ms")),
    }
    assert answer["tenants"] == {"executions": [{"tenant": "acme", "count": 3}], "failures": [], "refusals": []}


def test_who_fails_stands_out(running: Stage):
    running.submit(tenant="umbrella", target="handler:nobody", retry={"attempts": 2})
    running.work()

    answer = health(running)["pulse"]

    assert sum(minute["retried"] + minute["failed"] for minute in answer["minutes"]) == 1
    assert answer["tenants"]["failures"] == [{"tenant": "umbrella", "count": 1}]


def test_what_was_promoted_is_reported(running: Stage):
    running.submit(delay=200)
    running.travel(timedelta(minutes=2))
    running.scan()

    assert sum(minute["promoted"] for minute in health(running)["pulse"]["minutes"]) == 1
