"""The ready queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from functions.domain.far_ring.sealed_timer import Sendable
from functions.domain.jobs.job import Priority
from functions.domain.stage.conditions import Depth


@dataclass(frozen=True, slots=True)
class Rejected:
    """A timer that a ready queue did not take. is_permanent: it will not take it in this form, ever."""

    timer: Sendable
    reason: str
    is_permanent: bool


class ReadyQueue(Protocol):
    """The near ring: four queues, one a priority, that deliver a message when its delay is over."""

    def send(self, timers: Sequence[Sendable]) -> list[Rejected]:
        """Send each timer with the delay it needs at the moment its batch goes out. Returns those not taken."""
        ...

    def defer(self, receipt: Receipt, *, until: datetime) -> None:
        """Hide a received message until then, without acknowledging it."""
        ...

    def hide(self, receipts: Sequence[Receipt], *, hidden_for: timedelta) -> list[str]:
        """Hide received messages of one queue for so long from now. The codes of why any of them could not be."""
        ...


class WarmQueue(Protocol):
    """Takes messages that carry no job."""

    def warm(self, priority: Priority, delays: Sequence[int]) -> int:
        """Send one for each delay (s); how many were taken."""
        ...


class ReadyDepths(Protocol):
    """How full the ready queues are."""

    def depths(self) -> dict[Priority, Depth]:
        """Messages of each class, about."""
        ...


@dataclass(frozen=True, slots=True)
class Receipt:
    """What identifies one receive of one message: its queue and its handle."""

    queue_arn: str
    handle: str
