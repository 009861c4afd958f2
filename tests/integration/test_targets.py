"""Jobs for what AWS runs, through the real handlers; and what a stage does not allow."""

import json
from typing import Any

import pytest

from tests.integration.stage import Stage

FOREIGN = "arn:aws:sns:us-east-1:123456789012:news"
SCHEDULE = {"every": "PT1H", "job": {"target": "handler:echo"}}


def test_a_job_for_a_queue_arrives_there(stage: Stage) -> None:
    url, arn = a_queue(stage)
    accepted = stage.submit(target=arn, payload={"n": 1})

    stage.work()

    (message,) = stage.sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"])["Messages"]
    assert message["Body"] == '{"n":1}'
    assert message["MessageAttributes"]["tickwheel-job-id"]["StringValue"] == accepted["id"]
    assert stage.get(accepted["id"])["state"] == "succeeded"


@pytest.mark.parametrize(
    ("arn", "state"),
    [
        ("arn:aws:lambda:us-east-1:123456789012:function:nobody", "failed"),
        ("arn:aws:sns:us-east-1:123456789012:nothing", "failed"),
        ("arn:aws:states:us-east-1:123456789012:stateMachine:nothing", "failed"),
        ("arn:aws:events:us-east-1:123456789012:event-bus/default", "succeeded"),
    ],
)
def test_a_job_asks_for_what_its_target_names_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, arn: str, state: str
) -> None:
    monkeypatch.setenv("ALLOWED_TARGETS", json.dumps([arn]))
    stage.forget_modules()
    job_id = stage.submit(target=arn, retry={"attempts": 2})["id"]

    stage.work()

    answer = stage.get(job_id)
    assert (answer["state"], answer["attempt"]) == (state, 1)


def test_a_submission_for_another_target_is_refused(stage: Stage) -> None:
    status, problem = stage.call("POST", "/v1/jobs", {"tenant": "acme", "target": FOREIGN})

    assert status == 422
    assert_refused(problem, field="target")


def test_a_batch_refuses_just_the_jobs_with_another_target(stage: Stage) -> None:
    jobs = [{"tenant": "acme", "target": target} for target in ("handler:echo", FOREIGN)]

    _, answer = stage.call("POST", "/v1/jobs:batch", {"jobs": jobs})

    assert [result["status"] for result in answer["results"]] == [202, 422]
    assert_refused(answer["results"][1]["problem"], field="target")


def test_a_schedule_for_another_target_is_neither_made_nor_changed_into_one(stage: Stage) -> None:
    query = {"tenant": "acme"}
    status, problem = stage.call("PUT", "/v1/schedules/s", {**SCHEDULE, "job": {"target": FOREIGN}}, query=query)
    assert status == 422
    assert_refused(problem, field="job.target")

    assert stage.call("PUT", "/v1/schedules/s", SCHEDULE, query=query)[0] == 201
    status, problem = stage.call("PATCH", "/v1/schedules/s", {"job": {"target": FOREIGN}}, query=query)
    assert status == 422
    assert_refused(problem, field="job.target")


def test_a_ready_queue_is_no_target_even_where_every_queue_is_allowed(stage: Stage) -> None:
    own = "arn:aws:sqs:us-east-1:123456789012:Tickwheel-local-Scheduler-ReadyNormal1A2B-xYz"

    status, problem = stage.call("POST", "/v1/jobs", {"tenant": "acme", "target": own})

    assert status == 422
    assert "names a resource of Tickwheel itself" in problem["detail"]


def test_a_job_whose_target_is_not_allowed_any_more_fails_for_good(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, arn = a_queue(stage)
    accepted = stage.submit(target=arn)
    monkeypatch.setenv("ALLOWED_TARGETS", '["https://*"]')
    stage.forget_modules()

    stage.work()

    assert stage.get(accepted["id"])["state"] == "failed"
    assert "is not among the targets that this stage allows" in json.dumps(stage.letters())
    assert "Messages" not in stage.sqs.receive_message(QueueUrl=url)


def a_queue(stage: Stage) -> tuple[str, str]:
    """Its URL and its ARN."""
    return stage.sqs.create_queue(QueueName="orders")["QueueUrl"], "arn:aws:sqs:us-east-1:123456789012:orders"


def assert_refused(problem: dict[str, Any], *, field: str) -> None:
    (error,) = problem["errors"]
    assert (error["field"], error["value"]) == (field, FOREIGN)
    assert "arn:aws:sqs:*:*:*: use one of them, or have it added to the stage's `targets`" in error["message"]
