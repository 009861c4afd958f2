"""Changes of a schedule that wait until what it missed has been placed: the version that missed it decides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from functions.domain.errors import Busy, ScheduleBehind, TickwheelError
from functions.domain.schedules.state import Link, ScheduleState, Status
from functions.ports.schedules import ScheduleAndState, StoredSchedule
from functions.services.schedules.changer import Change, Edit, ScheduleChanger
from functions.services.schedules.materialiser import Carried, Materialiser

_CATCH_UPS = 3

_NO_TIME_LEFT = "there was no time left for it in its request: ask for it again, with fewer others"


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
            link = _overdue(state, now)
            # Where reviving it changed nothing, its definition cannot be computed: changing it is what helps.
            if change is None or link is None or link.position in revived:
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

    def change_many(self, edits: Mapping[str, Edit], *, ends_at: float) -> dict[str, ScheduleAndState | TickwheelError]:
        """Change several schedules of one tenant, each by its edit: what `change` gives or raises for each.

        They are written together where that goes, and else one after the other. None of those is begun after ends_at (monotonic, s).
        """
        answers = self.changer.change_together({key: _unless_behind(key, edit) for key, edit in edits.items()})
        for key, edit in edits.items():
            answer = answers.get(key)
            if answer is not None and not isinstance(answer, ScheduleBehind):
                continue
            if self.changer.clock.monotonic() >= ends_at:
                answers[key] = Busy(_NO_TIME_LEFT)
                continue
            try:
                answers[key] = self.change(key, edit)
            except TickwheelError as error:
                answers[key] = error
        return answers


def _overdue(state: ScheduleState | None, now: datetime) -> Link | None:
    """The link of a chain that is behind: it has come due, and is not placed."""
    link = state.link if state is not None and state.status is Status.ACTIVE else None
    return link if link is not None and link.at <= now and not link.is_awaited else None


def _unless_behind(key: str, edit: Edit) -> Edit:
    def look(stored: StoredSchedule | None, state: ScheduleState | None, now: datetime) -> Change | None:
        change = edit(stored, state, now)
        if change is not None and _overdue(state, now) is not None:
            raise ScheduleBehind(key.partition("#")[2])
        return change

    return look
