"""Collections through the real handlers, over tables and queues."""

from typing import Any

from tests.integration.stage import Stage

SOON = {"key": "export", "for": 1}
HOURLY = {"key": "export", "for": 3_600, "max": 20}


def test_jobs_of_a_key_are_given_in_one_call_and_each_has_its_own_end(stage: Stage):
    jobs = [stage.submit(collect=SOON, payload={"n": number})["id"] for number in range(3)]

    stage.work(within_seconds=5)

    found = [stage.get(job) for job in jobs]
    assert [each["state"] for each in found] == ["succeeded"] * 3
    assert {tuple(each["result"]) for each in found} == {("release",)}
    assert len({each["result"]["release"] for each in found}) == 1
    assert not [row for row in stage.rows("tenants") if row["i"]["S"].startswith("row#")]


def test_a_job_that_waits_in_its_collection_is_explained_and_can_be_cancelled(stage: Stage):
    first, second = (stage.submit(collect=HOURLY)["id"] for _ in range(2))

    status, why = stage.call("GET", f"/v1/jobs/{first}/explain")
    assert (status, why["reason"]) == (200, "collected"), why
    assert stage.call("DELETE", f"/v1/jobs/{first}")[0] == 200

    assert (stage.get(first)["state"], stage.get(second)["state"]) == ("cancelled", "scheduled")


def test_a_schedule_says_what_its_job_is_collected_with_as_it_was_told(stage: Stage):
    definition: dict[str, Any] = {"every": 3_600, "job": {"target": "handler:echo", "collect": HOURLY}}

    status, first = stage.call("PUT", "/v1/schedules/hourly", definition, query={"tenant": "acme"})

    assert (status, first["job"]["collect"]) == (201, {"key": "export", "for": "PT1H", "max": 20})


def test_a_waiting_job_may_be_given_other_terms_and_none(stage: Stage):
    job_id = stage.submit(collect=HOURLY, delay=3_600)["id"]

    for patch in ({"collect": {"key": "other"}}, {"collect": None}):
        status, changed = stage.call("PATCH", f"/v1/jobs/{job_id}", patch)
        assert status == 200, changed
        job_id = changed["id"]

    status, problem = stage.call("PATCH", f"/v1/jobs/{job_id}", {"collect": {"key": "a", "max": 7}})
    assert (status, problem["errors"][0]["field"]) == (422, "collect")
