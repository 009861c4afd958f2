"""A change of a schedule as it is asked for: what, by whom, and under which condition."""

from __future__ import annotations

from dataclasses import dataclass, replace

from functions.domain.audit import ActionName
from functions.domain.schedules.change_condition import ALWAYS, ChangeCondition
from functions.ports.schedules import StoredSchedule
from functions.services.schedules.changer import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that changes a schedule. is_whole: it says all of what the schedule is to be."""

    action: ActionName
    caller: str
    condition: ChangeCondition = ALWAYS
    is_whole: bool = False

    def is_repeated(self, stored: StoredSchedule | None) -> bool:
        """Whether this very request has changed the schedule already, whose answer was lost."""
        return bool(self.condition.request) and stored is not None and self.condition.request in stored.requests

    def checked(self, key: str, change: Change | None, stored: StoredSchedule | None) -> Change | None:
        """What it changes, under its name; None for nothing. stored: what there is. Raises what its condition does."""
        tenant, _, schedule_id = key.partition("#")
        is_in_place = change is None and self.is_whole
        version = stored.version if stored is not None else None
        self.condition.check(tenant, schedule_id, version, is_in_place=is_in_place)
        return change and replace(change, request=self.condition.request)
