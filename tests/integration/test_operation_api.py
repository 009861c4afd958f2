"""Operations through the real handlers: asked for at the API, carried out by their executor, over tables and a bucket."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from functions.domain.instants import parse_instant
from functions.services.tenants.plans import KNOWN_FOR
from testkit.events import Context
from tests.integration.stage import BUCKET, Stage

ANN = "arn:aws:iam::123456789012:user/ann"
HOUR = 3_600
LARGE = {str(number): f"{number * 7919 % 104_729:x}" for number in range(5_000)}
CANCEL = {"tenant": "acme", "action": "cancel", "tag": "eu"}


def test_a_dry_run_counts_the_jobs_and_a_cancel_of_them_leaves_the_others(stage: Stage):
    meant = [stage.submit(delay=HOUR, tags=["eu"])["id"] for _ in range(3)]
    others = [
        stage.submit(delay=HOUR, tags=["us"])["id"],
        stage.submit(delay=HOUR, tags=["eu"], tenant="globex")["id"],
    ]

    counted = carried_out(stage, {**CANCEL, "dry_run": True})
    assert states(stage, [*meant, *others]) == ["scheduled"] * 5
    done = carried_out(stage, CANCEL)

    assert (counted["state"], counted["matched"], counted["done"], counted["share"]) == ("done", 3, 0, 1.0)
    assert sorted(each["job_id"] for each in counted["examples"]) == sorted(meant)
    assert (done["state"], done["matched"], done["done"], done["refused"]) == ("done", 3, 3, {})
    assert states(stage, meant) == ["cancelled"] * 3
    assert states(stage, others) == ["scheduled"] * 2


@pytest.mark.parametrize(
    ("chosen", "state"),
    [({"all": True}, "cancelled"), ({"target": "handler:echo"}, "cancelled"), ({"tag": "eu"}, None)],
)
def test_a_callback_that_waits_is_cancelled_as_a_job_of_its_tenant_but_by_no_tag(
    stage: Stage, chosen: dict[str, Any], state: str | None
):
    job_id = stage.submit(on_end="handler:echo", tags=["eu"])["id"]
    stage.work(within_seconds=1)
    stage.call("POST", "/v1/tenants/acme:pause", {})
    stage.travel(KNOWN_FOR)
    stage.work(within_seconds=1)
    (waiting,) = stage.get(job_id)["callbacks"]

    carried_out(stage, {"tenant": "acme", "action": "cancel", **chosen})

    (callback,) = stage.get(job_id)["callbacks"]
    assert (waiting["on"], callback["state"]) == ("on_end", state or waiting["state"])
    assert waiting["state"] != "cancelled"


def test_jobs_are_rescheduled_and_go_on_answering_to_their_ids(stage: Stage):
    job = stage.submit(delay=HOUR, tags=["eu"])
    careless = stage.submit(delay=HOUR, tags=["eu"], delivery="at_least_once")

    done = carried_out(stage, {**CANCEL, "action": "reschedule", "by": "PT2H"})

    moved = stage.get(job["id"])
    assert (done["done"], done["refused"]) == (1, {"not_changeable": 1})
    assert done["examples"][0]["job_id"] == careless["id"]
    assert moved["id"] != job["id"]
    assert parse_instant(moved["due_at"]) - parse_instant(job["due_at"]) == timedelta(hours=2)


def test_the_large_payload_of_a_job_is_kept_when_it_is_rescheduled_and_exported(stage: Stage):
    job = stage.submit(delay=HOUR, tags=["eu"], payload=LARGE)

    carried_out(stage, {**CANCEL, "action": "reschedule", "by": "PT2H"})
    done = carried_out(stage, {**CANCEL, "action": "export"})

    assert stage.get(job["id"])["id"] != job["id"]
    assert [line["payload"] for line in exported(stage, done)] == [LARGE]


def test_the_large_payload_of_a_schedule_is_exported_with_a_fire_that_waits(stage: Stage):
    schedule = {"every": 20, "job": {"target": "handler:echo", "payload": LARGE}}
    stage.call("PATCH", "/v1/tenants/acme", {"limits": {"execution_rate": 0.01}})
    stage.travel(KNOWN_FOR)
    assert stage.call("PUT", "/v1/schedules/often", schedule, query={"tenant": "acme"})[0] == 201

    done = carried_out(stage, {"tenant": "acme", "action": "export", "schedule": "often"})

    assert LARGE in [line["payload"] for line in exported(stage, done)]


def test_jobs_are_run_now(stage: Stage):
    job = stage.submit(delay=HOUR, tags=["eu"])

    done = carried_out(stage, {**CANCEL, "action": "run_now", "rate": 1_000})
    stage.work(within_seconds=2)

    assert (done["done"], done["rate"]) == (1, 1_000)
    assert stage.get(job["id"])["state"] == "succeeded"


def test_an_export_s_files_hold_the_jobs_and_may_be_downloaded_for_15_minutes(stage: Stage):
    job = stage.submit(delay=HOUR, tags=["eu"], payload={"invoice": 7})

    done = carried_out(stage, {**CANCEL, "action": "export"})

    [url] = done["parts"]
    signed = parse_qs(urlsplit(url).query)
    [line] = exported(stage, done)
    assert (line["id"], line["payload"], line["tags"]) == (job["id"], {"invoice": 7}, ["eu"])
    assert "Expires" in signed or signed["X-Amz-Expires"] == ["900"]


def test_an_operation_that_is_stopped_before_its_first_turn_does_nothing_more(stage: Stage):
    job = stage.submit(delay=HOUR, tags=["eu"])
    _, accepted = call(stage, "POST", "", CANCEL)
    path = f"/acme/{accepted['id']}"

    status, answer = call(stage, "POST", f"{path}:stop")
    work(stage)

    assert (status, answer["state"], answer["stop_requested"]) == (202, "waiting", True)
    assert call(stage, "GET", path)[1]["state"] == "stopped"
    assert call(stage, "POST", f"{path}:stop")[0] == 200
    assert states(stage, [job["id"]]) == ["scheduled"]


def test_a_repeat_under_its_key_is_the_same_operation_and_another_request_is_refused(stage: Stage):
    first = call(stage, "POST", "", CANCEL, headers={"idempotency-key": "k"})
    again = call(stage, "POST", "", CANCEL, headers={"idempotency-key": "k"})
    status, problem = call(stage, "POST", "", {**CANCEL, "tag": "us"}, headers={"idempotency-key": "k"})

    assert (first[0], again) == (202, first)
    assert (status, problem["code"], problem["id"]) == (409, "key_reused", first[1]["id"])


def test_a_tenant_s_operations_are_listed_and_no_more_than_ten_are_open(stage: Stage):
    ids = sorted(call(stage, "POST", "", CANCEL)[1]["id"] for _ in range(10))
    call(stage, "POST", "", {**CANCEL, "tenant": "globex"})

    status, problem = call(stage, "POST", "", CANCEL)
    _, first = call(stage, "GET", "", query={"tenant": "acme", "limit": 7})
    _, second = call(stage, "GET", "", query={"tenant": "acme", "limit": 7, "after": first["next"]})

    assert (status, problem["code"], problem["retry_after"]) == (429, "too_many_operations", 60)
    assert [each["id"] for each in (*first["operations"], *second["operations"])] == ids
    assert second["next"] is None
    work(stage)
    assert call(stage, "POST", "", CANCEL)[0] == 202


def test_whoever_asks_for_a_change_is_in_its_line_of_the_log(stage: Stage, caplog: pytest.LogCaptureFixture):
    accepted = carried_out(stage, CANCEL)
    moved, hastened, cancelled = (stage.submit(delay=HOUR)["id"] for _ in range(3))
    stage.call("PATCH", f"/v1/jobs/{moved}", {"delay": 2 * HOUR}, caller=ANN)
    stage.call("POST", f"/v1/jobs/{hastened}:run-now", caller=ANN)
    stage.call("DELETE", f"/v1/jobs/{cancelled}", caller=ANN)

    [line] = audit(caplog, "operation_accepted")
    assert (line["caller"], line["operation"], line["action"]) == (ANN, accepted["id"], "cancel")
    assert line["filter"]["tag"] == "eu"
    for event, job_id in (("job_moved", moved), ("job_hastened", hastened), ("job_cancelled", cancelled)):
        [line] = audit(caplog, event)
        assert (line["caller"], line["job_id"]) == (ANN, job_id)


def test_an_executor_that_is_not_there_is_noted_and_the_operation_is_taken(
    stage: Stage, caplog: pytest.LogCaptureFixture
):
    status, _ = call(stage, "POST", "", CANCEL)

    assert status == 202
    assert "ResourceNotFoundException" in audit(caplog, "waking_failed")[0]["error"]


def call(stage: Stage, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
    return stage.call(method, f"/v1/operations{path}", body, caller=ANN, **options)


def work(stage: Stage) -> None:
    stage.module("operations").handler({}, Context())


def carried_out(stage: Stage, asked: dict[str, Any]) -> dict[str, Any]:
    """An operation after a turn of its executor."""
    status, accepted = call(stage, "POST", "", asked)
    assert status == 202, accepted
    work(stage)
    _, answer = call(stage, "GET", f"/acme/{accepted['id']}")
    assert answer["state"] == "done", answer
    return answer


def exported(stage: Stage, done: dict[str, Any]) -> list[dict[str, Any]]:
    """The lines of the only file of an export."""
    [url] = done["parts"]
    key = urlsplit(url).path.lstrip("/").removeprefix(f"{BUCKET}/")
    text = gzip.decompress(stage.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()).decode()
    return [json.loads(line) for line in text.splitlines()]


def states(stage: Stage, job_ids: list[str]) -> list[str]:
    return [stage.get(job_id)["state"] for job_id in job_ids]


def audit(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.message == event]
