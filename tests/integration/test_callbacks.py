"""Callbacks through the real handlers, over tables and queues."""

from typing import Any

from tests.integration.stage import Stage

CALLBACKS = {"on_success": "handler:echo", "on_failure": "handler:echo", "on_end": "handler:echo"}


def test_a_job_that_has_ended_lists_its_callbacks_and_each_is_a_job(stage: Stage):
    job_id = stage.submit(**CALLBACKS)["id"]
    assert "callbacks" not in stage.get(job_id)

    stage.work(within_seconds=1)
    stage.work(within_seconds=1)

    job = stage.get(job_id)
    assert {name: job["job"][name] for name in CALLBACKS} == CALLBACKS
    assert [(each["on"], each["target"], each["state"]) for each in job["callbacks"]] == [
        ("on_success", "handler:echo", "succeeded"),
        ("on_end", "handler:echo", "succeeded"),
    ]
    callback = stage.get(job["callbacks"][0]["id"])
    assert (callback["state"], callback["delivery"]) == ("succeeded", "exactly_once")
    payload = stage.call("GET", f"/v1/jobs/{callback['id']}/payload")[1]["payload"]
    assert (payload["callback"], payload["job"]["id"], payload["job"]["state"]) == ("on_success", job_id, "succeeded")


def test_a_waiting_job_that_is_cancelled_calls_on_end_and_leaves_no_row(stage: Stage):
    jobs = [stage.submit(**options, delay=36_000)["id"] for options in (CALLBACKS, {"payload": {"C": ',"C":'}})]

    for job_id in jobs:
        assert stage.call("DELETE", f"/v1/jobs/{job_id}")[0] == 200
    stage.work(within_seconds=1)

    assert not [row for row in stage.rows("timers") if "j" in row]
    (callback,) = [row for row in stage.rows("ledger") if "#c-" in row["k"]["S"]]
    assert callback["s"]["S"] == "succeeded"


def test_callbacks_that_cannot_be_called_are_refused_each_by_its_name(stage: Stage):
    job: dict[str, Any] = {"tenant": "acme", "target": "handler:echo", "on_end": "ftp://example.com", "on_success": 7}
    status, problem = stage.call("POST", "/v1/jobs", job)
    assert (status, sorted(error["field"] for error in problem["errors"])) == (422, ["on_end", "on_success"])

    once = {"tenant": "acme", "target": "handler:echo", "delivery": "at_most_once", "on_end": "handler:echo"}
    status, problem = stage.call("POST", "/v1/jobs", once)
    assert (status, [error["field"] for error in problem["errors"]]) == (422, ["on_end"])
    assert "at_most_once" in problem["errors"][0]["message"]


def test_a_waiting_job_may_be_given_callbacks_and_none(stage: Stage):
    job_id = stage.submit(delay=3_600, on_end="handler:echo")["id"]

    for patch, kept in (({"on_failure": "handler:echo"}, ["on_end", "on_failure"]), ({"on_end": None}, ["on_failure"])):
        status, changed = stage.call("PATCH", f"/v1/jobs/{job_id}", patch)
        assert status == 200, changed
        job_id = changed["id"]
        assert sorted(stage.get(job_id)["job"].keys() & CALLBACKS.keys()) == kept


def test_a_schedule_keeps_the_callbacks_of_its_job(stage: Stage):
    definition = {"every": 3_600, "job": {"target": "handler:echo", **CALLBACKS}}
    query = {"tenant": "acme"}

    status, first = stage.call("PUT", "/v1/schedules/nightly", definition, query=query)

    assert (status, first["job"]) == (201, definition["job"])
    assert stage.call("PUT", "/v1/schedules/nightly", definition, query=query)[1]["version"] == first["version"]
