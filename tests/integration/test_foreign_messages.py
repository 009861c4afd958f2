"""What comes of a message in a ready queue that Tickwheel did not write, through the real handlers."""

import json
from datetime import timedelta
from typing import Any

import pytest

from functions.adapters.dynamodb.dead_letters import RAW_LIMIT, DynamoDBDeadLetters
from testkit.events import Context, an_sqs_event
from tests.integration.stage import Stage

BODIES = {
    "no json": "hello",
    "something else's": '{"Records":[{"eventSource":"aws:s3"}]}',
    "deep": "[" * 100_000,
    "a huge number": f'{{"v":1,"t":"acme","j":[{{"d":{"9" * 5_000}}}]}}',
    "no jobs": '{"v":1,"t":"acme","j":[]}',
    "half a job": '{"v":1,"t":"acme","j":[{"i":"x","g":"handler:echo"}]}',
    "the largest that fits": "x" * 262_144,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_foreign_message_is_received_once_and_an_operator_finds_it(
    stage: Stage, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    sent = stage.sqs.send_message(QueueUrl=stage.urls["normal"], MessageBody=body)

    assert stage.work() == {"batchItemFailures": []}

    assert waiting(stage) == 0
    _, found = stage.call("GET", "/v1/dead-letters", query={"tenant": "?"})
    (letter,) = found["dead_letters"]
    assert (letter["error_class"], letter["is_replayable"]) == ("undecodable", False)
    assert stage.call("GET", f"/v1/dead-letters/{letter['id']}")[1]["raw"] == body[:RAW_LIMIT]
    (line,) = [vars(record) for record in caplog.records if record.getMessage() == "message_undecodable"]
    assert (line["message_id"], line["dead_letter"]) == (sent["MessageId"], letter["id"])


def test_the_same_message_again_because_its_worker_died_adds_no_dead_letter(stage: Stage) -> None:
    stage.sqs.send_message(QueueUrl=stage.urls["normal"], MessageBody="hello")
    event = an_sqs_event(stage.receive(), queue="normal")

    for _ in range(2):
        assert stage.module("worker").handler(event, Context()) == {"batchItemFailures": []}

    assert len(stage.letters()) == 1


def test_a_foreign_message_between_jobs_holds_none_of_them_up(stage: Stage) -> None:
    first, second = (stage.submit()["id"] for _ in range(2))
    stage.sqs.send_message(QueueUrl=stage.urls["normal"], MessageBody="hello")

    assert stage.work() == {"batchItemFailures": []}

    assert [stage.get(job)["state"] for job in (first, second)] == ["succeeded", "succeeded"]


def test_a_message_of_a_newer_version_waits_for_a_worker_that_can_read_it_and_is_then_kept(stage: Stage) -> None:
    newer = '{"v":2,"t":"acme","j":[{"new":"shape"}]}'
    stage.sqs.send_message(QueueUrl=stage.urls["normal"], MessageBody=newer)
    messages = stage.receive()

    answer = stage.module("worker").handler(an_sqs_event(messages, queue="normal"), Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": messages[0]["MessageId"]}]}
    assert stage.letters() == []

    dead = an_sqs_event(messages, queue="normal-dead", receive_count=10)
    assert stage.module("dead_letters").handler(dead, Context()) == {"batchItemFailures": []}
    (letter,) = stage.letters()
    assert letter["w"]["S"] == newer


def test_a_job_whose_packed_payload_is_broken_fails_for_good_instead_of_going_round(stage: Stage) -> None:
    job = stage.submit(payload={"text": "x" * 500})["id"]
    (message,) = stage.receive()
    body = json.loads(message["Body"])
    assert body["j"][0].pop("z")
    broken = {**message, "Body": json.dumps({**body, "j": [{**body["j"][0], "z": "!!!"}]})}

    answer = stage.module("worker").handler(an_sqs_event([broken], queue="normal"), Context())

    assert answer == {"batchItemFailures": []}
    assert (stage.get(job)["state"], stage.get(job)["error"]) == ("failed", "its payload cannot be read")
    _, found = stage.call("GET", "/v1/dead-letters", query={"tenant": "acme"})
    (letter,) = found["dead_letters"]
    status, shown = stage.call("GET", f"/v1/dead-letters/{letter['id']}")
    assert (status, shown["is_payload_gone"]) == (200, True)


def test_a_dead_letter_that_cannot_be_written_sends_back_its_message_and_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for body in ("first", "second", "third"):
        stage.sqs.send_message(QueueUrl=stage.urls["normal"], MessageBody=body)
    messages = stage.receive()
    (refused,) = [message["MessageId"] for message in messages if message["Body"] == "second"]
    put = DynamoDBDeadLetters.put

    def refuse(self: DynamoDBDeadLetters, letter: Any) -> None:
        if letter.raw == "second":
            raise TimeoutError
        put(self, letter)

    monkeypatch.setattr(DynamoDBDeadLetters, "put", refuse)
    event = an_sqs_event(messages, queue="normal-dead", receive_count=10)

    answer = stage.module("dead_letters").handler(event, Context())

    assert answer == {"batchItemFailures": [{"itemIdentifier": refused}]}
    assert sorted(letter["w"]["S"] for letter in stage.letters()) == ["first", "third"]


def waiting(stage: Stage) -> int:
    stage.travel(timedelta(hours=1))
    names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    counts = stage.sqs.get_queue_attributes(QueueUrl=stage.urls["normal"], AttributeNames=names)["Attributes"]
    return sum(map(int, counts.values()))
