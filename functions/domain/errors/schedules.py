"""Errors about schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from functions.domain.errors.general import Busy, InvalidInput, TickwheelError


class InvalidSchedule(InvalidInput):
    """A schedule breaks a rule, or never fires; `field` names the part, `value` is what was given.

    instead: parts of a definition, one of which to write in its place; the message says what each of them means.
    """

    def __init__(
        self, message: str, *, field: str = "", value: Any = None, instead: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        super().__init__(message, field=field, value=value)
        self.instead = tuple(instead)


class TooCostly(InvalidSchedule):
    """The fires of a schedule take more work to find than its budget holds.

    In a request its definition is refused. Elsewhere it says nothing of whether the schedule fires: its chain stays
    where it is.
    """

    def __init__(self, *, field: str = "rule", value: Any = None) -> None:
        super().__init__(
            "takes too many steps to find what it fires next: name more days or times, use wider windows, or split it "
            "into schedules that are simpler",
            field=field,
            value=value,
        )


class ScheduleNotFound(TickwheelError):
    """A tenant has no such schedule."""

    def __init__(self, tenant: str, schedule_id: str) -> None:
        super().__init__(f"tenant {tenant} has no schedule {schedule_id}")


class ScheduleBusy(Busy):
    """A schedule kept changing while it was being changed, or so many of its tenant did that no turn came."""

    def __init__(self, schedule_id: str) -> None:
        super().__init__(
            f"schedule {schedule_id}, or many others of its tenant, are being changed by somebody else: change it again"
        )


class ScheduleBehind(TickwheelError):
    """A schedule still catches up on what it missed: its old definition decides that first."""

    def __init__(self, schedule_id: str) -> None:
        super().__init__(
            f"schedule {schedule_id} still catches up on fires that it missed, under its old definition: change it in a "
            "few minutes, or pause it first"
        )
