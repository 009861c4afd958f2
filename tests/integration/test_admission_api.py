"""Rates, caps and shedding over the real tables: what comes in, and where it waits."""

import json
from datetime import timedelta
from typing import Any

import pytest

from functions.adapters.dynamodb.shards import DynamoDBShardStore
from functions.adapters.dynamodb.table import Table
from functions.adapters.dynamodb.tables import SHARDS
from functions.domain.jobs.job import Priority
from functions.domain.stage.conditions import Conditions
from functions.services.tenants import plans
from functions.services.tenants.plans import KNOWN_FOR
from testkit.events import Context, a_request
from tests.integration.stage import Stage

JOB = {"tenant": "acme", "target": "handler:echo", "delay": 5}


def limit(stage: Stage, **limits: Any) -> None:
    status, answer = stage.call("PATCH", "/v1/tenants/acme", {"limits": limits})
    assert status == 200, answer
    stage.travel(KNOWN_FOR)


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/jobs", JOB), ("/v1/jobs:batch", {"jobs": [JOB, {**JOB, "tenant": "umbrella"}]})]
)
def test_a_submission_parses_its_body_once_and_is_judged_by_one_revision_of_the_plans(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, path: str, body: Any
):
    stage.submit()
    store = stage.module("api").wiring.tenants
    parsed: list[str] = []
    revisions: list[Any] = []
    loads, revision = json.loads, store.revision
    monkeypatch.setattr(json, "loads", lambda text, **options: (parsed.append(text), loads(text, **options))[1])
    monkeypatch.setattr(store, "revision", lambda: (revisions.append(None), revision())[1])
    # So that each question would be one too many.
    monkeypatch.setattr(plans, "KNOWN_FOR", timedelta(seconds=-1))
    # What is counted behind the answer asks again.
    judged: list[int] = []
    monkeypatch.setattr(stage.module("api").counts, "answered", lambda: judged.append(len(revisions)))

    request = a_request("POST", path, body)

    answer = stage.module("api").handler(request, Context())

    assert answer["statusCode"] in (200, 202), answer
    assert parsed.count(request["body"]) == 1
    assert judged == [1]


def test_a_tenant_that_is_too_fast_learns_when_to_come_again(stage: Stage):
    limit(stage, submission_rate=0.1, submission_burst=2)

    batch = stage.call("POST", "/v1/jobs:batch", {"jobs": [JOB, JOB, JOB, {**JOB, "tenant": "umbrella"}]})[1]
    assert [result["status"] for result in batch["results"]] == [202, 202, 429, 202]

    answer = stage.module("api").handler(a_request("POST", "/v1/jobs", JOB), Context())
    problem = json.loads(answer["body"])
    assert (answer["statusCode"], problem["code"]) == (429, "rate_exceeded")
    assert 0 < problem["retry_after"] <= 10
    assert answer["headers"]["Retry-After"] == str(problem["retry_after"])

    stage.travel(timedelta(seconds=problem["retry_after"]))
    assert stage.call("POST", "/v1/jobs", JOB)[0] == 202


def test_a_stage_that_is_behind_takes_only_what_matters_more(stage: Stage):
    shards = DynamoDBShardStore(Table(stage.dynamodb, SHARDS.name))
    shed = frozenset(Priority) - {Priority.CRITICAL}
    shards.publish(Conditions(published_at=stage.now(), lags={Priority.HIGH: 900}, shed=shed))

    status, problem = stage.call("POST", "/v1/jobs", JOB)
    assert (status, problem["code"], problem["retry_after"]) == (503, "shed", 60)
    assert stage.call("POST", "/v1/jobs", {**JOB, "priority": "critical"})[0] == 202

    shards.publish(Conditions(published_at=stage.now()))
    stage.travel(timedelta(seconds=20))
    assert stage.call("POST", "/v1/jobs", JOB)[0] == 202


def test_near_jobs_of_a_capped_tenant_or_a_full_class_wait_in_the_far_ring(stage: Stage):
    limit(stage, execution_rate=0.01)
    DynamoDBShardStore(Table(stage.dynamodb, SHARDS.name)).publish(
        Conditions(published_at=stage.now(), budgets={Priority.LOW: 0})
    )

    accepted = stage.call("POST", "/v1/jobs:batch", {"jobs": [JOB] * 6})[1]["results"]
    low = stage.submit(tenant="umbrella", delay=5, priority="low")

    rings = [result["job"]["ring"] for result in accepted]
    assert (rings[0], rings[-1]) == ("near", "far")
    assert rings == sorted(rings, reverse=True)
    assert low["ring"] == "far"
    assert {row["s"]["S"].split("#")[1] for row in stage.rows("timers")} == {"acme", "umbrella"}


def test_the_jobs_of_a_whale_are_spread_over_shards(stage: Stage):
    limit(stage, subshards=2)

    jobs = [stage.submit(delay=3_600) for _ in range(12)]

    assert {row["p"]["S"].rsplit("#")[-1] for row in stage.rows("timers")} == {"0000", "0001"}
    # Each id locates its row, wherever that is.
    assert [stage.call("DELETE", f"/v1/jobs/{job['id']}")[0] for job in jobs] == [200] * 12
    assert stage.rows("timers") == []


def test_all_that_makes_work_takes_from_the_same_rate(stage: Stage):
    """Before, only what was handed in directly did."""
    schedule = {"every": 3_600, "start": "2026-01-01T00:00:00Z", "job": {"target": "handler:echo"}}
    assert stage.call("PUT", "/v1/schedules/nightly", schedule, query={"tenant": "acme"})[0] == 201
    far = stage.submit(delay=3_600)["id"]
    limit(stage, submission_rate=0.01, submission_burst=1)
    a_day = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}
    asked = (
        ("POST", "/v1/schedules/nightly:trigger", None, {"tenant": "acme"}),
        ("POST", "/v1/schedules/nightly:backfill", a_day, {"tenant": "acme"}),
        ("POST", f"/v1/jobs/{far}:run-now", None, {}),
        ("PATCH", f"/v1/jobs/{far}", {"priority": "low"}, {}),
    )

    for method, path, body, query in asked:
        stage.travel(timedelta(seconds=200))
        assert stage.call("POST", "/v1/jobs", JOB)[0] == 202
        status, problem = stage.call(method, path, body, query=query)
        assert (status, problem["code"]) == (429, "rate_exceeded"), path

    for method, path, body, query in asked[:2]:
        stage.travel(timedelta(seconds=200))
        assert stage.call(method, path, body, query=query)[0] == 202, path
        assert stage.call("POST", "/v1/jobs", JOB)[1]["code"] == "rate_exceeded"


def test_a_caller_who_reads_too_fast_learns_when_to_come_again(stage: Stage):
    limit(stage, read_rate=1)
    asked = {"tenant": "acme", "limit": 10}

    assert stage.call("GET", "/v1/schedules", query=asked)[0] == 200
    status, problem = stage.call("GET", "/v1/schedules", query=asked)
    assert (status, problem["code"], problem["retry_after"]) == (429, "read_rate_exceeded", 10)
    assert stage.call("GET", "/v1/schedules", query={**asked, "tenant": "umbrella"})[0] == 200
    assert stage.call("POST", "/v1/jobs", JOB)[0] == 202

    stage.travel(timedelta(seconds=10))
    assert stage.call("GET", "/v1/schedules", query=asked)[0] == 200


def test_what_all_schedules_of_a_tenant_come_to_is_limited_and_reported(stage: Stage):
    limit(stage, max_schedules=3, max_fires_per_minute=61)
    acme = {"tenant": "acme"}

    def put(name: str, every: int) -> tuple[int, Any]:
        definition = {"every": every, "job": {"target": "handler:echo"}}
        return stage.call("PUT", f"/v1/schedules/{name}", definition, query=acme)

    assert [put("seconds", 1)[0], put("minutes", 60)[0]] == [201, 201]
    status, problem = put("more", 3_600)
    assert (status, problem["code"], problem["fires_per_minute"], problem["limit"]) == (409, "fires_exceeded", 61, 61)

    assert stage.call("POST", "/v1/schedules/seconds:pause", query=acme)[0] == 200
    assert put("more", 3_600)[0] == 201
    status, problem = put("fourth", 3_600)
    assert (status, problem["code"], problem["count"], problem["limit"]) == (409, "schedules_exceeded", 3, 3)

    answer = {"count": 3, "max_schedules": 3, "fires_per_minute": 1.02, "max_fires_per_minute": 61}
    assert stage.call("GET", "/v1/tenants/acme")[1]["schedules"] == answer
    assert stage.call("GET", "/v1/tenants/acme/usage")[1]["schedules"] == answer

    status, problem = stage.call("POST", "/v1/schedules/seconds:resume", query=acme)
    assert (status, problem["code"], problem["added"]) == (409, "fires_exceeded", 60)
    for name in ("minutes", "more", "seconds"):
        assert stage.call("DELETE", f"/v1/schedules/{name}", query=acme)[0] == 200
    answer = stage.call("GET", "/v1/tenants/acme")[1]["schedules"]
    assert (answer["count"], answer["fires_per_minute"]) == (0, 0)


def test_schedules_of_a_version_that_did_not_count_are_counted_by_the_sweep_and_stop_nobody(stage: Stage):
    acme = {"tenant": "acme"}
    definition = {"every": 1, "job": {"target": "handler:echo"}}
    assert stage.call("PUT", "/v1/schedules/seconds", definition, query=acme)[0] == 201
    # As the version before has left them.
    stage.dynamodb.delete_item(TableName="schedule_state", Key={"k": {"S": "acme#"}})
    stage.dynamodb.update_item(
        TableName="schedule_state", Key={"k": {"S": "acme#seconds"}}, UpdateExpression="REMOVE e"
    )
    limit(stage, max_fires_per_minute=1)
    assert stage.call("GET", "/v1/tenants/acme")[1]["schedules"]["count"] == 0

    stage.module("sweeper").handler({}, Context())

    answer = stage.call("GET", "/v1/tenants/acme")[1]["schedules"]
    assert (answer["count"], answer["fires_per_minute"]) == (1, 60)
    assert stage.call("PATCH", "/v1/schedules/seconds", {"every": 2}, query=acme)[0] == 200
    assert stage.call("PUT", "/v1/schedules/more", definition, query=acme)[1]["code"] == "fires_exceeded"
