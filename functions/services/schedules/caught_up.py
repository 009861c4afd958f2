"""Changes of a schedule that wait until what it missed has been placed: the version that missed it decides it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from functions.domain.errors import ScheduleBehind
from functions.domain.schedules.state import ScheduleState, Status
from functions.ports.schedules import StoredSchedule
from functions.services.schedules.changer import Change, Edit, ScheduleAndState, ScheduleChanger
from functions.services.schedules.materialiser import Carried, Materialiser

_CATCH_UPS = 3


class _BehindError(Exception):
    """A schedule has fires that have come due and are not placed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtUpChanger:
    """Changes schedules whose chains are not behind, and carries on those that are."""

    changer: ScheduleChanger
    materialiser: Materialiser

    def change(self, key: str, edit: Edit) -> ScheduleAndState:
        """Change a schedule by an edit. Raises ScheduleBehind where what it missed cannot be placed now."""
        revived: set[tuple[datetime, bool]] = set()

        def caught_up(stored: StoredSchedule | None, state: ScheduleState | None, now: datetime) -> Change | None:
            change = edit(stored, state, now)
            link = state.link if state is not None and state.status is Status.ACTIVE else None
            is_behind = link is not None and link.at <= now and not link.is_awaited
            # Where reviving it changed nothing, its definition cannot be computed: changing it is what helps.
            if change is None or link is None or not is_behind or link.position in revived:
                return change
            revived.add(link.position)
            raise _BehindError

        for revivals in range(_CATCH_UPS + 1):
            try:
                return self.changer.change(key, caught_up)
            except _BehindError:
                if revivals == _CATCH_UPS or self.materialiser.revive(key) is Carried.REFUSED:
                    break
        raise ScheduleBehind(key.partition("#")[2])
