"""The near ring on SQS: four standard queues, one a priority, with fair delivery between tenants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.adapters.clients import is_transient, tried
from functions.domain.batches import batches
from functions.domain.far_ring.delays import delay_seconds
from functions.domain.far_ring.sealed_timer import Sendable, envelope_of
from functions.domain.far_ring.warming import BODY, GROUP
from functions.domain.faults import fault_of
from functions.domain.instants import SECOND
from functions.domain.jobs.job import Priority
from functions.domain.stage.conditions import Depth
from functions.domain.wheel import Ring
from functions.ports.clock import Clock
from functions.ports.ready_queue import Receipt, Rejected

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

BATCH = 10
ATTEMPTS = 3

_RING = "ring"
_WAITING: Any = "ApproximateNumberOfMessages"
_COUNTS: list[Any] = [_WAITING, "ApproximateNumberOfMessagesDelayed", "ApproximateNumberOfMessagesNotVisible"]
_BATCH_BYTES = 1_000_000  # SQS takes 1 MiB, attributes included
_PAUSE = timedelta(milliseconds=100)
_LONGEST_VISIBILITY = timedelta(hours=11)  # SQS takes 12 hours from the receive, which is a while ago by then


class SqsReadyQueue:
    """Sends in full batches.

    client: makes one attempt a call, because a delay is relative to the moment it is sent. urls: of the queues, in
    the order of the priorities. pool: sends batches side by side. ring: where what is sent comes from; FAR of what is
    promoted.
    """

    def __init__(
        self, client: SQSClient, urls: Sequence[str], *, clock: Clock, pool: Executor, ring: Ring = Ring.NEAR
    ) -> None:
        self._client = client
        self._urls = dict(zip(Priority, urls, strict=True))
        self._url_of = {url.rsplit("/", 1)[-1]: url for url in urls}
        self._clock = clock
        self._pool = pool
        self._ring = ring

    def send(self, timers: Sequence[Sendable]) -> list[Rejected]:
        """A tenth of a request a message, in full batches."""
        batches = list(_batches(timers))
        results = self._pool.map(self._send_batch, batches) if len(batches) > 1 else map(self._send_batch, batches)
        return [rejected for result in results for rejected in result]

    def warm(self, priority: Priority, delays: Sequence[int]) -> int:
        """A tenth of a request a message."""
        return sum(
            self._pool.map(
                partial(self._warm_batch, priority), batches(delays, most=BATCH, size_of=lambda _: 0, most_size=0)
            )
        )

    def defer(self, receipt: Receipt, *, until: datetime) -> None:
        """To the whole second after; a visibility counts from now, at most 11 hours."""
        left = min(max(until - self._clock.now(), timedelta(0)), _LONGEST_VISIBILITY)
        self._client.change_message_visibility(
            QueueUrl=self._url_of[receipt.queue_arn.rsplit(":", 1)[-1]],
            ReceiptHandle=receipt.handle,
            VisibilityTimeout=min(-(-left // SECOND), _LONGEST_VISIBILITY // SECOND),
        )

    def hide(self, receipts: Sequence[Receipt], *, hidden_for: timedelta) -> list[str]:
        """A tenth of a request a message."""
        answer = self._client.change_message_visibility_batch(
            QueueUrl=self._url_of[receipts[0].queue_arn.rsplit(":", 1)[-1]],
            Entries=[
                {"Id": str(index), "ReceiptHandle": receipt.handle, "VisibilityTimeout": hidden_for // SECOND}
                for index, receipt in enumerate(receipts)
            ],
        )
        return [failure["Code"] for failure in answer.get("Failed", [])]

    def depths(self) -> dict[Priority, Depth]:
        """Four requests. SQS counts approximately."""
        return dict(zip(self._urls, self._pool.map(self._depth, self._urls.values()), strict=True))

    def _warm_batch(self, priority: Priority, delays: Sequence[int]) -> int:
        entries: list[Any] = [
            {"Id": str(index), "MessageBody": BODY, "DelaySeconds": delay, "MessageGroupId": GROUP}
            for index, delay in enumerate(delays)
        ]
        answer = tried(lambda: self._client.send_message_batch(QueueUrl=self._urls[priority], Entries=entries))
        # Where all have failed there is no such part.
        return len(answer.get("Successful", ())) if answer is not None else 0

    def _depth(self, url: str) -> Depth:
        counts = self._client.get_queue_attributes(QueueUrl=url, AttributeNames=_COUNTS)["Attributes"]
        return Depth(held=sum(int(counts[name]) for name in _COUNTS), waiting=int(counts[_WAITING]))

    def _send_batch(self, batch: Sequence[tuple[Sendable, str]]) -> list[Rejected]:
        url = self._urls[batch[0][0].job.priority]
        waiting = list(batch)
        permanent: list[Rejected] = []
        reason = ""
        for attempt in range(ATTEMPTS):
            if attempt:
                self._clock.sleep(_PAUSE * attempt)
            now = self._clock.now()
            try:
                answer = self._client.send_message_batch(
                    QueueUrl=url,
                    Entries=[
                        _entry(index, timer, body, now=now) | _origin(timer, self._ring)
                        for index, (timer, body) in enumerate(waiting)
                    ],
                )
            except (ClientError, BotoCoreError) as error:
                if not is_transient(error):
                    raise
                reason = fault_of(error)
                continue
            failed = answer.get("Failed", [])
            for failure in failed:
                # Its message may quote the body.
                reason = failure["Code"]
                if failure["SenderFault"]:
                    permanent.append(Rejected(waiting[int(failure["Id"])][0], reason, is_permanent=True))
            waiting = [waiting[int(failure["Id"])] for failure in failed if not failure["SenderFault"]]
            if not waiting:
                break
        return permanent + [Rejected(timer, reason, is_permanent=False) for timer, _ in waiting]


def _entry(index: int, timer: Sendable, body: str, *, now: datetime) -> Any:
    return {
        "Id": str(index),
        "MessageBody": body,
        "DelaySeconds": delay_seconds(timer.wakes_at, now=now, precision=timer.job.precision),
        "MessageGroupId": timer.job.tenant,
    }


def ring_of(attributes: Mapping[str, Any]) -> Ring:
    """By which ring a message came, from its attributes as Lambda gives them; near for one that says nothing of it."""
    return Ring.FAR if attributes.get(_RING, {}).get("stringValue") == Ring.FAR else Ring.NEAR


def _origin(timer: Sendable, ring: Ring) -> dict[str, Any]:
    """Set on promoted messages, because nothing else shows it: SQS charges by the 64 KB, so it costs nothing.

    What is sent by whoever took it in continues the trace of that invocation, by a header that botocore sets. The
    scanner's own trace says nothing of a job: this takes its place.
    """
    if ring is not Ring.FAR:
        return {}
    given: dict[str, Any] = {"MessageAttributes": {_RING: _text(ring)}}
    if timer.job.trace is not None:
        given["MessageSystemAttributes"] = {"AWSTraceHeader": _text(timer.job.trace.xray)}
    return given


def _text(value: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": value}


def _batches(timers: Sequence[Sendable]) -> Iterator[list[tuple[Sendable, str]]]:
    for priority in Priority:
        messages = ((timer, envelope_of(timer)) for timer in timers if timer.job.priority is priority)
        yield from batches(messages, most=BATCH, size_of=_body_bytes, most_size=_BATCH_BYTES)


def _body_bytes(message: tuple[Sendable, str]) -> int:
    return len(message[1].encode())
