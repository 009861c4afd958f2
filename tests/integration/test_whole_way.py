"""A job's whole way through the real handlers: submitted, promoted, run, settled."""

import json
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.far_ring.timer_record import decode_envelope
from functions.domain.jobs.claims import MAX_RESCUES, lease_of
from functions.ports.ledger import Claimed, Refused
from testkit.events import Context, an_sqs_event
from tests.http_sink import HttpSink, answering
from tests.integration.stage import BUCKET, Stage


def test_a_near_job_runs_its_handler_and_says_its_result(stage: Stage):
    job_id = stage.submit(payload={"n": 1})["id"]

    assert stage.work() == {"batchItemFailures": []}

    found = stage.get(job_id)
    assert (found["state"], found["attempt"], found["fence"]) == ("succeeded", 1, 1)
    assert found["result"] == {"payload": {"n": 1}, "attempt": 1}
    assert stage.receive() == []


def test_a_far_job_is_promoted_and_calls_its_http_target(stage: Stage, sink: HttpSink):
    job_id = stage.submit(target=f"{sink.url}/hook", payload={"n": 1}, delay=200, priority="high")["id"]
    assert [report["sent"] for report in stage.scan()] == [0, 0]

    stage.travel(timedelta(seconds=201))
    assert sum(report["sent"] for report in stage.scan()) == 1
    assert stage.work("high") == {"batchItemFailures": []}

    assert stage.get(job_id)["state"] == "succeeded"
    assert [(request.path, request.body) for request in sink.requests] == [("/hook", '{"n":1}')]
    assert sink.requests[0].headers["tickwheel-job-id"] == job_id


def test_a_promoted_job_is_not_promoted_or_run_again(stage: Stage, sink: HttpSink):
    stage.submit(target=sink.url, delay=200)
    stage.travel(timedelta(seconds=201))

    stage.scan()
    stage.work()
    stage.travel(timedelta(minutes=1))

    assert [report["sent"] for report in stage.scan()] == [0, 0]
    assert stage.work() == {"batchItemFailures": []}
    assert len(sink.requests) == 1


def test_a_failing_job_is_tried_again_and_ends_as_a_dead_letter(stage: Stage, sink: HttpSink):
    sink.respond = answering(500)
    job_id = stage.submit(target=sink.url, retry={"attempts": 2, "base": 1, "strategy": "fixed"})["id"]

    stage.work()
    assert stage.get(job_id)["state"] == "retrying"
    stage.work(within_seconds=5)

    found = stage.get(job_id)
    assert (found["state"], found["attempt"], found["error"]) == ("failed", 2, "the target answered 500")
    assert [request.headers["tickwheel-attempt"] for request in sink.requests] == ["1", "2"]
    letter = stage.letters()[0]
    assert (letter["i"]["S"], letter["e"]["S"], letter["a"]["N"]) == (job_id, "the target answered 500", "2")


def test_a_large_payload_reaches_its_target_and_is_forgotten(stage: Stage, sink: HttpSink):
    payload = {str(number): f"{number * 7919 % 104_729:x}" for number in range(5_000)}
    stage.submit(target=sink.url, payload=payload)

    stage.work()

    assert json.loads(sink.requests[0].body) == payload
    assert stage.s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0


def test_a_cancelled_job_does_not_run(stage: Stage, sink: HttpSink):
    job_id = stage.submit(target=sink.url)["id"]
    stage.call("DELETE", f"/v1/jobs/{job_id}")

    stage.work()

    assert sink.requests == []
    assert stage.get(job_id)["state"] == "cancelled"


def test_an_at_least_once_job_leaves_no_row(stage: Stage, sink: HttpSink):
    job_id = stage.submit(target=sink.url, delivery="at_least_once")["id"]

    stage.work()

    assert len(sink.requests) == 1
    assert stage.rows("ledger") == []
    assert stage.get(job_id)["state"] == "untracked"


def test_only_the_messages_that_must_come_back_are_reported(stage: Stage):
    stage.submit()
    newer = '{"v":2,"jobs":[]}'
    for body in ("hello", newer):
        stage.sqs.send_message(QueueUrl=stage.urls["normal"], MessageBody=body)
    stage.submit()
    messages = stage.receive()

    answer = stage.module("worker").handler(an_sqs_event(messages, queue="normal"), Context())

    returned = [message["MessageId"] for message in messages if message["Body"] == newer]
    assert len(messages) == 4
    assert answer == {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in returned]}


def test_a_batch_without_time_is_placed_again_and_acknowledged(stage: Stage, sink: HttpSink):
    job_id = stage.submit(target=sink.url)["id"]

    assert stage.work(context=Context(remaining_ms=1_000)) == {"batchItemFailures": []}

    assert stage.get(job_id)["state"] == "scheduled"
    assert sink.requests == []
    assert stage.work(within_seconds=3) == {"batchItemFailures": []}
    assert stage.get(job_id)["state"] == "succeeded"


def test_an_at_least_once_job_without_time_is_returned_and_hidden_for_a_moment(stage: Stage, sink: HttpSink):
    stage.submit(target=sink.url, delivery="at_least_once")
    messages = stage.receive()

    answer = stage.module("worker").handler(an_sqs_event(messages, queue="normal"), Context(remaining_ms=1_000))

    assert answer == {"batchItemFailures": [{"itemIdentifier": messages[0]["MessageId"]}]}
    assert sink.requests == []


def test_a_message_in_the_dead_letter_queue_is_kept_and_its_job_settled(stage: Stage):
    job_id = stage.submit(payload={"n": 1})["id"]
    stage.sqs.send_message(QueueUrl=stage.urls["normal"], MessageBody="hello")
    messages = stage.receive()
    [of_the_job] = [message for message in messages if message["Body"] != "hello"]
    for _ in range(1 + MAX_RESCUES):
        claim_and_die(stage, of_the_job)
        stage.travel(timedelta(minutes=1))
    event = an_sqs_event(messages, queue="normal-dead", receive_count=10)

    assert stage.module("dead_letters").handler(event, Context()) == {"batchItemFailures": []}

    found = stage.get(job_id)
    assert (found["state"], found["attempt"]) == ("failed", 1)
    assert found["error"].startswith("its message was received 10 times")
    letters = {letter["p"]["S"].split("#")[0]: letter for letter in stage.letters()}
    assert set(letters) == {"acme", "?"}
    assert letters["acme"]["i"]["S"] == job_id
    assert letters["?"]["w"]["S"] == "hello"
    # The same event again, because its answer was lost, leaves no other letters.
    assert stage.module("dead_letters").handler(event, Context()) == {"batchItemFailures": []}
    assert len(stage.letters()) == 2


def test_a_message_in_the_dead_letter_queue_whose_worker_still_runs_comes_back(stage: Stage):
    job_id = stage.submit()["id"]
    messages = stage.receive()
    claim_and_die(stage, messages[0])

    answer = stage.module("dead_letters").handler(
        an_sqs_event(messages, queue="normal-dead", receive_count=10), Context()
    )

    assert answer == {"batchItemFailures": [{"itemIdentifier": messages[0]["MessageId"]}]}
    assert stage.get(job_id)["state"] == "running"
    assert stage.letters() == []


def test_a_job_that_no_worker_has_claimed_goes_on_from_the_dead_letter_queue(stage: Stage, sink: HttpSink):
    job_id = stage.submit(target=sink.url)["id"]
    messages = stage.receive()

    answer = stage.module("dead_letters").handler(
        an_sqs_event(messages, queue="normal-dead", receive_count=10), Context()
    )

    assert answer == {"batchItemFailures": []}
    assert stage.letters() == []
    assert stage.work() == {"batchItemFailures": []}
    assert stage.get(job_id)["state"] == "succeeded"
    assert len(sink.requests) == 1


def test_the_sweeper_sends_a_straggler_again(stage: Stage, sink: HttpSink):
    job_id = stage.submit(target=sink.url, delay=200)["id"]
    # The audit of a stage begins with its first sweep; a job of before would not be audited.
    stage.module("sweeper").handler({}, Context())
    stage.travel(timedelta(seconds=201))
    stage.scan()
    stage.sqs.purge_queue(QueueUrl=stage.urls["normal"])
    stage.travel(timedelta(minutes=7))
    stage.scan()

    swept = stage.module("sweeper").handler({}, Context())

    assert swept == {"audited": 1, "stragglers": 1, "waits_for": [], "waits_for_queues": False, "healed": 0}
    stage.work()
    assert stage.get(job_id)["state"] == "succeeded"
    assert len(sink.requests) == 1


def test_a_sweeper_that_cannot_publish_budgets_does_its_other_work_and_fails(
    stage: Stage, sink: HttpSink, monkeypatch: pytest.MonkeyPatch
):
    sweeper = stage.module("sweeper")
    sweeper.handler({}, Context())
    job_id = stage.submit(target=sink.url, delay=200)["id"]
    stage.travel(timedelta(seconds=201))
    stage.scan()
    stage.sqs.purge_queue(QueueUrl=stage.urls["normal"])
    stage.travel(timedelta(minutes=4))
    stage.scan()
    sweeper.handler({}, Context())
    stage.travel(timedelta(minutes=3))
    stage.scan()
    monkeypatch.setattr(type(sweeper.publisher), "publish", _cannot_publish)

    with pytest.raises(Exception, match=r"ConnectionError at functions\.sweeper"):
        sweeper.handler({}, Context())

    stage.work()
    assert stage.get(job_id)["state"] == "succeeded"


def _cannot_publish(_: object) -> None:
    raise ConnectionError("the queues do not answer")


def test_a_job_that_came_back_after_its_worker_died_is_rescued(stage: Stage, sink: HttpSink):
    job_id = stage.submit(target=sink.url, timeout=5)["id"]
    messages = stage.receive()
    claim_and_die(stage, messages[0])
    worker = stage.module("worker")
    event = an_sqs_event(messages, queue="normal", receive_count=2)

    assert worker.handler(event, Context())["batchItemFailures"] != []
    stage.travel(timedelta(minutes=1))
    assert worker.handler(event, Context()) == {"batchItemFailures": []}

    found = stage.get(job_id)
    assert (found["state"], found["rescues"], found["fence"]) == ("succeeded", 1, 2)
    assert len(sink.requests) == 1


def test_every_invocation_logs_events_and_metrics_that_can_be_read(
    stage: Stage, sink: HttpSink, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    stage.submit(target=sink.url)
    stage.work()
    stage.scan()

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]

    assert {"job_settled", "shard_scanned"} <= {record.message for record in caplog.records}
    metrics = {name for line in lines if "_aws" in line for name in line}
    assert {"jobs_submitted", "attempts", "succeeded", "lag_ms", "late"} <= metrics
    assert not {"promoted", "oldest_bucket_age_s", "clock_skewed"} & metrics  # of a tick that found nothing


def test_the_lag_is_distinguished_by_the_ring_that_a_job_came_by(
    stage: Stage, sink: HttpSink, capsys: pytest.CaptureFixture[str]
):
    stage.submit(target=sink.url)
    stage.submit(target=sink.url, delay=200)
    stage.work()
    stage.travel(timedelta(seconds=201))
    stage.scan()
    stage.work()

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]

    assert [line["ring"] for line in lines if "_aws" in line and "lag_ms" in line] == ["near", "far"]


def claim_and_die(stage: Stage, message: Any) -> None:
    """What is left of a worker that died in the middle of an attempt."""
    now = stage.now()
    timer = decode_envelope(message["Body"])[0]
    ledger = stage.module("worker").wiring.ledger
    terms: Any = {"owner": f"dead at {now}", "lease_until": lease_of(timer.job.timeout, now=now), "now": now}
    answer = ledger.claim(timer, **terms)
    if isinstance(answer, Refused):
        answer = ledger.rescue(timer, row=answer.row, **terms)
    assert isinstance(answer, Claimed)


@pytest.mark.parametrize(
    ("to", "remedy"), [("2200-01-01T00:00:00Z", "use an instant from"), ("10 o'clock", "must be an RFC 3339 instant")]
)
def test_a_rewind_that_is_refused_says_its_operator_why(stage: Stage, to: str, remedy: str):
    answer = stage.module("scanner").handler({"rewind_to": to}, Context())

    assert list(answer) == ["refused"]
    assert remedy in answer["refused"]
