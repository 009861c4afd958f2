"""What SQS is asked, request by request. What its answers mean is kept by the contract of ready queues."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from functions.adapters.sqs import ATTEMPTS, SqsReadyQueue
from functions.domain.far_ring.timer_record import decode_envelope
from functions.domain.instants import SECOND
from functions.domain.jobs.job import Payload, Priority
from functions.domain.trace import Trace
from functions.domain.wheel import Ring
from functions.ports.ready_queue import Receipt, Rejected
from testkit.builders import NOON, a_timer
from testkit.fakes import FakeClock

URLS = [f"https://sqs.example/1/{priority.name.lower()}" for priority in Priority]


@dataclass
class ScriptedSqs:
    """Remembers what it is asked, and answers as the script says; at its end it takes everything."""

    script: list[Callable[[list[dict[str, Any]]], dict[str, Any]]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        return self.script.pop(0)(request["Entries"]) if self.script else {}

    def change_message_visibility(self, **request: Any) -> None:
        self.requests.append(request)

    def change_message_visibility_batch(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        return self.script.pop(0)(request["Entries"]) if self.script else {"Successful": []}

    def entries(self) -> list[dict[str, Any]]:
        return [entry for request in self.requests for entry in request["Entries"]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sqs() -> ScriptedSqs:
    return ScriptedSqs()


@pytest.fixture
def queue(sqs: ScriptedSqs, clock: FakeClock) -> Iterator[SqsReadyQueue]:
    with ThreadPoolExecutor(2) as pool:
        yield SqsReadyQueue(cast("Any", sqs), URLS, clock=clock, pool=pool)


def test_messages_go_out_in_full_batches_of_ten_by_queue(queue: SqsReadyQueue, sqs: ScriptedSqs):
    timers = [a_timer(priority=Priority(number % 2)) for number in range(44)]

    queue.send(timers)

    sizes = Counter((request["QueueUrl"], len(request["Entries"])) for request in sqs.requests)
    assert sizes == {(URLS[0], 10): 2, (URLS[0], 2): 1, (URLS[1], 10): 2, (URLS[1], 2): 1}
    assert all(
        len({entry["Id"] for entry in request["Entries"]}) == len(request["Entries"]) for request in sqs.requests
    )


def test_a_message_belongs_to_the_group_of_its_tenant_so_that_sqs_is_fair(queue: SqsReadyQueue, sqs: ScriptedSqs):
    queue.send([a_timer(tenant="acme"), a_timer(tenant="globex")])

    assert [entry["MessageGroupId"] for entry in sqs.entries()] == ["acme", "globex"]


def test_only_what_is_promoted_says_where_it_comes_from(queue: SqsReadyQueue, sqs: ScriptedSqs, clock: FakeClock):
    queue.send([a_timer()])
    with ThreadPoolExecutor(1) as pool:
        SqsReadyQueue(cast("Any", sqs), URLS, clock=clock, pool=pool, ring=Ring.FAR).send([a_timer()])

    near, far = sqs.entries()
    assert "MessageAttributes" not in near
    assert far["MessageAttributes"] == {"ring": {"DataType": "String", "StringValue": "far"}}
    assert "MessageSystemAttributes" not in far


def test_a_promoted_job_goes_on_in_the_trace_that_its_submission_brought(sqs: ScriptedSqs, clock: FakeClock):
    trace = Trace(trace_id="4bf92f3577b34da6a3ce929d0e0e4736", span_id="00f067aa0ba902b7", flags=1)
    with ThreadPoolExecutor(1) as pool:
        SqsReadyQueue(cast("Any", sqs), URLS, clock=clock, pool=pool, ring=Ring.FAR).send([a_timer(trace=trace)])

    (entry,) = sqs.entries()
    assert entry["MessageSystemAttributes"] == {"AWSTraceHeader": {"DataType": "String", "StringValue": trace.xray}}


def test_what_is_near_goes_on_in_the_trace_of_whoever_sends_it(queue: SqsReadyQueue, sqs: ScriptedSqs):
    queue.send([a_timer(trace=Trace(trace_id="4bf92f3577b34da6a3ce929d0e0e4736", span_id="00f067aa0ba902b7", flags=1))])

    assert "MessageSystemAttributes" not in sqs.entries()[0]


def test_a_message_carries_the_timer_and_the_delay_that_is_left(queue: SqsReadyQueue, sqs: ScriptedSqs):
    timer = a_timer(due_at=NOON + timedelta(seconds=12.3))

    queue.send([timer])

    entry = sqs.entries()[0]
    assert decode_envelope(entry["MessageBody"]) == [timer]
    assert entry["DelaySeconds"] == 13


def test_large_messages_go_out_in_batches_that_sqs_takes(queue: SqsReadyQueue, sqs: ScriptedSqs):
    queue.send([a_timer(payload=Payload(pointer="x" * 150_000)) for _ in range(10)])

    assert [len(request["Entries"]) for request in sqs.requests] == [6, 4]
    for request in sqs.requests:
        assert sum(len(entry["MessageBody"].encode()) for entry in request["Entries"]) < 1_048_576


def test_a_sender_fault_is_permanent_and_not_tried_again(queue: SqsReadyQueue, sqs: ScriptedSqs):
    timers = [a_timer(), a_timer(), a_timer()]
    sqs.script = [refusing("1", sender_fault=True)]

    assert queue.send(timers) == [Rejected(timers[1], "InvalidMessageContents", is_permanent=True)]
    assert len(sqs.requests) == 1


def test_another_fault_is_tried_again_with_a_delay_counted_anew(
    queue: SqsReadyQueue, sqs: ScriptedSqs, clock: FakeClock
):
    timers = [a_timer(due_at=NOON + 10 * SECOND), a_timer(due_at=NOON + 20 * SECOND)]

    def refuse_slowly(entries: list[dict[str, Any]]) -> dict[str, Any]:
        clock.tick(timedelta(seconds=4))
        return refusing("1", sender_fault=False)(entries)

    sqs.script = [refuse_slowly]

    assert queue.send(timers) == []
    assert [[entry["DelaySeconds"] for entry in request["Entries"]] for request in sqs.requests] == [[10, 20], [16]]


def test_a_fault_that_stays_is_given_back_as_transient(queue: SqsReadyQueue, sqs: ScriptedSqs):
    timers = [a_timer(), a_timer()]
    sqs.script = [refusing("0", sender_fault=False)] * ATTEMPTS

    assert queue.send(timers) == [Rejected(timers[0], "InvalidMessageContents", is_permanent=False)]
    assert [len(request["Entries"]) for request in sqs.requests] == [2, 1, 1]


def test_a_batch_of_both_kinds_of_faults_is_taken_apart(queue: SqsReadyQueue, sqs: ScriptedSqs):
    timers = [a_timer() for _ in range(4)]

    def refuse(entries: list[dict[str, Any]]) -> dict[str, Any]:
        return {"Failed": [a_failure("2", sender_fault=False), a_failure("0", sender_fault=True)]}

    sqs.script = [refuse, refusing("0", sender_fault=True)]

    rejected = queue.send(timers)

    assert [(rejection.timer, rejection.is_permanent) for rejection in rejected] == [
        (timers[0], True),
        (timers[2], True),
    ]


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url="https://x"),
        ClientError({"Error": {"Code": "RequestThrottled"}}, "SendMessageBatch"),
    ],
    ids=["timeout", "throttled"],
)
def test_a_call_without_an_answer_is_tried_again_and_then_given_back(
    queue: SqsReadyQueue, sqs: ScriptedSqs, error: Exception
):
    def fail(_: Any) -> dict[str, Any]:
        raise error

    timer = a_timer()
    sqs.script = [fail]
    assert queue.send([timer]) == []

    sqs.script = [fail] * ATTEMPTS
    (rejected,) = queue.send([timer])
    assert (rejected.timer, rejected.is_permanent) == (timer, False)
    assert rejected.reason.startswith(type(error).__name__)
    assert str(error) not in rejected.reason


def test_a_call_that_is_wrong_is_an_error(queue: SqsReadyQueue, sqs: ScriptedSqs):
    def deny(_: Any) -> dict[str, Any]:
        raise ClientError({"Error": {"Code": "AccessDenied"}}, "SendMessageBatch")

    sqs.script = [deny]

    with pytest.raises(ClientError):
        queue.send([a_timer()])


@pytest.mark.parametrize(
    ("until", "seconds"),
    [
        (timedelta(seconds=19.2), 20),
        (timedelta(seconds=20), 20),
        (timedelta(0), 0),
        (timedelta(seconds=-9), 0),
        (timedelta(days=2), 11 * 3_600),
    ],
)
def test_deferring_hides_a_message_to_the_whole_second_after(
    queue: SqsReadyQueue, sqs: ScriptedSqs, until: timedelta, seconds: int
):
    queue.defer(Receipt("arn:aws:sqs:eu-west-1:1:high", "handle"), until=NOON + until)

    assert sqs.requests == [{"QueueUrl": URLS[1], "ReceiptHandle": "handle", "VisibilityTimeout": seconds}]


def test_the_messages_of_a_batch_are_hidden_by_one_request_which_says_why_one_is_not(
    queue: SqsReadyQueue, sqs: ScriptedSqs
):
    sqs.script.append(lambda _: {"Failed": [{"Id": "1", "Code": "MessageNotInflight"}]})
    receipts = [Receipt("arn:aws:sqs:eu-west-1:1:high", handle) for handle in ("one", "two")]

    assert queue.hide(receipts, hidden_for=timedelta(seconds=45)) == ["MessageNotInflight"]

    [request] = sqs.requests
    assert request == {
        "QueueUrl": URLS[1],
        "Entries": [
            {"Id": "0", "ReceiptHandle": "one", "VisibilityTimeout": 45},
            {"Id": "1", "ReceiptHandle": "two", "VisibilityTimeout": 45},
        ],
    }


def refusing(entry_id: str, *, sender_fault: bool) -> Callable[[list[dict[str, Any]]], dict[str, Any]]:
    return lambda _: {"Failed": [a_failure(entry_id, sender_fault=sender_fault)]}


def a_failure(entry_id: str, *, sender_fault: bool) -> dict[str, Any]:
    return {"Id": entry_id, "Code": "InvalidMessageContents", "Message": "why", "SenderFault": sender_fault}


def test_messages_without_a_job_of_which_none_is_taken_hold_up_nothing(queue: SqsReadyQueue, sqs: ScriptedSqs):
    sqs.script.append(lambda entries: {"Failed": [{"Id": entry["Id"], "Code": "InternalError"} for entry in entries]})

    assert queue.warm(Priority.LOW, [60] * 3) == 0
