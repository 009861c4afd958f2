"""Definitions and states of schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from functions.domain.schedules.asked_runs import AskedRun
from functions.domain.schedules.due_fires import DueFires
from functions.domain.schedules.kept_runs import KeptRun
from functions.domain.schedules.load import NO_LIMITS, Load, LoadLimits, Share
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import Link, ScheduleState, SkipReason, Status
from functions.ports.ledger import Applied


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchedule:
    """A definition as it is stored; its state is used only with the same version.

    requests: the names of the last conditional requests that have changed it.
    """

    schedule: Schedule
    version: int
    status: Status
    created_at: datetime
    changed_at: datetime
    requests: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of its state row."""
        return self.schedule.uid


@dataclass(frozen=True, slots=True)
class Behind:
    """An advance lost; state is what it found, None where there is none."""

    state: ScheduleState | None


@dataclass(frozen=True, slots=True)
class StatePage:
    """State rows by their keys; after: where the next page begins, None behind the last."""

    states: dict[str, ScheduleState]
    after: str | None


MOST_TOGETHER = 25
"""Schedules of a tenant that are read or written in one request."""

ScheduleAndState = tuple[StoredSchedule | None, ScheduleState | None]
"""A schedule with its state, as far as there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleWrite:
    """A new version of one of several schedules, as `ScheduleStore.change` takes it."""

    new: StoredSchedule
    state: ScheduleState
    seen: ScheduleState | None
    limits: LoadLimits = NO_LIMITS


class ScheduleStore(Protocol):
    """Definitions and states of schedules. A key is `{tenant}#{schedule_id}`."""

    def get(self, key: str) -> ScheduleAndState:
        """Definition and state of one version, as of all writes before; no definition of a deleted schedule."""
        ...

    def get_many(self, keys: Sequence[str]) -> Mapping[str, ScheduleAndState]:
        """As `get`, of at most MOST_TOGETHER keys; each of them has an answer."""
        ...

    def definitions(self, keys: Sequence[str], *, consistent: bool = False) -> dict[str, StoredSchedule]:
        """The definitions that exist among these keys, each as of some moment before, or as of all writes before."""
        ...

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[StoredSchedule], bool]:
        """A tenant's definitions behind a schedule id, in the order of their ids; whether there are more."""
        ...

    def state(self, key: str) -> ScheduleState | None:
        """The state row, as of all writes before."""
        ...

    def states(self, keys: Sequence[str]) -> dict[str, ScheduleState]:
        """The states that exist among these keys, each as of some moment before."""
        ...

    def scan(self, *, after: str | None, limit: int) -> StatePage:
        """State rows of all tenants, in an order of the store's."""
        ...

    def change(
        self, new: StoredSchedule, state: ScheduleState, *, seen: ScheduleState | None, limits: LoadLimits = NO_LIMITS
    ) -> bool:
        """Write definition and state of a new version, both or neither, if the state is still the one that was seen.

        A deleted schedule loses its definition. What its share has changed by is added to its tenant's sum, in the same write.
        limits: of the sum. Raises SchedulesExceeded, FiresExceeded where it grows beyond them, and ScheduleBusy where others of its
        tenant are changed all the time; nothing is written.
        """
        ...

    def change_together(self, writes: Sequence[ScheduleWrite]) -> bool:
        """Each of at most MOST_TOGETHER schedules of one tenant as `change` does it, or none of them.

        False where one of them would be refused, for whatever reason, or where together they are too large. Raises ScheduleBusy.
        """
        ...

    def load(self, tenant: str) -> Load:
        """The sum of the shares of a tenant's schedules, as of all writes before."""
        ...

    def recount(self, key: str, share: Share | None, *, seen: ScheduleState) -> bool:
        """Give a schedule another share, and its tenant's sum the difference, if version and share are those that were seen."""
        ...

    def advance(
        self, key: str, decided: DueFires, *, version: int, before: Link, alarm_at: datetime | None, history: int
    ) -> Applied | Behind:
        """Record a plan that has been placed, if this version still stands at that link."""
        ...

    def take_slot(self, key: str, identity: str, *, seen: ScheduleState, now: datetime) -> bool:
        """Make a run the holder of the slot, if the holder is still the one that was seen."""
        ...

    def wait_for_slot(self, key: str, identity: str, *, seen: ScheduleState, now: datetime) -> bool:
        """Make a fire the one that waits for the slot, if the one that waits is still the one that was seen."""
        ...

    def note_skip(self, key: str, reason: SkipReason, *, fire_at: datetime) -> None:
        """Count a fire that does not run."""
        ...

    def note_failure(self, key: str, identity: str) -> int:
        """Note that a run failed for good; how many have since the last success."""
        ...

    def forget_failures(self, key: str) -> None:
        """A run has succeeded."""
        ...

    def keep_runs(self, key: str, kept: tuple[KeptRun, ...], *, seen: ScheduleState) -> bool:
        """Keep these runs, if those that are kept are still those that were seen, of the same schedule."""
        ...

    def remember_asked(self, key: str, asked: tuple[AskedRun, ...], *, seen: ScheduleState) -> bool:
        """Remember these runs that were asked for, if those that are remembered are still those that were seen, of the same schedule."""
        ...

    def note_aside(self, key: str, *, version: int, now: datetime) -> int:
        """Note that its chain was set aside; how often lately, 0 where another version counts."""
        ...
