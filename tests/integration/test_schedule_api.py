"""Schedules through the real handler, over tables, queues and a bucket."""

import json
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.instants import format_instant
from tests.integration.stage import BUCKET, Stage
from tests.unit.test_schedule_bodies import BAD_VALUES, with_value

JOB = {"target": "handler:echo"}


def test_a_schedule_is_created_and_found(stage: Stage):
    status, created = put(stage, **hourly(stage), timezone="Europe/Berlin")

    assert status == 201
    assert (created["status"], created["timezone"]) == ("active", "Europe/Berlin")
    assert created["next_fire"]["at"] > format_instant(stage.now())
    assert call(stage, "GET", "/nightly") == (200, created)


def test_putting_the_same_definition_again_changes_nothing(stage: Stage):
    definition = hourly(stage)
    _, created = put(stage, **definition, spread="PT5M", calendar={"exclude": ["2027-12-25", "2027-12-24"]})

    again = put(stage, **definition, spread=300, calendar={"exclude": ["2027-12-24", "2027-12-25"]})

    assert again == (200, created)


def test_a_batch_is_put_schedule_by_schedule(stage: Stage):
    definition = hourly(stage)
    _, created = put(stage, **definition)
    schedules = [{"tenant": "acme", "id": f"s{number}", **definition} for number in range(23)]
    wrong = {"tenant": "acme", "id": "wrong", "cron": "no", "job": JOB}
    nightly = {"tenant": "acme", "id": "nightly", **definition}

    status, answer = stage.call("POST", "/v1/schedules:batch", {"schedules": [nightly, wrong, *schedules]})

    assert status == 200
    same, refused, *others = answer["results"]
    assert (same["status"], same["change"]) == (200, "unchanged")
    assert same["schedule"] == {name: created[name] for name in same["schedule"]}
    assert (refused["status"], refused["problem"]["code"]) == (422, "invalid_schedule")
    assert [(each["status"], each["change"], each["schedule"]["id"]) for each in others] == [
        (201, "created", f"s{number}") for number in range(23)
    ]
    assert call(stage, "GET", "/s7")[1]["next_fire"] == others[7]["schedule"]["next_fire"]
    # An alarm each.
    assert len(stage.rows("timers")) == 24
    again = stage.call("POST", "/v1/schedules:batch", {"schedules": schedules})[1]["results"]
    assert {each["change"] for each in again} == {"unchanged"}
    assert [each["schedule"] for each in again] == [each["schedule"] for each in others]


def test_its_next_fire_is_placed(stage: Stage):
    put(stage, **hourly(stage))

    assert len(stage.rows("timers")) == 1
    assert len(stage.rows("schedules")) == 1
    # Its own state, and what all schedules of its tenant make together.
    assert {row["k"]["S"] for row in stage.rows("schedule_state")} == {"acme#nightly", "acme#"}


def test_a_patch_is_a_new_version_and_keeps_the_rest(stage: Stage):
    _, created = put(stage, **hourly(stage), max_runs=7)

    status, patched = call(stage, "PATCH", "/nightly", {"cron": "30 6 * * *", "job": {"priority": "high"}})

    assert (status, patched["version"]) == (200, created["version"] + 1)
    assert (patched["cron"], patched["max_runs"]) == ("30 6 * * *", 7)
    assert patched["job"] == {**JOB, "priority": "high"}
    assert "every" not in patched


def test_a_dry_run_says_the_difference_and_writes_nothing(stage: Stage):
    definition = hourly(stage)
    _, created = put(stage, **definition)
    rows = stage.rows("schedules"), stage.rows("schedule_state"), stage.rows("timers")

    twice = {"every": {"interval": 1_800, "phase": definition["every"]["phase"] % 1_800}}
    status, answer = put(stage, **{**definition, **twice}, query={"dry_run": "true", "count": "4"})
    patched = call(stage, "PATCH", "/nightly", twice, query={"dry_run": "true", "count": "4"})

    assert (status, answer) == patched
    assert answer["change"] == "updated"
    assert len(answer["before"]) == len(answer["after"]) == 4
    assert {fire["at"] for fire in answer["before"][:2]} < {fire["at"] for fire in answer["after"]}
    assert (stage.rows("schedules"), stage.rows("schedule_state"), stage.rows("timers")) == rows
    assert call(stage, "GET", "/nightly")[1] == created


@pytest.mark.parametrize("payload", [{"n": 7}, {"n": "x" * 20_000}], ids=["inline", "stored beside it"])
def test_a_dry_run_says_whether_there_is_such_a_schedule_and_whether_it_is_another(stage: Stage, payload: Any):
    definition = {**hourly(stage), "job": {**JOB, "payload": payload}}

    def change_of(**changes: Any) -> str:
        return put(stage, **{**definition, **changes}, query={"dry_run": "true"})[1]["change"]

    assert change_of() == "created"
    put(stage, **definition)
    # What is said and is the default is what it is without.
    assert change_of(timezone="UTC") == "unchanged"
    assert change_of(job={**JOB, "payload": {**payload, "more": 1}}) == "updated"
    assert change_of(spread=60) == "updated"


def test_a_list_is_reported_page_by_page(stage: Stage):
    for number in range(5):
        put(stage, f"s{number}", **hourly(stage))

    found: list[str] = []
    after = ""
    while after is not None:
        status, page = call(stage, "GET", "", query={"limit": "2", "after": after})
        assert status == 200
        found += [schedule["id"] for schedule in page["schedules"]]
        after = page["next"]

    assert found == ["s0", "s1", "s2", "s3", "s4"]


def test_a_pause_keeps_its_note_and_a_resume_goes_on_from_now(stage: Stage):
    put(stage, **hourly(stage))

    status, paused = call(stage, "POST", "/nightly:pause", {"note": "the target moves"})
    assert (status, paused["status"], paused["note"], "next_fire" in paused) == (
        200,
        "paused",
        "the target moves",
        False,
    )
    stage.travel(timedelta(hours=5))
    status, resumed = call(stage, "POST", "/nightly:resume", {"note": "it has moved"})

    assert (status, resumed["status"], resumed["note"]) == (200, "active", "it has moved")
    assert resumed["version"] > paused["version"]
    assert resumed["next_fire"]["at"] > format_instant(stage.now())


def test_a_paused_schedule_stays_paused_when_it_is_changed(stage: Stage):
    put(stage, **hourly(stage))
    call(stage, "POST", "/nightly:pause", {"note": "why"})

    _, patched = call(stage, "PATCH", "/nightly", {"every": 1_800})

    assert (patched["status"], patched["note"]) == ("paused", "why")


def test_a_fire_runs_and_is_reported_with_its_outcome(stage: Stage):
    put(stage, **hourly(stage, job={**JOB, "payload": {"fire": "{{tickwheel.index}}"}}))
    stage.travel(timedelta(hours=1))
    stage.scan()
    stage.work(within_seconds=1)

    _, answer = call(stage, "GET", "/nightly")

    run = answer["runs"][0]
    assert (answer["fires"], answer["last_outcome"], run["state"], run["attempt"]) == (1, "succeeded", "succeeded", 1)
    assert answer["last_fire"] == run["fire_at"]
    assert stage.get(run["job_id"])["result"]["payload"] == {"fire": 0}


def test_a_trigger_runs_now_and_once_for_each_key(stage: Stage):
    put(stage, **hourly(stage))
    call(stage, "POST", "/nightly:pause")
    key = {"idempotency-key": "deploy 7"}

    (status, first), (_, second) = (call(stage, "POST", "/nightly:trigger", headers=key) for _ in range(2))
    stage.work()

    assert status == 202
    assert stage.get(first["job"])["state"] == stage.get(second["job"])["state"] == "succeeded"
    assert len(stage.rows("ledger")) == 1


def test_a_backfill_is_reported_beforehand_and_then_run(stage: Stage):
    put(stage, **hourly(stage))
    end = stage.now() - timedelta(hours=1)
    body = {"start": format_instant(end - timedelta(hours=3)), "end": format_instant(end), "per_minute": 6_000}

    status, answer = call(stage, "POST", "/nightly:backfill", {**body, "dry_run": True})
    assert (status, answer["count"], answer["jobs"], stage.receive()) == (200, 3, [], [])
    status, started = call(stage, "POST", "/nightly:backfill", body)
    for _ in started["jobs"]:
        stage.work(within_seconds=2)

    assert (status, started["count"], started["first"], started["last"]) == (202, 3, answer["first"], answer["last"])
    assert [stage.get(job_id)["state"] for job_id in started["jobs"]] == ["succeeded"] * 3


def test_a_preview_says_the_next_fires(stage: Stage):
    put(stage, cron="30 2 * * *", timezone="Europe/Berlin", job=JOB)

    status, answer = call(stage, "GET", "/nightly:preview", query={"count": "2", "after": "2027-10-30T12:00:00+02:00"})

    assert status == 200
    assert [fire["local"] for fire in answer["fires"]] == ["2027-10-31T02:30:00+02:00", "2027-11-01T02:30:00+01:00"]
    assert [mark["by"] for mark in answer["fires"][0]["marks"]] == ["fold"]


def test_a_deleted_schedule_is_gone_and_can_be_made_anew(stage: Stage):
    _, created = put(stage, **hourly(stage))

    for _ in range(2):
        assert call(stage, "DELETE", "/nightly") == (
            200,
            {"id": "nightly", "tenant": "acme", "status": "deleted"},
        )
    assert call(stage, "GET", "/nightly")[0] == 404
    status, answer = put(stage, **hourly(stage))

    assert (status, answer["fires"], answer["status"]) == (201, 0, "active")
    assert answer["version"] > created["version"]


def test_a_large_payload_is_kept_in_the_bucket_and_survives_a_patch(stage: Stage):
    payload = {str(number): f"{number * 7919 % 104_729:x}" for number in range(5_000)}

    _, created = put(stage, **hourly(stage, job={**JOB, "payload": payload}))
    _, patched = call(stage, "PATCH", "/nightly", {"spread": "PT5M"})

    assert created["job"] == patched["job"] == {**JOB, "payload": payload}
    assert stage.s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 1


def test_tenants_never_mix(stage: Stage):
    put(stage, **hourly(stage))
    put(stage, tenant="globex", **hourly(stage, every=1_800))
    call(stage, "POST", "/nightly:pause", tenant="globex")

    _, ours = call(stage, "GET", "/nightly")
    _, theirs = call(stage, "GET", "/nightly", tenant="globex")
    assert (ours["status"], ours["every"]["interval"], ours["tenant"]) == ("active", "PT1H", "acme")
    assert (theirs["status"], theirs["every"], theirs["tenant"]) == ("paused", {"interval": "PT30M"}, "globex")
    call(stage, "DELETE", "/nightly", tenant="globex")

    assert [schedule["tenant"] for schedule in call(stage, "GET", "")[1]["schedules"]] == ["acme"]
    assert call(stage, "GET", "", tenant="initech")[1]["schedules"] == []
    assert call(stage, "GET", "/nightly")[1] == ours


def test_fires_of_a_tenant_are_counted(stage: Stage):
    put(stage, **hourly(stage))
    put(stage, "b", every={"interval": 60, "from": "end"}, job=JOB)

    status, answer = stage.call("POST", "/v1/schedules:fires", {"tenant": "acme", "hours": 3})

    assert status == 200
    ends_on_runs, nightly = answer["results"]
    assert (nightly["id"], sum(nightly["minutes"].values())) == ("nightly", 3)
    assert ends_on_runs["problem"]["errors"][0]["field"] == "every.from"


def test_a_bad_value_is_refused_with_its_field_and_what_to_do_and_nothing_is_stored(stage: Stage):
    # The local stage takes plain HTTP.
    bad_here = [row for row in BAD_VALUES if row[1] != "http://example.com"]
    assert len(bad_here) >= 40
    for field, given, message in bad_here:
        status, problem = stage.call(
            "PUT", "/v1/schedules/nightly", raw=json.dumps(with_value(field, given)), query={"tenant": "acme"}
        )

        assert (status, problem["code"]) == (422, "invalid_schedule"), (field, problem)
        assert [error["field"] for error in problem["errors"]] == [field]
        assert problem["errors"][0]["message"].startswith(message)
    assert stage.rows("schedules") == []


@pytest.mark.parametrize(
    ("definition", "field", "message"),
    [
        ({"at": "2020-01-01T00:00:00Z"}, "at", "is past: nothing would ever fire"),
        ({"cron": "0 3 * * *", "end": "2020-01-01T00:00:00Z"}, "end", "is past: nothing would ever fire"),
        ({"every": 60, "jitter": 60}, "jitter", "must be shorter than the shortest time between two fires, 60 s"),
        ({"poisson": {"per_day": 5}, "spread": 60}, "spread", "has no meaning for poisson"),
        (
            {"cron": "0 3 * * *", "windows": [{"start": "09:00", "end": "10:00"}]},
            "windows",
            "leave nothing of what the rule names: nothing would ever fire",
        ),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(stage: Stage, definition: dict[str, Any], field: str, message: str):
    status, problem = put(stage, job=JOB, **definition)

    assert (status, problem["code"], problem["errors"][0]["field"]) == (422, "invalid_schedule", field)
    assert problem["errors"][0]["message"].startswith(message)
    assert stage.rows("schedules") == []


def hourly(stage: Stage, **changes: Any) -> dict[str, Any]:
    """Every hour, half an hour from now: no fire comes near while a test looks."""
    phase = int((stage.now() + timedelta(minutes=30)).timestamp()) % 3_600
    return {"every": {"interval": 3_600, "phase": phase}, "job": JOB, **changes}


def put(stage: Stage, schedule_id: str = "nightly", /, tenant: str = "acme", **fields: Any) -> tuple[int, Any]:
    query = fields.pop("query", None)
    return call(stage, "PUT", f"/{schedule_id}", fields, tenant=tenant, query=query)


def call(
    stage: Stage,
    method: str,
    path: str,
    body: Any = None,
    *,
    tenant: str = "acme",
    query: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[int, Any]:
    return stage.call(method, f"/v1/schedules{path}", body, query={"tenant": tenant, **(query or {})}, **options)
