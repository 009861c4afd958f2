"""Rates, caps and shedding over the real tables: what comes in, and where it waits."""

import json
from datetime import timedelta
from typing import Any

from functions.adapters.dynamodb_shards import DynamoDBShardStore
from functions.adapters.tables import SHARDS
from functions.domain.conditions import Conditions
from functions.domain.job import Priority
from functions.plans import KNOWN_FOR
from tests.integration.events import Context, a_request
from tests.integration.stage import Stage

JOB = {"tenant": "acme", "target": "handler:echo", "delay": 5}


def limit(stage: Stage, **limits: Any) -> None:
    status, told = stage.call("PATCH", "/v1/tenants/acme", {"limits": limits})
    assert status == 200, told
    stage.travel(KNOWN_FOR)


def test_a_tenant_that_is_too_fast_is_told_when_to_come_again(stage: Stage):
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
    shards = DynamoDBShardStore(stage.dynamodb, SHARDS.name)
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
    DynamoDBShardStore(stage.dynamodb, SHARDS.name).publish(
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
