"""Jobs that are sent to a tenant's queue instead of the API, through the real handler."""

import json
import os
from typing import Any

import pytest

from functions.services.tenants.plans import KNOWN_FOR
from testkit.events import Context, an_sqs_event
from tests.integration.stage import OF_ACME, Stage

QUEUE, REFUSED = OF_ACME
ECHO = {"target": "handler:echo"}


def send(stage: Stage, body: Any, **attributes: str) -> None:
    stage.sqs.send_message(
        QueueUrl=stage.urls[QUEUE],
        MessageBody=json.dumps(body),
        MessageAttributes={name: {"DataType": "String", "StringValue": text} for name, text in attributes.items()},
    )


def take(stage: Stage, *, context: Context | None = None) -> list[str]:
    """What the event source mapping does: receive a batch, invoke the API's function, delete what is done; what came back."""
    messages = stage.receive(QUEUE)
    answer = stage.module("api").handler(an_sqs_event(messages, queue=QUEUE), context or Context())
    returned = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
    for message in messages:
        if message["MessageId"] not in returned:
            stage.sqs.delete_message(QueueUrl=stage.urls[QUEUE], ReceiptHandle=message["ReceiptHandle"])
    return returned


def accepted(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [vars(record) for record in caplog.records if record.getMessage() == "jobs_accepted"]
    return [job for line in lines for job in (*line["near"], *line["far"])]


def test_jobs_of_messages_run_and_the_refused_are_where_their_tenant_finds_them(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    send(stage, {**ECHO, "run_at": stage.moment_ago()})
    send(stage, {"jobs": [{**ECHO, "delay": 3_600}, {"target": "nowhere"}, {**ECHO, "tenant": "globex"}]})

    assert take(stage) == []

    near, far = accepted(caplog)
    assert stage.work() == {"batchItemFailures": []}
    assert (stage.get(near)["state"], stage.get(far)["state"]) == ("succeeded", "scheduled")
    assert (stage.get(near)["tenant"], stage.get(far)["tenant"]) == ("acme", "acme")
    (refused,) = stage.receive(REFUSED)
    jobs = json.loads(refused["Body"])["jobs"]
    problems = json.loads(refused["MessageAttributes"]["problems"]["StringValue"])
    assert [job.get("tenant", job["target"]) for job in jobs] == ["nowhere", "globex"]
    assert [each["problem"]["code"] for each in problems] == ["invalid_job", "forbidden"]
    (line,) = [vars(record) for record in caplog.records if record.getMessage() == "message_refused"]
    assert (line["tenant"], line["sender"]) == ("acme", "AROAEXAMPLE:session")
    assert line["refused"] == {"invalid_job": 1, "forbidden": 1}


def test_what_comes_too_fast_is_hidden_and_comes_again_and_the_rest_of_a_batch_goes_on(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    slow = {"submission_rate": 0.1, "submission_burst": 2}
    assert stage.call("PATCH", "/v1/tenants/acme", {"limits": slow})[0] == 200
    stage.travel(KNOWN_FOR)
    send(stage, {"jobs": [{**ECHO, "payload": number} for number in range(3)]})

    assert take(stage) == []
    assert len(accepted(caplog)) == 2

    (returned,) = take(stage)
    assert returned
    assert stage.receive(QUEUE) == []
    counts = stage.sqs.get_queue_attributes(QueueUrl=stage.urls[QUEUE], AttributeNames=["All"])["Attributes"]
    assert counts["ApproximateNumberOfMessagesNotVisible"] == "1"


def test_an_invocation_without_time_gives_its_messages_back(stage: Stage) -> None:
    send(stage, ECHO)

    (returned,) = take(stage, context=Context(remaining_ms=3_400))

    assert returned


def test_a_large_payload_of_a_message_is_kept_as_any_other(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    send(stage, {**ECHO, "payload": os.urandom(100_000).hex(), "delay": 3_600})

    assert take(stage) == []

    (job,) = accepted(caplog)
    assert stage.get(job)["state"] == "scheduled"
    assert next(each["Key"] for each in stage.s3.list_objects_v2(Bucket="payloads")["Contents"]).startswith(
        "jobs/acme/"
    )
