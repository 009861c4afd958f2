"""Schedules that are paused by themselves: after failures in a row, or because their next fire takes too much to find."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from functions.domain.audit import SCHEDULER, Action, ActionName
from functions.domain.faults import fault_of
from functions.domain.schedules.changes import stopped
from functions.domain.schedules.state import ScheduleState, Status
from functions.ports.clock import Clock
from functions.ports.recorder import AuditTrail, Journal
from functions.ports.schedules import ScheduleStore, StoredSchedule
from functions.services.schedules.changer import Change, ScheduleChanger

PAUSED_AFTER = 3
"""How often a chain is set aside before its schedule is paused."""

DIED = "a process has died of it each time, so it takes far too long, or too much memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauser:
    """Pauses schedules, for a reason that is kept with them."""

    changer: ScheduleChanger
    journal: Journal
    audit: AuditTrail

    def pause(self, key: str, note: str, *, version: int | None = None) -> None:
        """Pause a schedule that is active. version: only if this one still counts; None for whichever does."""

        def pause(stored: StoredSchedule | None, state: ScheduleState | None, now: datetime) -> Change | None:
            if stored is None or state is None or state.status is not Status.ACTIVE:
                return None
            if version not in (None, state.version):
                return None
            return Change(
                stored.schedule, stopped(Status.PAUSED, before=stored.schedule, state=state, now=now, note=note)
            )

        _, state = self.changer.change(key, pause)
        # Known by its note also where a death has come before this: a schedule that somebody else has paused has another.
        if state is None or (state.status, state.note) != (Status.PAUSED, note):
            return
        tenant, _, schedule_id = key.partition("#")
        after = {"status": Status.PAUSED.value, "note": note}
        self.audit.note(
            Action(action=ActionName.SCHEDULE_PAUSE, caller=SCHEDULER, tenant=tenant, subject=schedule_id, after=after)
        )
        self.journal.event("schedule_paused", schedule=key, note=note)
        self.journal.count("schedules_paused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asides:
    """Sets chains aside whose next fire takes too much to find, so that they hold up no other.

    Such a chain stays where it is. The sweep tries it again, and the third time its schedule is paused.
    """

    clock: Clock
    schedules: ScheduleStore
    pauser: Pauser
    journal: Journal

    def set_aside(self, key: str, *, version: int, why: str) -> None:
        """Count it and report it. Never raises: where the stores fail, it counts when it is found again."""
        count = 0
        try:
            count = self.schedules.note_aside(key, version=version, now=self.clock.now())
            if count >= PAUSED_AFTER:
                note = f"paused after its next fire could not be found {count} times: {why}"
                self.pauser.pause(key, note, version=version)
        except Exception as error:  # noqa: BLE001  whoever comes by wants to continue with the others
            self.journal.event("aside_not_noted", schedule=key, error=fault_of(error))
        self.journal.event("chain_set_aside", schedule=key, why=why, count=count)
        self.journal.count("chains_set_aside")
