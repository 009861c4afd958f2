"""Tenants over the real tables: what an operator changes, and what a tenant may then hand in."""

from datetime import timedelta
from typing import Any

import pytest

from functions.api.jobs.submit import Submitter
from functions.services.tenants.plans import KNOWN_FOR
from testkit.builders import a_submission
from tests.integration.stage import Stage

ROLE = "arn:aws:iam::123456789012:role/billing"
DAILY = {"cron": "0 3 * * *", "job": {"target": "handler:echo"}}
MINE = {"tenant": "acme"}


def change(stage: Stage, body: dict[str, Any], *, tenant: str = "acme") -> dict[str, Any]:
    """Change a tenant, and wait until the whole stage acts by it."""
    status, answer = stage.call("PATCH", f"/v1/tenants/{tenant}", body)
    assert status == 200, answer
    stage.travel(KNOWN_FOR)
    return answer


def turn(stage: Stage, verb: str, path: str = "/v1/tenants/acme:") -> None:
    status, answer = stage.call("POST", f"{path}{verb}", {"note": "why"})
    assert status == 200, answer
    stage.travel(KNOWN_FOR)


def test_a_tenant_is_put_reported_listed_and_patched(stage: Stage):
    body = {"plan": "small", "limits": {"max_concurrency": 10}, "principals": [ROLE], "note": "ü"}

    status, put = stage.call("PUT", "/v1/tenants/acme", body)
    assert (status, put["version"]) == (200, 1), put
    assert put["limits"]["weight"] == 0.5
    assert put["limits"]["execution_rate"] == 10
    assert (put["own_limits"], put["principals"]) == (["max_concurrency"], [ROLE])
    nothing = {"count": 0, "fires_per_minute": 0, "max_schedules": 10_000, "max_fires_per_minute": 600}
    assert stage.call("GET", "/v1/tenants/acme") == (200, {**put, "schedules": nothing})
    assert stage.call("GET", "/v1/tenants") == (200, {"tenants": [put], "next": None})

    patched = change(stage, {"limits": {"subshards": 8, "max_concurrency": None}, "version": 1})
    assert (patched["own_limits"], patched["version"]) == (["subshards"], 2)
    status, problem = stage.call("PATCH", "/v1/tenants/acme", {"note": "late", "version": 1})
    assert (status, problem["code"]) == (409, "tenant_changed")


def test_a_plan_that_there_is_not_is_refused_with_those_there_are(stage: Stage):
    status, problem = stage.call("PUT", "/v1/tenants/acme", {"plan": "gold"})

    assert (status, problem["code"]) == (422, "invalid_input")
    assert "use one of default, small" in problem["detail"]
    assert stage.rows("tenants") == []


@pytest.mark.parametrize("tenant", [".", ".."])
def test_a_name_that_no_url_can_hold_is_refused_of_who_is_new_and_read_of_who_is_stored(stage: Stage, tenant: str):
    job = {"tenant": tenant, "target": "handler:echo"}
    status, problem = stage.call("POST", "/v1/jobs", job)
    assert (status, problem["code"], problem["errors"][0]["field"]) == (422, "invalid_job", "tenant")
    (result,) = stage.call("POST", "/v1/jobs:batch", {"jobs": [job]})[1]["results"]
    assert result["problem"]["errors"][0]["field"] == "tenant"
    for name, query in {"nightly": {"tenant": tenant}, tenant: MINE}.items():
        status, problem = stage.call("PUT", f"/v1/schedules/{name}", DAILY, query=query)
        assert status == 422, problem
    assert stage.call("PUT", f"/v1/tenants/{tenant}", {})[0] == 422
    export = {"tenant": tenant, "action": "export", "all": True}
    assert stage.call("POST", "/v1/operations", export)[1]["errors"][0]["field"] == "action"

    later = stage.now() + timedelta(hours=1)
    (stored,) = (
        stage.module("api").wiring.part("submitter", Submitter).submit([a_submission(tenant=tenant, due_at=later)])
    )
    assert stage.get(stored.job_id)["tenant"] == tenant
    assert stage.call("PATCH", f"/v1/jobs/{stored.job_id}", {"delay": 7_200})[0] == 200
    assert stage.call("DELETE", f"/v1/jobs/{stored.job_id}")[0] == 200
    assert stage.call("GET", f"/v1/tenants/{tenant}")[0] == 200
    assert stage.call("GET", "/v1/schedules", query={"tenant": tenant})[0] == 200
    query = {"confirm": tenant}
    assert stage.call("DELETE", f"/v1/tenants/{tenant}", query=query)[1]["status"] == "deleting"


def test_a_stage_that_is_paused_shows_in_its_row_and_takes_jobs_in_all_the_same(stage: Stage):
    turn(stage, "pause", "/v1/")

    assert [row["i"]["S"] for row in stage.rows("tenants")] == ["~everybody", "~revision"]
    assert stage.submit(delay=3_600)["state"] == "scheduled"
    turn(stage, "resume", "/v1/")
    assert stage.call("POST", "/v1/resume")[1]["version"] == 2


REFUSED_WHILE_CLOSED: list[tuple[str, str, Any, dict[str, Any] | None]] = [
    ("POST", "/v1/jobs", {"tenant": "acme", "target": "handler:echo"}, None),
    ("PUT", "/v1/schedules/weekly", DAILY, MINE),
    ("PUT", "/v1/schedules/nightly", DAILY, MINE),
    ("PATCH", "/v1/schedules/nightly", {"cron": "0 4 * * *"}, MINE),
    ("POST", "/v1/schedules/nightly:resume", {}, MINE),
    ("POST", "/v1/schedules/nightly:trigger", {}, MINE),
    (
        "POST",
        "/v1/schedules/nightly:backfill",
        {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"},
        MINE,
    ),
    ("POST", "/v1/dead-letters/{letter}:replay", {}, None),
    ("POST", "/v1/dead-letters:replay", {"tenant": "acme"}, None),
    ("POST", "/v1/operations", {"tenant": "acme", "action": "run_now", "all": True}, None),
]
ALLOWED_WHILE_CLOSED: list[tuple[str, str, Any, dict[str, Any] | None]] = [
    ("GET", "/v1/jobs/{job}", None, None),
    ("GET", "/v1/schedules/nightly", None, MINE),
    ("POST", "/v1/schedules/nightly:pause", {}, MINE),
    (
        "POST",
        "/v1/schedules/nightly:backfill",
        {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z", "dry_run": True},
        MINE,
    ),
    ("POST", "/v1/dead-letters:replay", {"tenant": "acme", "dry_run": True}, None),
    ("POST", "/v1/operations", {"tenant": "acme", "action": "run_now", "all": True, "dry_run": True}, None),
    ("POST", "/v1/operations", {"tenant": "acme", "action": "cancel", "all": True}, None),
    ("DELETE", "/v1/jobs/{job}", None, None),
    ("DELETE", "/v1/schedules/nightly", None, MINE),
    ("POST", "/v1/dead-letters:purge", {"tenant": "acme"}, None),
]


def seeded(stage: Stage) -> dict[str, str]:
    stage.submit(target="handler:none-of-this-name", retry={"attempts": 1})
    stage.work()
    (letter,) = stage.call("GET", "/v1/dead-letters", query=MINE)[1]["dead_letters"]
    assert stage.call("PUT", "/v1/schedules/nightly", DAILY, query=MINE)[0] == 201
    return {"letter": letter["id"], "job": stage.submit(delay=3_600)["id"]}


def test_a_tenant_that_is_draining_hands_nothing_in_and_may_do_all_else(stage: Stage):
    ids = seeded(stage)
    turn(stage, "drain")

    for method, path, body, query in REFUSED_WHILE_CLOSED:
        status, problem = stage.call(method, path.format(**ids), body, query=query)
        assert (status, problem["code"]) == (409, "tenant_closed"), (method, path, problem)
        assert "tenant acme is draining: what it has continues" in problem["detail"]
    for method, path, body, query in ALLOWED_WHILE_CLOSED:
        status, answer = stage.call(method, path.format(**ids), body, query=query)
        assert status < 300, (method, path, answer)


def test_a_tenant_that_goes_on_hands_in_again(stage: Stage):
    turn(stage, "drain")
    turn(stage, "resume")

    assert stage.submit(delay=3_600)["state"] == "scheduled"


def test_a_job_of_a_closed_tenant_does_not_hold_up_the_others_of_its_batch(stage: Stage):
    turn(stage, "drain")
    jobs = [{"tenant": tenant, "target": "handler:echo", "delay": 3_600} for tenant in ("globex", "acme", "globex")]

    status, answer = stage.call("POST", "/v1/jobs:batch", {"jobs": jobs})

    assert status == 200
    assert [result["status"] for result in answer["results"]] == [202, 409, 202]
    assert answer["results"][1]["problem"]["code"] == "tenant_closed"


def test_a_job_of_a_higher_class_than_its_tenant_may_use_is_refused_wherever_it_comes_from(stage: Stage):
    job = {"tenant": "acme", "target": "handler:echo", "delay": 3_600}
    waiting = stage.submit(delay=3_600)["id"]
    assert stage.call("PUT", "/v1/schedules/nightly", DAILY, query=MINE)[0] == 201
    change(stage, {"limits": {"top_priority": "normal"}})
    high = {**DAILY, "job": {"target": "handler:echo", "priority": "high"}}

    for method, path, body, query in (
        ("POST", "/v1/jobs", {**job, "priority": "high"}, None),
        ("POST", "/v1/jobs", {**job, "priority": "critical"}, None),
        ("PATCH", f"/v1/jobs/{waiting}", {"priority": "high"}, None),
        ("PUT", "/v1/schedules/weekly", high, MINE),
        ("PUT", "/v1/schedules/nightly", high, MINE),
        ("PATCH", "/v1/schedules/nightly", {"job": {"priority": "high"}}, MINE),
    ):
        status, problem = stage.call(method, path, body, query=query)
        assert (status, problem["code"]) == (422, "priority_not_allowed"), (method, path, problem)
        assert "but normal is the highest that tenant acme may use" in problem["detail"]
    _, batch = stage.call("POST", "/v1/jobs:batch", {"jobs": [{**job, "priority": "high"}, job]})
    assert [result["status"] for result in batch["results"]] == [422, 202]
    for priority in ("normal", "low"):
        assert stage.call("POST", "/v1/jobs", {**job, "priority": priority})[0] == 202


def test_what_had_a_higher_class_before_keeps_it_and_may_be_changed_otherwise(stage: Stage):
    waiting = stage.submit(delay=3_600, priority="high")["id"]
    high = {**DAILY, "job": {"target": "handler:echo", "priority": "high"}}
    assert stage.call("PUT", "/v1/schedules/nightly", high, query=MINE)[0] == 201
    change(stage, {"limits": {"top_priority": "normal"}})

    assert stage.call("PATCH", f"/v1/jobs/{waiting}", {"delay": 7_200})[0] == 200
    assert stage.call("PATCH", "/v1/schedules/nightly", {"cron": "0 4 * * *"}, query=MINE)[0] == 200


def test_another_tenant_s_limit_is_its_own(stage: Stage):
    change(stage, {"limits": {"top_priority": "low"}}, tenant="globex")

    assert stage.submit(delay=3_600, priority="critical")["state"] == "scheduled"


def test_a_default_spread_is_taken_by_schedules_of_its_tenant_alone(stage: Stage):
    change(stage, {"limits": {"spread": 600}})

    _, ours = stage.call("PUT", "/v1/schedules/nightly", DAILY, query=MINE)
    _, theirs = stage.call("PUT", "/v1/schedules/nightly", DAILY, query={"tenant": "globex"})

    assert ours["default_spread"] == {"spread": "PT10M", "from": "tenant"}
    assert "default_spread" not in theirs
    limits = {tenant: stage.call("GET", f"/v1/tenants/{tenant}")[1]["limits"] for tenant in ("acme", "globex")}
    assert (limits["acme"]["spread"], limits["globex"]["spread"]) == ("PT10M", "PT0S")
    # As it is stored: what another process reads fires at the same time.
    assert stage.call("GET", "/v1/schedules/nightly", query=MINE)[1] == ours


def test_every_change_is_a_line_of_the_log(stage: Stage, caplog: pytest.LogCaptureFixture):
    stage.call("PUT", "/v1/tenants/acme", {"plan": "small"}, caller="arn:aws:iam::123456789012:user/ann")

    (line,) = [vars(record) for record in caplog.records if record.message == "tenant_changed"]
    assert (line["caller"], line["tenant"], line["what"]) == ("arn:aws:iam::123456789012:user/ann", "acme", "put")
    assert (line["before"], line["after"]["plan"]) == ({}, "small")
