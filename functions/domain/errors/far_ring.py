"""Errors about placing timers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from functions.domain.errors.general import TickwheelError


class ClockSkewed(TickwheelError):
    """This machine's clock is too far from the store's for a safe far write."""

    def __init__(self, *, offset: timedelta, limit: timedelta) -> None:
        super().__init__(
            f"this clock differs from the store's by {offset.total_seconds():+.1f} s, more than the "
            f"{limit.total_seconds():.1f} s that keep a far write safe"
        )


@dataclass
class NotPlaced(TickwheelError):
    """The stores refused these timers on every attempt; `reasons` says why, one a timer."""

    reasons: Sequence[str]

    def __str__(self) -> str:
        return f"{len(self.reasons)} timers were refused on every attempt, the first because: {self.reasons[0]}"
