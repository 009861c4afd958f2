"""When a failed attempt is tried again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from functions.domain.errors import InvalidJob
from functions.domain.instants import SECOND
from functions.domain.targets.http_answers import LONGEST_WAIT


class Strategy(StrEnum):
    """How the gap grows from attempt to attempt."""

    EXPONENTIAL = "exponential"
    FIXED = "fixed"
    LINEAR = "linear"
    DECORRELATED_JITTER = "decorrelated_jitter"


class Jitter(StrEnum):
    """How the gap that a strategy gives is varied, so that jobs that failed together do not come back together.

    By the names of Brooker, "Exponential Backoff And Jitter", 2015
    (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/): `full` is a random part of the gap, from none to
    all of it; `equal` is half of it and a random part of the other half.
    """

    FULL = "full"
    EQUAL = "equal"


MAX_ATTEMPTS = 100
MAX_INTERVALS = 20
"""Every record of a job with intervals holds all of them: so many take less than a fifth of its write unit."""

MIN_BACKOFF = SECOND
"""An attempt is placed before the failed one is settled: sooner than this, it would find that one's lease still running."""

MAX_AGE = timedelta(days=30)
"""The longest time over which a policy may try a job again."""

MAX_BACKOFF = LONGEST_WAIT
"""The longest gap that a policy may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """attempts: in all, the first included. base: the first gap. cap: no gap is longer.

    max_age: no attempt is due later than this after the first; None for no limit but that of attempts. intervals: the gaps one
    after the other, in place of what strategy, base and cap say; the last one is repeated. jitter: of each gap; None for none.
    """

    strategy: Strategy = Strategy.DECORRELATED_JITTER
    attempts: int = 5
    base: timedelta = timedelta(seconds=2)
    cap: timedelta = timedelta(minutes=10)
    max_age: timedelta | None = None
    intervals: tuple[timedelta, ...] = ()
    jitter: Jitter | None = None

    @classmethod
    def of_intervals(
        cls,
        intervals: Sequence[timedelta],
        *,
        attempts: int | None = None,
        max_age: timedelta | None = None,
        jitter: Jitter | None = None,
    ) -> RetryPolicy:
        """The policy of a list of gaps, at least one. attempts: None for one more than there are gaps.

        A release that knows no intervals reads strategy, base and cap of what this one stores: it draws between the two.
        """
        return cls(
            strategy=Strategy.DECORRELATED_JITTER,
            attempts=len(intervals) + 1 if attempts is None else attempts,
            base=min(intervals),
            cap=max(intervals),
            max_age=max_age,
            intervals=tuple(intervals),
            jitter=jitter,
        )

    def __post_init__(self) -> None:
        self._check_intervals()
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

    def _check_intervals(self) -> None:
        if len(self.intervals) > MAX_INTERVALS:
            raise InvalidJob(f"must be at most {MAX_INTERVALS}", field="retry.intervals", value=len(self.intervals))
        for interval in self.intervals:
            if not MIN_BACKOFF <= interval <= MAX_BACKOFF:
                raise InvalidJob(
                    "must be from 1 second to 12 hours each", field="retry.intervals", value=interval.total_seconds()
                )

    def backoff(self, *, attempt: int, previous: timedelta, jitter: float) -> timedelta:
        """The gap after this attempt (from 1) failed, before its jitter; `jitter` is a number from 0 up to 1.

        previous: what this gave the last time. Decorrelated jitter is `min(cap, uniform(base, 3 * previous))`, as in the
        article that `Jitter` names.
        """
        if self.intervals:
            return self.intervals[min(attempt, len(self.intervals)) - 1]
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

    def jittered(self, gap: timedelta, *, jitter: float) -> timedelta:
        """The wait that becomes of a gap that `backoff` gave with this number; never below MIN_BACKOFF."""
        if self.strategy is Strategy.DECORRELATED_JITTER and not self.intervals:
            jitter = _lower_digits(jitter)
        match self.jitter:
            case None:
                return gap
            case Jitter.FULL:
                return max(MIN_BACKOFF, gap * jitter)
            case Jitter.EQUAL:
                return max(MIN_BACKOFF, gap / 2 + gap / 2 * jitter)


def asked_for(retry_after: timedelta) -> timedelta:
    """What a target is granted that asked for this wait."""
    return min(retry_after, MAX_BACKOFF)


def spread(wait: timedelta, *, jitter: float) -> timedelta:
    """A wait that a target asked for, and a random part of a tenth of it, at least of a second.

    A date that it named would bring all jobs back at one instant. `jitter` is a number from 0 up to 1.
    """
    return wait + max(wait / 10, SECOND) * jitter


def _lower_digits(jitter: float) -> float:
    # The strategy has drawn with the number already: what it could not see of it is as good as another one.
    return jitter * 2**20 % 1


def _exponential(base: timedelta, *, attempt: int, cap: timedelta) -> timedelta:
    # Doubled step by step: 2**99 seconds do not fit into a timedelta.
    gap = base
    for _ in range(attempt - 1):
        if gap >= cap or not gap:
            break
        gap *= 2
    return gap
