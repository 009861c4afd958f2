"""A change of a schedule as it is asked for: what, by whom, and under which condition."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from functions.api.admission.gate import Gate
from functions.api.schedules.audit import changed, described
from functions.domain.audit import ActionName
from functions.domain.schedules.change_condition import ALWAYS, ChangeCondition
from functions.domain.schedules.fire_rates import begins_anew
from functions.domain.schedules.state import ScheduleState
from functions.ports.recorder import AuditTrail
from functions.ports.schedules import StoredSchedule
from functions.services.schedules.changer import Change, Edit


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


@dataclass(kw_only=True)
class Asking:
    """A request on one schedule while it is carried out. rule: what to make of the schedule; gate: of what begins to fire.

    found: the schedule as it was when it was looked at last, which is when the change holds for it.
    """

    asked: Asked
    key: str
    rule: Edit
    gate: Gate
    audit: AuditTrail
    found: StoredSchedule | None = None
    _before: dict[str, Any] | None = None
    _is_let_in: bool = False

    def edit(self, stored: StoredSchedule | None, state: ScheduleState | None, now: datetime) -> Change | None:
        """What to change. Raises what the rule, the condition and, where it begins to fire or begins anew, the gate do."""
        self.found, self._before = stored, described(stored, state)
        if self.asked.is_repeated(stored):
            return None
        change = self.asked.checked(self.key, self.rule(stored, state, now), stored)
        defined = stored.schedule if stored is not None else None
        # Once, however often it is looked at again.
        if (
            change is not None
            and not self._is_let_in
            and begins_anew(change.schedule, change.state, before=defined, seen=state)
        ):
            self.gate.begin(change.schedule.tenant)
            self._is_let_in = True
        return change

    def note(self, stored: StoredSchedule | None, state: ScheduleState | None) -> None:
        """A line for the audit trail, also where nothing was to change: the first one may be lost."""
        action, caller = self.asked.action, self.asked.caller
        self.audit.note(changed(action, self.key, caller=caller, before=self._before, after=described(stored, state)))
