"""Jobs in the hands of their owners and targets, through the real handlers on moto."""

from datetime import timedelta
from typing import Any

import pytest

from functions.domain.instants import format_instant, parse_instant
from functions.worker.handlers.registry import HANDLERS
from testkit.events import Context, a_request
from tests.integration.stage import BUCKET, Stage


@pytest.fixture(autouse=True)
def _a_handler_that_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HANDLERS, "long", lambda payload, invocation: {"statusCode": 202})


class TestHeldJobs:
    def test_a_target_that_goes_on_by_itself_keeps_its_job_alive_and_completes_it(self, stage: Stage):
        job_id = a_held(stage)

        status, beat = tell(stage, job_id, "heartbeat", fence=1, lease="PT1H")
        assert status == 200
        assert (beat["id"], beat["state"], beat["cancelled"]) == (job_id, "running", False)
        assert parse_instant(beat["lease_until"]) - stage.now() > timedelta(minutes=59)

        assert tell(stage, job_id, "complete", fence=1, result={"sum": 3}) == (
            200,
            {"id": job_id, "state": "succeeded"},
        )
        assert stage.get(job_id)["result"] == {"sum": 3}
        assert tell(stage, job_id, "complete", fence=1)[0] == 200

    def test_a_target_may_report_a_result_of_256_kb_that_the_job_then_shows_whole(self, stage: Stage):
        job_id = a_held(stage)
        result = {"rows": ["x" * 1_000] * 250}

        assert tell(stage, job_id, "complete", fence=1, result=result)[0] == 200

        assert stage.get(job_id)["result"] == result
        (kept,) = stage.s3.list_objects_v2(Bucket=BUCKET)["Contents"]
        assert kept["Key"].startswith("results/acme/")

        stage.s3.delete_object(Bucket=BUCKET, Key=kept["Key"])
        assert stage.get(job_id)["result"]["truncated"] is True

    def test_what_a_handler_returns_is_kept_up_to_256_kb(self, stage: Stage, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setitem(HANDLERS, "report", lambda payload, invocation: "r" * payload["length"])
        ids = [
            stage.submit(target="handler:report", payload={"length": length}, delay=0)["id"]
            for length in (100, 200_000, 300_000)
        ]

        stage.work(within_seconds=2)

        short, long, too_long = (stage.get(job_id)["result"] for job_id in ids)
        assert (short, long) == ("r" * 100, "r" * 200_000)
        assert too_long["truncated"] is True
        assert len(too_long["body"]) > 262_000
        assert len(stage.s3.list_objects_v2(Bucket=BUCKET)["Contents"]) == 2

    def test_a_result_nested_too_deeply_to_be_answered_is_answered_as_a_text(
        self, stage: Stage, monkeypatch: pytest.MonkeyPatch
    ):
        nested: list[Any] = []
        for _ in range(500):
            nested = [nested]
        monkeypatch.setitem(HANDLERS, "deep", lambda payload, invocation: nested)
        job_id = stage.submit(target="handler:deep", delay=0)["id"]

        stage.work(within_seconds=2)

        assert stage.get(job_id)["result"] == "[" * 501 + "]" * 501

    def test_a_heartbeat_reports_a_requested_cancel_and_its_failure_is_the_end(self, stage: Stage):
        job_id = a_held(stage)
        assert stage.call("DELETE", f"/v1/jobs/{job_id}")[0] == 202

        assert tell(stage, job_id, "heartbeat", fence=1)[1]["cancelled"] is True
        assert tell(stage, job_id, "fail", fence=1, error="stopped") == (200, {"id": job_id, "state": "cancelled"})

    def test_a_failed_job_is_tried_again_and_its_last_failure_is_a_dead_letter(self, stage: Stage):
        job_id = a_held(stage, retry={"strategy": "fixed", "attempts": 2, "base": 3_600, "cap": 3_600})

        assert tell(stage, job_id, "fail", fence=1, error="no stock") == (200, {"id": job_id, "state": "retrying"})
        assert stage.get(job_id)["error"] == "no stock"
        status, now = stage.call("POST", f"/v1/jobs/{job_id}:run-now")
        assert (status, now["id"], now["state"]) == (202, job_id, "retrying")
        stage.work(within_seconds=2)
        assert stage.get(job_id)["attempt"] == 2

        assert tell(stage, job_id, "fail", fence=2, error="no stock", permanent=True)[1]["state"] == "failed"
        (letter,) = stage.letters()
        assert (letter["c"]["S"], letter["e"]["S"]) == ("target_failed", "no stock")

    def test_a_job_shows_what_was_asked_for_and_what_its_attempts_came_to(self, stage: Stage):
        job_id = a_held(
            stage,
            payload={"order": 7},
            tags=["urgent"],
            retry={"strategy": "fixed", "attempts": 2, "base": 3_600, "cap": 3_600},
        )
        tell(stage, job_id, "fail", fence=1, error="no stock")

        shown = stage.get(job_id)

        assert (shown["job"]["target"], shown["job"]["tags"]) == ("handler:long", ["urgent"])
        assert abs(parse_instant(shown["job"]["submitted_at"]) - stage.now()) < timedelta(minutes=1)
        (failed,) = shown["attempts"]
        assert (failed["attempt"], failed["error_class"], failed["error"]) == (1, "target_failed", "no stock")
        assert stage.call("GET", f"/v1/jobs/{job_id}/payload") == (200, {"id": job_id, "payload": {"order": 7}})

    def test_a_job_of_the_far_ring_is_shown_before_its_time_and_a_large_payload_too(self, stage: Stage):
        large = {"text": "".join(f"{number:x}" for number in range(20_000))}
        job_id = stage.submit(payload=large, delay="PT1H", target="handler:long")["id"]

        assert stage.get(job_id)["job"]["target"] == "handler:long"
        assert stage.call("GET", f"/v1/jobs/{job_id}/payload")[1]["payload"] == large

    def test_nothing_is_known_of_a_near_job_before_its_first_attempt(self, stage: Stage):
        job_id = stage.submit(delay=2)["id"]

        assert "job" not in stage.get(job_id)
        status, problem = stage.call("GET", f"/v1/jobs/{job_id}/payload")
        assert (status, problem["code"]) == (404, "not_kept")

    def test_a_stale_fence_and_a_settled_job_are_refused_with_the_state(self, stage: Stage):
        job_id = a_held(stage)

        status, problem = tell(stage, job_id, "heartbeat", fence=7)
        assert (status, problem["code"], problem["state"]) == (409, "stale_fence", "running")
        tell(stage, job_id, "complete", fence=1)
        status, problem = tell(stage, job_id, "fail", fence=1, error="x")
        assert (status, problem["code"], problem["state"]) == (409, "already_settled", "succeeded")

    def test_a_failure_that_comes_before_the_worker_s_note_is_to_be_reported_again_soon(self, stage: Stage):
        job_id = a_held(stage)
        key = {"k": {"S": stage.rows("ledger")[0]["k"]["S"]}}
        stage.dynamodb.update_item(TableName="ledger", Key=key, UpdateExpression="REMOVE j")

        body = {"fence": 1, "error": "x"}
        answer = stage.module("api").handler(a_request("POST", f"/v1/jobs/{job_id}/fail", body), Context())

        assert answer["statusCode"] == 409
        assert {name.lower(): value for name, value in answer["headers"].items()}["retry-after"] == "1"
        assert tell(stage, job_id, "complete", fence=1)[0] == 200

    @pytest.mark.parametrize(
        ("verb", "body", "field"),
        [
            ("heartbeat", {}, "fence"),
            ("heartbeat", {"fence": "1"}, "fence"),
            ("heartbeat", {"fence": 1, "lease": 0}, "lease"),
            ("heartbeat", {"fence": 1, "lease": "P1D"}, "lease"),
            ("complete", {"fence": 0}, "fence"),
            ("fail", {"fence": 1}, "error"),
            ("fail", {"fence": 1, "error": ""}, "error"),
            ("fail", {"fence": 1, "error": "x", "permanent": "yes"}, "permanent"),
            ("fail", {"fence": 1, "error": "x", "retry_after": -1}, "retry_after"),
        ],
    )
    def test_what_is_misshapen_is_refused_with_its_field(
        self, stage: Stage, verb: str, body: dict[str, Any], field: str
    ):
        status, problem = tell(stage, "j1~acme~2e~ttzw00~1~n0p8ww00~job-1", verb, **body)

        assert (status, problem["code"]) == (422, "invalid_input")
        assert [error["field"] for error in problem["errors"]] == [field]

    def test_a_job_that_keeps_no_row_to_report_is_refused(self, stage: Stage):
        job_id = stage.submit(delivery="at_least_once")["id"]

        status, problem = tell(stage, job_id, "complete", fence=1)

        assert (status, problem["code"]) == (409, "not_held")
        assert "only the target of an exactly_once job" in problem["detail"]


class TestChanges:
    def test_a_far_job_runs_now_under_its_id(self, stage: Stage):
        job_id = stage.submit(delay=3_600, payload=7)["id"]

        status, now = stage.call("POST", f"/v1/jobs/{job_id}:run-now")
        stage.work(within_seconds=2)

        assert (status, now["id"]) == (202, job_id)
        assert stage.rows("timers") == []
        found = stage.get(job_id)
        assert (found["state"], found["result"]) == ("succeeded", {"payload": 7, "attempt": 1})

    def test_a_far_job_is_moved_and_answers_under_its_old_id(self, stage: Stage):
        job_id = stage.submit(delay=3_600, payload=7)["id"]
        run_at = format_instant(stage.now() + timedelta(hours=2))

        status, moved = change(stage, job_id, run_at=run_at, payload=8, priority="high", timeout=5)

        assert status == 200
        assert (moved["due_at"], moved["moved_from"]) == (run_at, job_id)
        assert len(stage.rows("timers")) == 1
        found = stage.get(job_id)
        assert (found["id"], found["state"], found["priority"]) == (moved["id"], "scheduled", "high")
        assert stage.call("POST", f"/v1/jobs/{job_id}:run-now")[1]["id"] == moved["id"]
        stage.work("high", within_seconds=2)
        assert stage.get(job_id)["result"] == {"payload": 8, "attempt": 1}

    def test_a_cancel_under_the_old_id_is_answered_with_the_new_one(self, stage: Stage):
        job_id = stage.submit(delay=3_600)["id"]
        moved = change(stage, job_id, delay=7_200)[1]

        assert stage.call("DELETE", f"/v1/jobs/{job_id}") == (200, {"id": moved["id"], "state": "cancelled"})
        assert stage.rows("timers") == []

    def test_a_large_payload_goes_with_the_job(self, stage: Stage):
        payload = {str(number): f"{number * 7919 % 104_729:x}" for number in range(5_000)}
        job_id = stage.submit(delay=3_600, payload=payload, target="handler:echo")["id"]

        change(stage, job_id, delay=7_200)
        assert len(stage.s3.list_objects_v2(Bucket=BUCKET)["Contents"]) == 1
        stage.call("POST", f"/v1/jobs/{job_id}:run-now")
        stage.work(within_seconds=2)

        assert stage.get(job_id)["state"] == "succeeded"
        # Its handler gives back what it gets: that is its result, and stays.
        kept = [found["Key"] for found in stage.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]
        assert [key for key in kept if not key.startswith("results/")] == []

    def test_a_used_key_answers_with_the_moved_job(self, stage: Stage):
        job = {"delay": 3_600, "idempotency_key": "order-7"}
        first = stage.submit(**job)
        moved = change(stage, first["id"], delay=7_200)[1]

        again = stage.submit(**job)

        assert (again["id"], again["due_at"], again["replayed"]) == (moved["id"], moved["due_at"], True)
        assert len(stage.rows("timers")) == 1

    @pytest.mark.parametrize(
        ("patch", "code", "field"),
        [
            ({"tenant": "b"}, "invalid_job", "tenant"),
            ({"delivery": "at_most_once"}, "invalid_job", "delivery"),
            ({"idempotency_key": "k"}, "invalid_job", "idempotency_key"),
            ({"target": "gopher://x"}, "invalid_job", "target"),
            ({"timeout": 1_000}, "invalid_job", "timeout"),
            ({"pay": 1}, "invalid_job", "pay"),
            ({"target": None}, "invalid_job", "target"),
            ({"delay": 60}, "invalid_job", "run_at"),
            ({"delay": 600, "run_at": "2030-01-01T00:00:00Z"}, "invalid_job", "delay"),
        ],
    )
    def test_what_cannot_be_changed_is_refused_with_its_field(
        self, stage: Stage, patch: dict[str, Any], code: str, field: str
    ):
        job_id = stage.submit(delay=3_600)["id"]

        status, problem = change(stage, job_id, **patch)

        assert (status, problem["code"]) == (422, code)
        assert [error["field"] for error in problem["errors"]] == [field]
        assert stage.rows("ledger") == []

    def test_a_patch_is_an_object(self, stage: Stage):
        job_id = stage.submit(delay=3_600)["id"]

        assert stage.call("PATCH", f"/v1/jobs/{job_id}", [1])[1]["code"] == "invalid_input"

    @pytest.mark.parametrize(
        ("job", "code"),
        [({"delay": 60}, "too_late"), ({"delay": 3_600, "delivery": "at_least_once"}, "not_changeable")],
    )
    def test_a_job_that_cannot_be_changed_says_why(self, stage: Stage, job: dict[str, Any], code: str):
        job_id = stage.submit(**job)["id"]

        assert [stage.call("POST", f"/v1/jobs/{job_id}:run-now")[1]["code"], change(stage, job_id)[1]["code"]] == [
            code,
            code,
        ]

    def test_a_fire_of_a_schedule_points_to_its_schedule(self, stage: Stage):
        definition = {"every": 60, "job": {"target": "handler:echo"}}
        stage.call("PUT", "/v1/schedules/beat", definition, query={"tenant": "acme"})
        job_id = stage.call("POST", "/v1/schedules/beat:trigger", query={"tenant": "acme"})[1]["job"]

        status, problem = stage.call("POST", f"/v1/jobs/{job_id}:run-now")

        assert (status, problem["code"]) == (409, "not_changeable")
        assert "/v1/schedules/beat:trigger" in problem["detail"]

    def test_nothing_else_is_asked_of_a_job_by_post(self, stage: Stage):
        job_id = stage.submit(delay=3_600)["id"]

        for path in (job_id, f"{job_id}:walk"):
            status, problem = stage.call("POST", f"/v1/jobs/{path}")
            assert (status, problem["code"]) == (404, "no_such_route")
            assert ":run-now" in problem["detail"]


class TestExplanations:
    def test_a_far_job_waits(self, stage: Stage):
        accepted = stage.submit(delay=3_600)

        status, answer = stage.call("GET", f"/v1/jobs/{accepted['id']}/explain")

        assert status == 200
        assert (answer["id"], answer["state"], answer["reason"]) == (accepted["id"], "scheduled", "waiting")
        assert answer["at"] == accepted["due_at"]
        assert answer["detail"]
        assert answer["remedy"]
        assert answer["would_change_it"] == answer["remedy"]

    def test_a_held_job_and_its_end_are_reported(self, stage: Stage):
        job_id = a_held(stage)
        assert explain(stage, job_id)["reason"] == "held"

        tell(stage, job_id, "complete", fence=1)
        assert explain(stage, job_id)["reason"] == "succeeded"

    def test_an_at_least_once_job_is_untracked_in_the_end(self, stage: Stage):
        job_id = stage.submit(delivery="at_least_once")["id"]

        answer = explain(stage, job_id)

        assert (answer["state"], answer["reason"]) == ("untracked", "untracked")

    def test_what_is_no_job_is_not_found(self, stage: Stage):
        assert stage.call("GET", "/v1/jobs/x/explain")[1]["code"] == "not_a_job_id"


def a_held(stage: Stage, **job: Any) -> str:
    """The id of a job whose target has answered 202."""
    job_id = stage.submit(target="handler:long", **job)["id"]
    assert stage.work()["batchItemFailures"] == []
    assert stage.get(job_id)["state"] == "running"
    return job_id


def tell(stage: Stage, job_id: str, verb: str, **body: Any) -> tuple[int, Any]:
    return stage.call("POST", f"/v1/jobs/{job_id}/{verb}", body)


def change(stage: Stage, job_id: str, **patch: Any) -> tuple[int, Any]:
    return stage.call("PATCH", f"/v1/jobs/{job_id}", patch)


def explain(stage: Stage, job_id: str) -> dict[str, Any]:
    return stage.call("GET", f"/v1/jobs/{job_id}/explain")[1]
