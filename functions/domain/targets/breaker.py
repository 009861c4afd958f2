"""When a destination is left alone: a circuit breaker for each tenant and destination (Nygard, "Release It!", 2007).

Closed is the state without a row, so that a healthy destination costs nothing. Whether a breaker opens is decided from
the calls of one process, in its memory; that it is open is a row, which the other processes learn of. Every write of a
row names the row that was seen by its owner token, and carries a fresh token: a writer that lost a race finds another one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from functions.domain.instants import DAY, MILLISECOND, require_aware
from functions.domain.key_lengths import DESTINATION, fits
from functions.domain.targets.error_classes import NOT_CALLED
from functions.domain.targets.targets import destination_of

RECENT_SECONDS = 60
"""How far back calls count."""

SLICE_SECONDS = 5
MIN_FAILURES = 5
"""Fewer failures never open a breaker; so many in a row always do."""

OPEN_FOR = timedelta(seconds=30)
MAX_OPEN_FOR = timedelta(minutes=10)
MIN_SMEAR = timedelta(seconds=30)
BREAKER_LIFE = DAY
"""How long a row outlives what it says."""

CLOSED = "closed"
"""The state without a row, where it has to be named."""

UNREACHED = frozenset(
    {"not_allowed", "refused_address", "handler_missing", "payload_gone", "payload_unreadable", NOT_CALLED}
)
"""Classes of errors that come before the destination: they say nothing about it."""


class BreakerState(StrEnum):
    """The states that have a row."""

    OPEN = "open"
    HALF_OPEN = "half_open"


class Signal(StrEnum):
    """What the outcome of a call says about its destination."""

    WORKS = "works"
    FAILS = "fails"
    UNKNOWN = "unknown"


def signal_of_failure(error_class: str, *, is_its_own: bool) -> Signal:
    """What a failure says. is_its_own: the destination answered, and refused just this job."""
    if error_class in UNREACHED:
        return Signal.UNKNOWN
    return Signal.WORKS if is_its_own else Signal.FAILS


class Slice(NamedTuple):
    """The calls of a few seconds; number: how many slices of the monotonic clock went before."""

    number: int
    calls: int
    failures: int


@dataclass(frozen=True, slots=True)
class RecentCalls:
    """The calls of a destination in the last minute, as one process has seen them. in_a_row: failures since a success."""

    slices: tuple[Slice, ...] = ()
    in_a_row: int = 0

    def with_call(self, *, failed: bool, at: float) -> RecentCalls:
        """The calls after one more. at: seconds of a monotonic clock, never less than before."""
        number = int(at // SLICE_SECONDS)
        kept = tuple(each for each in self.slices if each.number > number - RECENT_SECONDS // SLICE_SECONDS)
        # A row breaks off with a success, and when the destination was not called for RECENT_SECONDS.
        in_a_row = (self.in_a_row if kept else 0) + 1 if failed else 0
        last = kept[-1] if kept and kept[-1].number == number else Slice(number, 0, 0)
        earlier = kept[:-1] if kept and kept[-1].number == number else kept
        return RecentCalls((*earlier, Slice(number, last.calls + 1, last.failures + failed)), in_a_row)

    @property
    def trips(self) -> bool:
        """Whether the destination is to be left alone: half of its calls failed, or the last ones did."""
        failures = sum(each.failures for each in self.slices)
        calls = sum(each.calls for each in self.slices)
        return self.in_a_row >= MIN_FAILURES or (failures >= MIN_FAILURES and 2 * failures >= calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A breaker that is not closed.

    owner: the token of its last write. until: of an open one, from when it is probed; of a half-open one, the end of the
    lease of its probe. open_for: how long it stays open after a failure; it doubles with each probe that fails.
    opened_at: since when it has not been closed. error_class: of the failure that opened it last.
    """

    tenant: str
    destination: str
    state: BreakerState
    owner: str
    until: datetime
    open_for: timedelta
    opened_at: datetime
    error_class: str = ""

    def __post_init__(self) -> None:
        require_aware(self.until)
        require_aware(self.opened_at)

    def may_be_probed(self, *, now: datetime, skew: timedelta) -> bool:
        """Whether somebody may become the probe: it was open long enough, or its probe is dead."""
        return now >= self.probed_from(skew=skew)

    def probed_from(self, *, skew: timedelta) -> datetime:
        """When somebody may become the probe. The store has no clock, so the end of a lease carries SKEW."""
        if self.state is BreakerState.OPEN:
            return self.until
        # A moment more: at that very instant the lease still holds.
        return self.until + skew + MILLISECOND

    def parked_until(self, *, now: datetime, skew: timedelta, jitter: float) -> datetime:
        """When a job that may not call comes back, smeared; `jitter` is a number from 0 up to 1.

        That of a half-open breaker comes back at the end of the probe's lease: most probes have answered by then.
        """
        earliest = self.until if now < self.until else max(now, self.probed_from(skew=skew))
        return earliest + max(MIN_SMEAR, self.open_for) * jitter

    def probed(self, *, owner: str, lease_until: datetime) -> Breaker:
        """Half-open, with one call under way."""
        return replace(self, state=BreakerState.HALF_OPEN, owner=owner, until=lease_until)

    def reopened(self, *, owner: str, now: datetime, error_class: str, retry_after: timedelta | None) -> Breaker:
        """Open after its probe failed, for twice as long as before."""
        open_for = min(2 * self.open_for, MAX_OPEN_FOR)
        return replace(
            self,
            state=BreakerState.OPEN,
            owner=owner,
            until=now + _wait(open_for, retry_after),
            open_for=open_for,
            error_class=error_class,
        )

    def released(self, *, owner: str, now: datetime) -> Breaker:
        """Open, and to be probed at once: its probe has not called."""
        return replace(self, state=BreakerState.OPEN, owner=owner, until=now)

    @property
    def expires_at(self) -> datetime:
        """When its row may go."""
        return self.until + BREAKER_LIFE


def guarded_destination(target: str) -> str:
    """Whose breaker a target is behind; nothing for what cannot be called, and for what is too long to have one."""
    destination = destination_of(target)
    return destination if fits(destination, DESTINATION) else ""


def opened(
    tenant: str, destination: str, *, owner: str, now: datetime, error_class: str, retry_after: timedelta | None
) -> Breaker:
    """A breaker that was closed until now. retry_after: what the destination asked for; MAX_OPEN_FOR at most is granted."""
    return Breaker(
        tenant=tenant,
        destination=destination,
        state=BreakerState.OPEN,
        owner=owner,
        until=now + _wait(OPEN_FOR, retry_after),
        open_for=OPEN_FOR,
        opened_at=now,
        error_class=error_class,
    )


def _wait(open_for: timedelta, retry_after: timedelta | None) -> timedelta:
    return max(open_for, min(retry_after or open_for, MAX_OPEN_FOR))
