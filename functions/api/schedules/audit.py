"""What the audit trail records of schedules: who changed which, and how it stood before and after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from functions.domain.audit import Action, ActionName
from functions.domain.instants import format_duration
from functions.domain.schedules.defaults import REQUESTED
from functions.domain.schedules.record import POINTER, encode_schedule
from functions.domain.schedules.state import ScheduleState, Status
from functions.domain.targets.targets import destination_of
from functions.ports.schedules import StoredSchedule


def changed(
    action: ActionName,
    key: str,
    *,
    caller: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> Action:
    """The action of a change. key: `{tenant}#{schedule_id}`."""
    tenant, _, schedule_id = key.partition("#")
    return Action(action=action, caller=caller, tenant=tenant, subject=schedule_id, before=before, after=after)


def described(stored: StoredSchedule | None, state: ScheduleState | None) -> dict[str, Any] | None:
    """A schedule as it stands, without its payload, the values of its headers and the path of its target."""
    if state is None:
        return None
    standing: dict[str, Any] = {"version": state.version, "status": state.status.value}
    if state.note:
        standing["note"] = state.note
    if stored is None or state.status is Status.DELETED:
        return standing
    definition = encode_schedule(stored.schedule, REQUESTED)
    job = {name: value for name, value in definition["job"].items() if name not in ("payload", POINTER)}
    job["target"] = destination_of(stored.schedule.job.target)
    if headers := job.get("http", {}).get("headers"):
        job["http"] = {**job["http"], "headers": sorted(headers)}
    if stored.schedule.spread_from is not None and not stored.schedule.says_spread:
        taken = {"spread": format_duration(stored.schedule.spread), "from": stored.schedule.spread_from.value}
        standing["default_spread"] = taken
    return {**standing, **definition, "job": job}
