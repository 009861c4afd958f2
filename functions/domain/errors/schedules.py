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


class ScheduleExists(TickwheelError):
    """A schedule was to be created only if there is none of its id, and there is one. version: the one it has."""

    def __init__(self, tenant: str, schedule_id: str, *, version: int) -> None:
        super().__init__(
            f"tenant {tenant} has schedule {schedule_id} already, in version {version}: get it, and choose another id or change "
            f'it, with If-Match: "{version}" where nobody else\'s change may be lost'
        )
        self.version = version


class ScheduleChanged(TickwheelError):
    """A schedule is not as somebody has seen it who changes it: nothing was written. version: the one it has, None where it is gone.

    seen: the versions that it was to have, none for any.
    """

    def __init__(self, tenant: str, schedule_id: str, *, seen: Sequence[int], version: int | None) -> None:
        wanted = " or ".join(map(str, seen))
        if version is None:
            text = f"tenant {tenant} has no schedule {schedule_id}: put it without If-Match to create it"
        elif wanted:
            text = f"schedule {schedule_id} has version {version}, not {wanted}: get it, and change it again"
        else:
            text = f'schedule {schedule_id} has version {version}, which no strong entity tag of If-Match names: send If-Match: "{version}"'
        super().__init__(text)
        self.version = version


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
