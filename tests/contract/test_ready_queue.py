"""What every ready queue keeps: a message each timer, delayed, in the queue of its class, deferred but never lost."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from functions.adapters.sqs import SqsReadyQueue
from functions.domain.far_ring.timer_record import decode_envelope
from functions.domain.instants import SECOND
from functions.domain.jobs.job import Precision, Priority, Timer
from functions.domain.stage.conditions import Depth
from functions.ports.ready_queue import ReadyDepths, Receipt
from testkit.builders import NOON, a_timer
from testkit.fakes import FakeClock, InMemoryReadyQueue

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_WITHOUT_A_NEW_SESSION: Any = {"core": {"reset_boto3_session": False}}


@dataclass(frozen=True, slots=True)
class QueueSubject:
    """A ready queue, what a worker receives from one of its classes now, and how many messages are delayed there."""

    queue: InMemoryReadyQueue | SqsReadyQueue
    clock: FakeClock
    receive: Callable[[Priority], list[tuple[Timer, Receipt]]]
    delayed: Callable[[Priority], int]
    depths: ReadyDepths


@pytest.fixture(scope="session")
def _moto_sqs() -> "SQSClient":
    return boto3.Session().client("sqs", region_name="us-east-1")


@pytest.fixture(params=["memory", "moto"])
def subject(request: pytest.FixtureRequest, _moto_sqs: "SQSClient", pool: ThreadPoolExecutor) -> Iterator[QueueSubject]:
    clock = FakeClock()
    if request.param == "memory":
        yield _in_memory(InMemoryReadyQueue(clock), clock)
        return
    with mock_aws(config=_WITHOUT_A_NEW_SESSION):
        urls = [_moto_sqs.create_queue(QueueName=priority.name.lower())["QueueUrl"] for priority in Priority]
        yield _on_sqs(_moto_sqs, urls, clock, pool)


def test_a_timer_that_is_due_is_received_at_once(subject: QueueSubject):
    timer = a_timer()

    assert subject.queue.send([timer]) == []
    assert received(subject, Priority.NORMAL) == [timer]


def test_sending_nothing_sends_nothing(subject: QueueSubject):
    assert subject.queue.send([]) == []


def test_each_class_has_a_queue_of_its_own(subject: QueueSubject):
    timers = {priority: a_timer(priority=priority) for priority in Priority}

    subject.queue.send(list(timers.values()))

    assert {priority: received(subject, priority) for priority in Priority} == {
        priority: [timer] for priority, timer in timers.items()
    }


def test_every_timer_of_many_batches_is_sent_once(subject: QueueSubject):
    timers = [a_timer(priority=Priority(number % 4)) for number in range(95)]

    assert subject.queue.send(timers) == []

    found = [timer.job.identity for priority in Priority for timer in received(subject, priority)]
    assert sorted(found) == sorted(timer.job.identity for timer in timers)


def test_equal_timers_are_messages_of_their_own(subject: QueueSubject):
    timer = a_timer()

    subject.queue.send([timer, timer])

    assert received(subject, Priority.NORMAL) == [timer, timer]


def test_a_timer_that_is_not_due_is_delayed(subject: QueueSubject):
    subject.queue.send([a_timer(due_at=NOON + 100 * SECOND)])

    assert received(subject, Priority.NORMAL) == []
    assert subject.delayed(Priority.NORMAL) == 1


def test_the_delay_counts_from_the_sender_s_clock_when_the_batch_goes_out(subject: QueueSubject):
    timer = a_timer(due_at=NOON + 100 * SECOND)
    subject.clock.tick(timedelta(seconds=100))

    subject.queue.send([timer])

    assert received(subject, Priority.NORMAL) == [timer]


def test_an_exact_timer_goes_out_early_enough_to_be_held(subject: QueueSubject):
    timer = a_timer(due_at=NOON + timedelta(seconds=1.9), precision=Precision.EXACT)

    subject.queue.send([timer])

    assert received(subject, Priority.NORMAL) == [timer]


def test_a_received_message_is_hidden_from_other_workers(subject: QueueSubject):
    subject.queue.send([a_timer()])
    received(subject, Priority.NORMAL)

    assert received(subject, Priority.NORMAL) == []


def test_a_message_deferred_until_now_comes_back(subject: QueueSubject):
    timer = a_timer()
    subject.queue.send([timer])
    (_, receipt) = subject.receive(Priority.NORMAL)[0]

    subject.queue.defer(receipt, until=NOON - SECOND)

    assert received(subject, Priority.NORMAL) == [timer]


def test_a_deferred_message_stays_hidden_until_then(subject: QueueSubject):
    subject.queue.send([a_timer()])
    (_, receipt) = subject.receive(Priority.NORMAL)[0]

    subject.queue.defer(receipt, until=NOON + timedelta(minutes=5))

    assert received(subject, Priority.NORMAL) == []


def test_messages_that_are_hidden_come_back_no_sooner(subject: QueueSubject):
    subject.queue.send([a_timer(), a_timer()])
    receipts = [receipt for _, receipt in subject.receive(Priority.NORMAL)]
    for receipt in receipts:
        subject.queue.defer(receipt, until=NOON)

    assert subject.queue.hide(receipts, hidden_for=timedelta(minutes=5)) == []

    assert received(subject, Priority.NORMAL) == []


def test_messages_that_are_hidden_for_no_time_come_back(subject: QueueSubject):
    timers = [a_timer(), a_timer()]
    subject.queue.send(timers)
    receipts = [receipt for _, receipt in subject.receive(Priority.NORMAL)]

    assert subject.queue.hide(receipts, hidden_for=timedelta(0)) == []

    assert sorted(timer.job.identity for timer in received(subject, Priority.NORMAL)) == sorted(
        timer.job.identity for timer in timers
    )


def test_a_message_deferred_for_longer_than_sqs_can_hide_one_is_hidden_for_as_long_as_it_can(subject: QueueSubject):
    subject.queue.send([a_timer()])
    (_, receipt) = subject.receive(Priority.NORMAL)[0]

    subject.queue.defer(receipt, until=NOON + timedelta(days=30))

    assert received(subject, Priority.NORMAL) == []


def test_messages_without_a_job_are_delayed_in_the_queue_of_their_class(subject: QueueSubject):
    assert subject.queue.warm(Priority.LOW, [60] * 23) == 23

    assert [subject.delayed(priority) for priority in Priority] == [0, 0, 0, 23]


def test_depths_say_what_each_class_holds_and_what_of_it_waits_for_a_worker(subject: QueueSubject):
    later = NOON + timedelta(minutes=5)
    subject.queue.send([*(a_timer() for _ in range(3)), a_timer(due_at=later), a_timer(priority=Priority.LOW)])
    none, one = Depth(held=0, waiting=0), Depth(held=1, waiting=1)

    assert subject.depths.depths() == {
        Priority.CRITICAL: none,
        Priority.HIGH: none,
        Priority.NORMAL: Depth(held=4, waiting=3),
        Priority.LOW: one,
    }
    subject.receive(Priority.NORMAL)

    assert subject.depths.depths()[Priority.NORMAL] == Depth(held=4, waiting=0)


def received(subject: QueueSubject, priority: Priority) -> list[Timer]:
    return [timer for timer, _ in subject.receive(priority)]


def _in_memory(queue: InMemoryReadyQueue, clock: FakeClock) -> QueueSubject:
    def receive(priority: Priority) -> list[tuple[Timer, Receipt]]:
        found = queue.receive(limit=1_000)
        kept = [message for message in found if message.priority is priority]
        for message in found:
            if message not in kept:
                message.visible_at = clock.instant
                message.receive_count -= 1
        return [
            (timer, Receipt("arn:aws:sqs:us-east-1:1:ready", message.message_id))
            for message in kept
            for timer in decode_envelope(message.body)
        ]

    def delayed(priority: Priority) -> int:
        waiting = [message for message in queue.messages.values() if message.visible_at > clock.instant]
        return len([message for message in waiting if message.priority is priority and not message.receive_count])

    return QueueSubject(queue, clock, receive, delayed, queue)


def _on_sqs(client: "SQSClient", urls: list[str], clock: FakeClock, pool: ThreadPoolExecutor) -> QueueSubject:
    def receive(priority: Priority) -> list[tuple[Timer, Receipt]]:
        found: list[tuple[Timer, Receipt]] = []
        arn = f"arn:aws:sqs:us-east-1:123456789012:{priority.name.lower()}"
        while messages := client.receive_message(QueueUrl=urls[priority], MaxNumberOfMessages=10).get("Messages", []):
            found.extend(
                (timer, Receipt(arn, message["ReceiptHandle"]))
                for message in messages
                for timer in decode_envelope(message["Body"])
            )
        return found

    def delayed(priority: Priority) -> int:
        name: Any = "ApproximateNumberOfMessagesDelayed"
        return int(client.get_queue_attributes(QueueUrl=urls[priority], AttributeNames=[name])["Attributes"][name])

    queue = SqsReadyQueue(client, urls, clock=clock, pool=pool)
    return QueueSubject(queue, clock, receive, delayed, queue)
