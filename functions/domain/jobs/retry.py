"""When a failed attempt is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from functions.domain.errors import InvalidJob
from functions.domain.instants import SECOND
from functions.domain.targets.http_answers import LONGEST_WAIT


class Strategy(StrEnum):
    """How the wait grows from attempt to attempt."""

    EXPONENTIAL = "exponential"
    FIXED = "fixed"
    LINEAR = "linear"
    DECORRELATED_JITTER = "decorrelated_jitter"


MAX_ATTEMPTS = 100
MIN_BACKOFF = SECOND
"""An attempt is placed before the failed one is settled: sooner than this, it would find that one's lease still running."""

MAX_AGE = timedelta(days=30)
"""The longest time over which a policy may try a job again."""

MAX_BACKOFF = LONGEST_WAIT
"""The longest gap that a policy may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """attempts: in all, the first included. base: the first gap. cap: no gap is longer.

    max_age: no attempt is due later than this after the first; None for no limit but that of attempts.
    """

    strategy: Strategy = Strategy.DECORRELATED_JITTER
    attempts: int = 5
    base: timedelta = timedelta(seconds=2)
    cap: timedelta = timedelta(minutes=10)
    max_age: timedelta | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.attempts <= MAX_ATTEMPTS:
            raise InvalidJob(f"must be from 1 to {MAX_ATTEMPTS}", field="retry.attempts", value=self.attempts)
        if not MIN_BACKOFF <= self.base <= MAX_BACKOFF:
            raise InvalidJob("must be from 1 second to 12 hours", field="retry.base", value=self.base.total_seconds())
        if not self.base <= self.cap <= MAX_BACKOFF:
            raise InvalidJob(
                f"must be from base ({self.base.total_seconds():g} s) to 12 hours",
                field="retry.cap",
                value=self.cap.total_seconds(),
            )
        if self.max_age is not None and not MIN_BACKOFF <= self.max_age <= MAX_AGE:
            raise InvalidJob(
                "must be from 1 second to 30 days", field="retry.max_age", value=self.max_age.total_seconds()
            )

    def backoff(self, *, attempt: int, previous: timedelta, jitter: float) -> timedelta:
        """The gap after this attempt (from 1) failed; `jitter` is a number from 0 up to 1.

        Decorrelated jitter is `min(cap, uniform(base, 3 * previous))` (Brooker, "Exponential Backoff And Jitter", 2015,
        https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
        """
        match self.strategy:
            case Strategy.FIXED:
                gap = self.base
            case Strategy.LINEAR:
                gap = self.base * attempt
            case Strategy.EXPONENTIAL:
                gap = _exponential(self.base, attempt=attempt, cap=self.cap)
            case Strategy.DECORRELATED_JITTER:
                highest = max(self.base, 3 * previous)
                gap = self.base + (highest - self.base) * jitter
        return min(gap, self.cap)


def _exponential(base: timedelta, *, attempt: int, cap: timedelta) -> timedelta:
    # Doubled step by step: 2**99 seconds do not fit into a timedelta.
    gap = base
    for _ in range(attempt - 1):
        if gap >= cap or not gap:
            break
        gap *= 2
    return gap
