"""Jobs that are put into the bucket as lines of a file, through the real handler."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from testkit.events import Context, an_sqs_event
from tests.integration.stage import FILES, FILES_BUCKET, Stage

KEY = "submissions/acme/more/jobs.jsonl"
ECHO = {"target": "handler:echo"}


def put(stage: Stage, *lines: str, key: str = KEY) -> dict[str, Any]:
    """What a tenant does, and what S3 tells EventBridge of it."""
    body = "\n".join(lines).encode()
    etag = stage.s3.put_object(Bucket=FILES_BUCKET, Key=key, Body=body)["ETag"].strip('"')
    event = {
        "version": "0",
        "id": "17793124-05d4-b198-2fde-7ededc63b103",
        "detail-type": "Object Created",
        "source": "aws.s3",
        "time": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "detail": {
            "bucket": {"name": FILES_BUCKET},
            "object": {"key": key, "size": len(body), "etag": etag, "sequencer": "00617F08299329D189"},
            "reason": "PutObject",
        },
    }
    tell(stage, event)
    return event


def tell(stage: Stage, event: dict[str, Any]) -> None:
    stage.sqs.send_message(QueueUrl=stage.urls[FILES], MessageBody=json.dumps(event))


def take(stage: Stage) -> list[str]:
    """Turns, until none is visible; which came back."""
    returned: list[str] = []
    while messages := stage.receive(FILES):
        for message in messages:
            answer = stage.module("api").handler(an_sqs_event([message], queue=FILES), Context())
            failures = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
            if not failures:
                stage.sqs.delete_message(QueueUrl=stage.urls[FILES], ReceiptHandle=message["ReceiptHandle"])
            returned += failures
    return returned


def result(stage: Stage, name: str) -> Any:
    return stage.s3.get_object(Bucket=FILES_BUCKET, Key=f"results/acme/more/jobs.jsonl.{name}")["Body"].read().decode()


def accepted(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [vars(record) for record in caplog.records if record.getMessage() == "jobs_accepted"]
    return [job for line in lines for job in (*line["near"], *line["far"])]


def test_jobs_of_a_file_run_and_what_became_of_it_is_beside_it(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    due = {**ECHO, "run_at": stage.moment_ago()}
    event = put(stage, json.dumps(due), "nonsense", json.dumps({**ECHO, "tenant": "globex"}), json.dumps(due))
    tell(stage, event)

    assert take(stage) == []

    progress = json.loads(result(stage, "progress.json"))
    assert {name: progress[name] for name in ("state", "lines", "accepted", "refused")} == {
        "state": "done",
        "lines": 4,
        "accepted": 2,
        "refused": 2,
    }
    refused = [json.loads(line) for line in result(stage, "refused/000000000001.jsonl").splitlines()]
    assert [(line["line"], line["problem"]["code"]) for line in refused] == [(2, "invalid_input"), (3, "forbidden")]
    assert stage.work() == {"batchItemFailures": []}
    jobs = accepted(caplog)
    assert [(stage.get(job)["state"], stage.get(job)["tenant"]) for job in jobs] == [("succeeded", "acme")] * 2


def test_a_file_whose_turn_ran_out_of_time_goes_on_in_another_invocation(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("functions.api.jobs.file_intake._SHARE", 0.0)
    put(stage, *(json.dumps({**ECHO, "delay": 3_600, "payload": number}) for number in range(1_200)))

    assert take(stage) == []

    progress = json.loads(result(stage, "progress.json"))
    assert (progress["state"], progress["accepted"], progress["turn"]) == ("done", 1_200, 2)


def test_a_turn_that_fails_comes_again(stage: Stage) -> None:
    put(stage, json.dumps(ECHO))
    with pytest.MonkeyPatch.context() as patch:
        files = stage.module("api").file_intake.files
        patch.setattr(type(files), "progress", lambda *_: 1 / 0)
        assert len(take(stage)) == 1


def test_another_content_in_its_place_ends_the_reading_of_the_first(stage: Stage) -> None:
    first = put(stage, json.dumps(ECHO))
    stage.s3.put_object(Bucket=FILES_BUCKET, Key=KEY, Body=b"another")

    assert take(stage) == []

    assert first["detail"]["object"]["key"] == KEY
    assert stage.s3.list_objects_v2(Bucket=FILES_BUCKET, Prefix="results/").get("Contents", []) == []


def test_an_object_that_is_no_file_of_jobs_and_a_message_that_is_none_are_left_alone(stage: Stage) -> None:
    put(stage, json.dumps(ECHO), key="submissions/acme/readme.txt")
    for body in ("nonsense", "[]", "7", '{"detail": {"object": {"key": 7}}}', '{"turn_of_file": {"tenant": "acme"}}'):
        stage.sqs.send_message(QueueUrl=stage.urls[FILES], MessageBody=body)

    assert take(stage) == []

    assert stage.s3.list_objects_v2(Bucket=FILES_BUCKET, Prefix="results/").get("Contents", []) == []
