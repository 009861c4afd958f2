"""The near ring in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from functions.domain.far_ring.delays import delay_seconds
from functions.domain.far_ring.sealed_timer import Sendable, envelope_of, opened
from functions.domain.far_ring.warming import BODY
from functions.domain.instants import SECOND
from functions.domain.jobs.job import Priority, Timer
from functions.domain.stage.conditions import Depth
from functions.domain.wheel import Ring
from functions.ports.ready_queue import Receipt, Rejected
from functions.worker.message import Message
from testkit.builders import NOON
from testkit.fakes.clock import FakeClock


@dataclass
class QueuedMessage:
    message_id: str
    body: str
    visible_at: datetime
    priority: Priority
    receive_count: int = 0
    sent_at: datetime = NOON


def received(message: QueuedMessage, *, ring: Ring = Ring.NEAR) -> Message:
    """As a worker receives it. ring: by which it says to have come."""
    return Message(
        message_id=message.message_id,
        body=message.body,
        receipt=Receipt("arn:aws:sqs:us-east-1:000000000000:ready", message.message_id),
        receive_count=message.receive_count,
        ring=ring,
    )


@dataclass
class InMemoryReadyQueue:
    """One list of messages with a delay and a visibility each; a dead-letter list behind it."""

    clock: FakeClock
    visibility: timedelta = timedelta(seconds=95)
    max_receive_count: int = 10
    messages: dict[str, QueuedMessage] = field(default_factory=dict)
    dead: list[QueuedMessage] = field(default_factory=list)
    refuses: Callable[[Timer], Rejected | None] = lambda _: None
    hidden: int = 0
    _sent: int = 0

    def depths(self) -> dict[Priority, Depth]:
        held = Counter(message.priority for message in self.messages.values())
        now = self.clock.instant
        waiting = Counter(message.priority for message in self.messages.values() if message.visible_at <= now)
        return {priority: Depth(held[priority], waiting[priority]) for priority in Priority}

    def send(self, timers: Sequence[Sendable]) -> list[Rejected]:
        rejected: list[Rejected] = []
        for timer in timers:
            if rejection := self.refuses(opened(timer)):
                rejected.append(replace(rejection, timer=timer))
                continue
            delay = delay_seconds(timer.wakes_at, now=self.clock.now(), precision=timer.job.precision)
            self._sent += 1
            message_id = f"m{self._sent}"
            self.messages[message_id] = QueuedMessage(
                message_id,
                envelope_of(timer),
                # The queue's own clock counts the delay.
                self.clock.instant + delay * SECOND,
                timer.job.priority,
                sent_at=self.clock.instant,
            )
        return rejected

    def warm(self, priority: Priority, delays: Sequence[int]) -> int:
        for delay in delays:
            self._sent += 1
            message_id = f"m{self._sent}"
            visible_at = self.clock.instant + delay * SECOND
            self.messages[message_id] = QueuedMessage(message_id, BODY, visible_at, priority)
        return len(delays)

    def receive(self, limit: int = 10) -> list[QueuedMessage]:
        """What a poller gets now: visible messages, hidden from others for the visibility timeout."""
        received: list[QueuedMessage] = []
        for message in sorted(self.messages.values(), key=lambda message: message.visible_at):
            if len(received) == limit or message.visible_at > self.clock.instant:
                break
            if message.receive_count >= self.max_receive_count:
                self.dead.append(self.messages.pop(message.message_id))
                continue
            message.receive_count += 1
            message.visible_at = self.clock.instant + self.visibility
            received.append(message)
        return received

    def delete(self, message_id: str) -> None:
        self.messages.pop(message_id, None)

    def hide(self, receipts: Sequence[Receipt], *, hidden_for: timedelta) -> list[str]:
        self.hidden += 1
        for receipt in receipts:
            self._hide(receipt, until=self.clock.now() + hidden_for)
        return []

    def defer(self, receipt: Receipt, *, until: datetime) -> None:
        self._hide(receipt, until=until)

    def _hide(self, receipt: Receipt, *, until: datetime) -> None:
        message = self.messages.get(receipt.handle)
        if message is not None:
            left = max(until - self.clock.now(), timedelta(0))
            message.visible_at = self.clock.instant + -(-left // SECOND) * SECOND
