import json
import re
import time
from datetime import timedelta
from typing import Any

import pytest

from functions.adapters.clients import TIMEOUT_SECONDS
from functions.api.http.problems import CONTENT_TYPE
from functions.domain.errors import WheelChanged
from functions.domain.instants import format_instant
from functions.runtime.deadline import COUNT_WITHIN, FLUSH_WITHIN
from infra.api import GATEWAY_ROUTES
from testkit.events import Context, a_request
from tests.integration.stage import BUCKET, Stage


def test_a_near_job_is_accepted_and_found(stage: Stage):
    accepted = stage.submit(delay=30)

    assert accepted["state"] == "scheduled"
    assert (accepted["tenant"], accepted["ring"], accepted["replayed"]) == ("acme", "near", False)
    assert stage.get(accepted["id"]) == {
        "id": accepted["id"],
        "tenant": "acme",
        "state": "scheduled",
        "due_at": accepted["due_at"],
        "priority": "normal",
        "delivery": "exactly_once",
    }


def test_a_far_job_is_a_row_of_the_far_ring(stage: Stage):
    accepted = stage.submit(delay="PT1H")

    assert accepted["ring"] == "far"
    assert len(stage.rows("timers")) == 1
    assert stage.rows("ledger") == []


def test_an_instant_with_an_offset_is_answered_in_utc(stage: Stage):
    due_at = stage.now() + timedelta(hours=1)

    accepted = stage.submit(run_at=due_at.isoformat())

    assert accepted["due_at"][:19] == format_instant(due_at)[:19]
    assert accepted["due_at"].endswith("Z")


@pytest.mark.parametrize("where", ["body", "header"])
def test_a_key_answers_with_the_first_job(stage: Stage, where: str):
    def submit(delay: int) -> dict[str, Any]:
        body = {"tenant": "acme", "target": "handler:echo", "delay": delay}
        if where == "body":
            return stage.call("POST", "/v1/jobs", {**body, "idempotency_key": "order-7"})[1]
        return stage.call("POST", "/v1/jobs", body, headers={"idempotency-key": "order-7"})[1]

    first, second = submit(3_600), submit(7_200)

    assert second == {**first, "replayed": True}
    assert len(stage.rows("timers")) == 1


def test_a_used_key_with_another_body_is_refused_with_the_id_of_the_job_that_has_it(stage: Stage):
    first = stage.submit(delay=3_600, idempotency_key="order-7", payload=1)

    body = {"tenant": "acme", "target": "handler:echo", "delay": 3_600, "idempotency_key": "order-7", "payload": 2}
    status, problem = stage.call("POST", "/v1/jobs", body)

    assert (status, problem["code"], problem["id"]) == (409, "key_reused", first["id"])
    assert len(stage.rows("timers")) == 1


def test_a_used_key_with_another_body_does_not_hold_up_the_others_of_its_batch(stage: Stage):
    first = stage.submit(idempotency_key="order-7", payload=1)
    job = {"tenant": "acme", "target": "handler:echo", "idempotency_key": "order-7"}

    _, answer = stage.call("POST", "/v1/jobs:batch", {"jobs": [{**job, "payload": 2}, {**job, "payload": 1}]})

    refused, replayed = answer["results"]
    assert (refused["status"], refused["problem"]["code"], refused["problem"]["id"]) == (409, "key_reused", first["id"])
    assert (replayed["status"], replayed["job"]["id"], replayed["job"]["replayed"]) == (202, first["id"], True)


def test_a_key_in_the_header_of_a_batch_is_refused(stage: Stage):
    jobs = [{"tenant": "acme", "target": "handler:echo"}]

    status, problem = stage.call("POST", "/v1/jobs:batch", {"jobs": jobs}, headers={"idempotency-key": "order-7"})

    assert (status, problem["code"]) == (422, "invalid_input")
    assert stage.receive() == []


def test_a_repeated_key_of_a_far_at_least_once_job_writes_its_row_again_until_it_is_cancelled(stage: Stage):
    job = {"delay": 3_600, "delivery": "at_least_once", "idempotency_key": "order-7"}
    first = stage.submit(**job)
    stage.dynamodb.delete_item(TableName="timers", Key={name: stage.rows("timers")[0][name] for name in ("p", "s")})

    assert stage.submit(**job) == {**first, "replayed": True}
    assert len(stage.rows("timers")) == 1

    stage.travel(timedelta(minutes=1))
    assert stage.call("DELETE", f"/v1/jobs/{first['id']}") == (200, {"id": first["id"], "state": "cancelled"})
    assert stage.submit(**job) == {**first, "state": "cancelled", "ring": None, "replayed": True}
    assert stage.rows("timers") == []


def test_a_large_payload_is_kept_in_the_bucket(stage: Stage):
    payload = {str(number): f"{number * 7919 % 104_729:x}" for number in range(5_000)}

    stage.submit(delay=3_600, payload=payload)

    objects = stage.s3.list_objects_v2(Bucket=BUCKET)["Contents"]
    body = stage.s3.get_object(Bucket=BUCKET, Key=objects[0]["Key"])["Body"].read()
    assert json.loads(body) == payload


def test_a_batch_of_500_is_taken_at_once_and_answered_in_order(stage: Stage):
    jobs = [
        {"tenant": f"tenant-{number % 7}", "target": "handler:echo", "payload": number, "delay": 3_600 * (number % 3)}
        for number in range(500)
    ]

    status, answer = stage.call("POST", "/v1/jobs:batch", {"jobs": jobs})

    assert status == 200
    assert [result["status"] for result in answer["results"]] == [202] * 500
    assert [result["job"]["tenant"] for result in answer["results"]] == [job["tenant"] for job in jobs]
    assert [result["job"]["ring"] for result in answer["results"][:3]] == ["near", "far", "far"]
    assert len({result["job"]["id"] for result in answer["results"]}) == 500


def test_one_bad_job_of_a_batch_does_not_hold_up_the_others(stage: Stage):
    good = {"tenant": "acme", "target": "handler:echo"}

    status, answer = stage.call(
        "POST",
        "/v1/jobs:batch",
        {"jobs": [good, {"tenant": "a b"}, {**good, "retry": {"base": "PT1H"}}, {**good, "delay": 10**30}, good]},
    )

    assert status == 200
    assert [result["status"] for result in answer["results"]] == [202, 422, 202, 422, 202]
    assert [error["field"] for error in answer["results"][1]["problem"]["errors"]] == ["target", "tenant"]


@pytest.mark.parametrize("jobs", [[], None, [{}] * 501, "jobs"])
def test_a_batch_of_none_or_of_more_than_500_is_refused(stage: Stage, jobs: Any):
    status, problem = stage.call("POST", "/v1/jobs:batch", {"jobs": jobs})

    assert (status, problem["code"]) == (422, "invalid_job")
    assert problem["errors"][0]["field"] == "jobs"


def test_every_problem_of_a_job_is_named(stage: Stage):
    status, problem = stage.call(
        "POST", "/v1/jobs", {"tenant": "a b", "target": "gopher://x", "run_at": "noon", "size": 7}
    )

    assert status == 422
    assert problem["type"] == "urn:tickwheel:problem:invalid_job"
    assert [error["field"] for error in problem["errors"]] == ["target", "tenant", "run_at", "size"]
    assert stage.rows("timers") == []


def test_a_problem_has_its_own_content_type(stage: Stage):
    answer = stage.module("api").handler(a_request("POST", "/v1/jobs", {}), Context())

    assert answer["headers"]["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("raw", ["", "{", "\x00", "nul"])
def test_a_body_that_is_not_json_is_refused(stage: Stage, raw: str):
    status, problem = stage.call("POST", "/v1/jobs", raw=raw)

    assert (status, problem["code"]) == (422, "invalid_input")
    assert problem["detail"].startswith("the body is not JSON")


def test_a_body_that_the_gateway_took_for_binary_is_read(stage: Stage):
    status, _ = stage.call("POST", "/v1/jobs", {"tenant": "acme", "target": "handler:echo"}, is_base64=True)

    assert status == 202


def test_numbers_that_json_cannot_say_are_refused_in_json(stage: Stage):
    raw = '{"tenant":"acme","target":"handler:echo","delay":1e999,"timeout":NaN}'

    status, problem = stage.call("POST", "/v1/jobs", raw=raw)

    assert status == 422
    assert [(error["field"], error["value"]) for error in problem["errors"]] == [
        ("timeout", "NaN"),
        ("delay", "Infinity"),
    ]


def test_a_bad_key_in_the_header_is_refused(stage: Stage):
    body = {"tenant": "acme", "target": "handler:echo"}

    status, _ = stage.call("POST", "/v1/jobs", body, headers={"idempotency-key": "k" * 256})

    assert status == 422


class TestJobs:
    def test_a_far_job_is_cancelled_and_says_so(self, stage: Stage):
        job_id = stage.submit(delay=3_600)["id"]

        assert stage.call("DELETE", f"/v1/jobs/{job_id}") == (200, {"id": job_id, "state": "cancelled"})
        assert stage.get(job_id)["state"] == "cancelled"
        assert stage.rows("timers") == []

    def test_a_job_that_has_run_cannot_be_cancelled(self, stage: Stage):
        job_id = stage.submit()["id"]
        stage.work()

        status, problem = stage.call("DELETE", f"/v1/jobs/{job_id}")

        assert (status, problem["code"]) == (409, "already_settled")

    def test_a_near_at_least_once_job_is_too_late_to_be_cancelled(self, stage: Stage):
        job_id = stage.submit(delivery="at_least_once", delay=30)["id"]

        status, problem = stage.call("DELETE", f"/v1/jobs/{job_id}")

        assert (status, problem["code"]) == (409, "too_late")

    def test_a_far_at_least_once_job_is_cancelled_and_then_unknown(self, stage: Stage):
        job_id = stage.submit(delivery="at_least_once", delay=3_600)["id"]
        assert stage.call("DELETE", f"/v1/jobs/{job_id}")[0] == 409
        stage.travel(timedelta(seconds=36))

        for _ in range(2):
            assert stage.call("DELETE", f"/v1/jobs/{job_id}") == (200, {"id": job_id, "state": "cancelled"})
        assert stage.call("GET", f"/v1/jobs/{job_id}")[0] == 404
        assert stage.rows("timers") == []

    def test_a_far_at_least_once_job_that_a_stalled_delete_could_let_through_is_too_late_to_be_cancelled(
        self, stage: Stage
    ):
        # GUARD + SKEW ahead, but not the 30 s more that a request may take.
        accepted = stage.submit(delivery="at_least_once", delay=180)

        status, problem = stage.call("DELETE", f"/v1/jobs/{accepted['id']}")

        assert accepted["ring"] == "far"
        assert (status, problem["code"]) == (409, "too_late")
        assert len(stage.rows("timers")) == 1

    def test_a_keyed_at_least_once_job_is_too_fresh_to_be_cancelled_in_its_first_seconds(self, stage: Stage):
        job_id = stage.submit(delivery="at_least_once", delay=3_600, idempotency_key="order-7")["id"]

        assert stage.call("DELETE", f"/v1/jobs/{job_id}")[0] == 409
        stage.travel(timedelta(seconds=36))

        assert stage.call("DELETE", f"/v1/jobs/{job_id}")[0] == 200
        assert stage.get(job_id)["state"] == "cancelled"

    def test_an_id_may_come_percent_encoded(self, stage: Stage):
        job_id = stage.submit(delay=3_600)["id"]

        status, found = stage.call("GET", f"/v1/jobs/{job_id.replace('~', '%7E')}")

        assert (status, found["id"]) == (200, job_id)

    @pytest.mark.parametrize("job_id", ["x", "j1~a~2e~-1~0~0~x", "j1~acme~2e~a0~1~b0~" + "y" * 500])
    @pytest.mark.parametrize("method", ["GET", "DELETE"])
    def test_what_is_no_job_id_is_not_found(self, stage: Stage, method: str, job_id: str):
        status, problem = stage.call(method, f"/v1/jobs/{job_id}")

        assert (status, problem["code"]) == (404, "not_a_job_id")

    def test_a_job_of_long_ago_is_not_found(self, stage: Stage):
        status, problem = stage.call("GET", "/v1/jobs/j1~acme~2e~a0~1~b0~x")

        assert (status, problem["code"]) == (404, "job_not_found")


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("PUT", "/v1/jobs"), ("GET", "/v1/jobs/"), ("PATCH", "/v2/jobs/x")]
)
def test_an_unknown_route_is_a_problem(stage: Stage, method: str, path: str):
    answer = stage.module("api").handler(a_request(method, path, route_key="ANY /{proxy+}"), Context())

    assert answer["statusCode"] == 404
    assert answer["headers"]["Content-Type"] == "application/problem+json"
    assert json.loads(answer["body"])["code"] == "no_such_route"


def test_every_route_that_is_deployed_is_described_and_answered(stage: Stage):
    status, description = stage.call("GET", "/openapi.json")

    described = [
        (method.upper(), path)
        for path, item in description["paths"].items()
        for method in item
        if method in {"get", "post", "delete", "put", "patch"}
    ]
    assert status == 200
    # A verb, such as `:pause`, is the end of an id to the gateway.
    assert {(method, re.sub(r"}:[\w-]+$", "}", path)) for method, path in described} == set(GATEWAY_ROUTES)
    for method, path in described:
        _, answer = stage.call(method, path.replace("{id}", "x"))
        assert answer.get("code") != "no_such_route"


def test_a_stage_whose_bucket_width_was_changed_does_not_start(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    stage.submit()
    monkeypatch.setenv("BUCKET_SECONDS", "30")
    stage.forget_modules()

    with pytest.raises(WheelChanged, match="BUCKET is 30 s, but this stage was first deployed with 60 s"):
        stage.module("api")


def test_the_functions_of_a_patient_stage_wait_longer_for_every_store(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATIENCE", "3")
    stage.forget_modules()

    wiring = stage.module("api").wiring

    clients = [wiring._dynamodb, wiring._writer, wiring._sqs, wiring._s3]
    assert {client.meta.config.read_timeout for client in clients} == {3 * TIMEOUT_SECONDS}


@pytest.mark.parametrize("patience", [1, 4])
def test_a_request_that_takes_too_long_is_answered_with_a_problem_in_time(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], patience: int
):
    monkeypatch.setenv("PATIENCE", str(patience))
    stage.forget_modules()
    api = stage.module("api")
    job_id = stage.submit(delay=3_600)["id"]
    capsys.readouterr()
    monkeypatch.setattr(api.wiring.ledger, "get", lambda key: time.sleep(60))

    kept = patience * (FLUSH_WITHIN + COUNT_WITHIN)
    answer = api.handler(a_request("GET", f"/v1/jobs/{job_id}"), Context(remaining_ms=int(1_000 * kept) + 10))

    assert (answer["statusCode"], answer["headers"]["Content-Type"]) == (503, CONTENT_TYPE)
    assert json.loads(answer["body"])["code"] == "out_of_time"
    assert '"requests_failed"' in capsys.readouterr().out
    assert stage.call("GET", "/openapi.json")[0] == 200


def test_what_is_written_down_behind_an_answer_does_not_hold_it_up(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    api = stage.module("api")
    monkeypatch.setattr(api, "FLUSH_WITHIN", 0.01)
    monkeypatch.setattr(type(api.wiring.audit), "flush", lambda _: time.sleep(60))

    assert stage.call("GET", "/openapi.json")[0] == 200


def test_an_answer_that_lambda_would_not_hand_on_says_what_to_do(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stage.module("api"), "MOST_ANSWERED", 100)

    status, problem = stage.call("GET", "/openapi.json")

    assert (status, problem["code"]) == (422, "answer_too_large")
    assert "`limit`" in problem["detail"]


def test_of_thousands_of_unknown_fields_some_are_reported(stage: Stage):
    status, problem = stage.call("POST", "/v1/jobs", {f"{'f' * 1_000}{number}": 1 for number in range(3_000)})

    assert status == 422
    assert len(problem["errors"]) == 20
    assert problem["detail"].endswith("; and 2982 more")
    assert len(json.dumps(problem)) < 20_000
