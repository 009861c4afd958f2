"""Change a schedule: definition and state in one conditional write, whoever else changes it at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from functions.domain.errors import ScheduleBusy, TickwheelError
from functions.domain.instants import from_ms, to_ms
from functions.domain.schedules.change_condition import remembered
from functions.domain.schedules.load import NO_LIMITS, LoadLimits
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.state import ScheduleState
from functions.ports.clock import Clock
from functions.ports.schedules import ScheduleAndState, ScheduleStore, ScheduleWrite, StoredSchedule

_TRIES = 8


@dataclass(frozen=True, slots=True)
class Change:
    """A definition, and the state that it begins its new version with. limits: of what its tenant's schedules come to.

    request: the name of the request that asks for it, where it has a condition.
    """

    schedule: Schedule
    state: ScheduleState
    limits: LoadLimits = NO_LIMITS
    request: str = ""


Edit = Callable[[StoredSchedule | None, ScheduleState | None, datetime], Change | None]
"""What to make of a schedule as it is now; None when nothing is to change. May raise to refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleChanger:
    """Changes schedules."""

    clock: Clock
    schedules: ScheduleStore

    def change(self, key: str, edit: Edit) -> ScheduleAndState:
        """Apply an edit to a schedule, whether there is one or not; the schedule with its state after that.

        Raises ScheduleBusy, SchedulesExceeded, FiresExceeded, and what the edit raises.
        """
        for _ in range(_TRIES):
            stored, state = self.schedules.get(key)
            # As it is stored: a fire of this very millisecond is decided by one version.
            now = from_ms(to_ms(self.clock.now()))
            change = edit(stored, state, now)
            if change is None:
                return stored, state
            written = _written(change, stored, now=now)
            if self.schedules.change(written, change.state, seen=state, limits=change.limits):
                return written, change.state
        raise ScheduleBusy(key.partition("#")[2])

    def change_together(self, edits: Mapping[str, Edit]) -> dict[str, ScheduleAndState | TickwheelError]:
        """Apply an edit to each of several schedules of one tenant, all in one write: what `change` gives or raises for each.

        Those that are not in the answer are to be changed by themselves: one of them was refused, or could not be read.
        """
        try:
            found = self.schedules.get_many(list(edits))
        except TickwheelError:
            return {}  # one of them may be nobody's to read; whose it is, is told of that one alone
        now = from_ms(to_ms(self.clock.now()))
        answers: dict[str, ScheduleAndState | TickwheelError] = {}
        writes: list[ScheduleWrite] = []
        for key, edit in edits.items():
            stored, state = found[key]
            try:
                change = edit(stored, state, now)
            except TickwheelError as error:
                answers[key] = error
                continue
            if change is None:
                answers[key] = stored, state
                continue
            new = _written(change, stored, now=now)
            writes.append(ScheduleWrite(new=new, state=change.state, seen=state, limits=change.limits))
        try:
            is_written = not writes or self.schedules.change_together(writes)
        except ScheduleBusy as busy:
            return answers | {each.new.key: busy for each in writes}
        return answers | {each.new.key: (each.new, each.state) for each in writes if is_written}


def _written(change: Change, stored: StoredSchedule | None, *, now: datetime) -> StoredSchedule:
    return StoredSchedule(
        schedule=change.schedule,
        version=change.state.version,
        status=change.state.status,
        created_at=stored.created_at if stored else now,
        # As the state says it: where a clock is behind, a version begins no earlier than the one before it.
        changed_at=change.state.changed_at,
        requests=remembered(stored.requests if stored else (), change.request),
    )
