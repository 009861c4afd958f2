"""Flows through the real handlers, over tables and queues."""

from datetime import timedelta
from typing import Any

from tests.integration.stage import Stage

OF_STRIPE = {"key": "stripe", "rate": "1/h", "burst": 1}


def test_of_two_jobs_that_share_a_rate_the_second_waits_in_the_room_of_their_flow(stage: Stage):
    jobs: list[str] = []
    for _ in range(2):
        # One after the other: the conditional writes of two threads are not apart from each other here.
        jobs.append(stage.submit(flow=[OF_STRIPE])["id"])
        stage.work(within_seconds=1)

    assert sorted(stage.get(job)["state"] for job in jobs) == ["scheduled", "succeeded"]
    assert [row["t"]["S"] for row in stage.rows("tenants") if row["i"]["S"].startswith("room#")] == ["acme#stripe"]


def test_a_schedule_names_the_flows_of_its_job_as_it_was_told(stage: Stage):
    definition = {"every": 3_600, "job": {"target": "handler:echo", "flow": [OF_STRIPE, {"key": "own"}]}}

    first = put(stage, definition)

    assert first["job"]["flow"] == definition["job"]["flow"]
    assert put(stage, definition)["version"] == first["version"]


def test_a_waiting_job_may_be_given_another_flow_and_none(stage: Stage):
    job_id = stage.submit(flow=[OF_STRIPE], delay=3_600)["id"]

    for patch in ({"flow": [{"key": "other"}]}, {"flow": None}):
        status, changed = stage.call("PATCH", f"/v1/jobs/{job_id}", patch)
        assert status == 200, changed
        job_id = changed["id"]

    status, problem = stage.call("PATCH", f"/v1/jobs/{job_id}", {"flow": [{"key": "a", "burst": 2}]})
    assert (status, problem["errors"][0]["field"]) == (422, "flow.0.burst")


def test_a_flow_of_the_stage_is_refused_everywhere_until_an_operator_has_set_its_limits(stage: Stage):
    flow = [{"key": "smtp", "scope": "stage"}]
    job_id = stage.submit(delay=3_600)["id"]
    job = {"tenant": "acme", "target": "handler:echo", "flow": flow}
    schedule: dict[str, Any] = {"every": 3_600, "job": {"target": "handler:echo", "flow": flow}}

    refused = [
        stage.call("POST", "/v1/jobs", job),
        stage.call("PATCH", f"/v1/jobs/{job_id}", {"flow": flow}),
        stage.call("PUT", "/v1/schedules/nightly", schedule, query={"tenant": "acme"}),
    ]
    _, batch = stage.call("POST", "/v1/jobs:batch", {"jobs": [job]})

    assert [(status, problem["errors"][0]["field"]) for status, problem in refused] == [
        *((422, "flow.0.key"), (422, "flow.0.key"), (422, "job.flow.0.key"))
    ]
    assert batch["results"][0]["problem"]["errors"][0]["field"] == "flow.0.key"
    assert "an operator sets them" in refused[0][1]["detail"]


def put(stage: Stage, definition: dict[str, Any]) -> dict[str, Any]:
    status, schedule = stage.call("PUT", "/v1/schedules/nightly", definition, query={"tenant": "acme"})
    assert status in (200, 201), schedule
    return schedule


def test_a_fire_is_put_into_the_order_of_its_flow_by_the_scanner(stage: Stage):
    ordered = {"key": "books", "ordered": True}
    put(stage, {"every": 3_600, "job": {"target": "handler:echo", "flow": [ordered]}})
    stage.scan()

    stage.travel(timedelta(minutes=60))
    stage.scan()

    places = [row["i"]["S"] for row in stage.rows("tenants") if row["t"]["S"] == "acme#books"]
    assert [place for place in places if place.startswith("order#")]
