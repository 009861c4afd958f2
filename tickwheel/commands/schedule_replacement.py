"""Creating a schedule where there may be one already: it is not replaced before somebody has seen what would change."""

from collections.abc import Mapping
from typing import Any

from tickwheel.client.schedules import NewSchedule, Schedule
from tickwheel.client.words import ScheduleChange
from tickwheel.commands.api import Api
from tickwheel.commands.terminal import error_console
from tickwheel.errors import ApiProblem, InvalidSchedule
from tickwheel.screens.schedules import changes_table, difference_table
from tickwheel.screens.tables import show_table


def create_or_ask(schedule: NewSchedule, api: Api, *, count: int) -> Schedule:
    """The schedule as it is stored. count: of next fires that are shown where there is another definition with its id.

    Ends the command at a no. What is replaced is the version that was shown. Raises ApiProblem, Unreachable.
    """
    calls = api.client.schedules
    try:
        return calls.put(schedule, create_only=True)
    except ApiProblem as problem:
        if problem.code != "schedule_exists":
            raise
    present = calls.get(schedule.id, tenant=schedule.tenant)
    difference = calls.compare(schedule, count=count, if_version=present.version)
    if difference.change is ScheduleChange.UNCHANGED:
        return present
    if not api.as_json:
        for table in (changes_table(_said(present), schedule.as_json()), difference_table(difference)):
            show_table(table, error_console())
    status = "" if present.status == "active" else f", which is {present.status}"
    question = f"Replace version {present.version} of the schedule {schedule.id} of {schedule.tenant}{status}?"
    api.confirm(question, yes=False, otherwise=" to replace it, or --create-only to be refused")
    return calls.put(schedule, if_version=present.version)


def _said(schedule: Schedule) -> Mapping[str, Any]:
    """Its definition, written as a new one is."""
    try:
        return NewSchedule.from_json({**schedule.definition, "id": schedule.id, "tenant": schedule.tenant}).as_json()
    except InvalidSchedule:  # of a newer scheduler
        return schedule.definition
