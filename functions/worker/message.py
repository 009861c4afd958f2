"""What a worker is given, and that it may come back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from functions.domain.wheel import Ring
from functions.ports.ready_queue import Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One receive of one message of a ready queue.

    receive_count: 1 the first time. seen_at: when that was, if known. ring: by which it came there.
    """

    message_id: str
    body: str
    receipt: Receipt
    receive_count: int
    ring: Ring = Ring.NEAR
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Returned:
    """The message must come back, for this reason."""

    reason: str
