"""Everything that Tickwheel raises on purpose.

TickwheelError
├── InvalidWheel            the constants of a stage break a rule that keeps jobs from being lost
├── WheelChanged            the constants differ from those recorded at the first deploy
├── InvalidInput            a value from outside is refused
│   ├── InvalidJob          a job breaks a rule
│   ├── InvalidSchedule     a schedule breaks a rule, or never fires
│   └── InvalidJobId        a text is not a job id
├── Undecodable             a stored or queued body was not written by Tickwheel
├── KeyReused               an idempotency key belongs to another job
├── JobNotFound             no trace of a job
├── ScheduleNotFound        a tenant has no such schedule
├── ScheduleBusy            a schedule kept changing while it was being changed
├── ScheduleBehind          a schedule still catches up on what it missed
├── AlreadySettled          the job came to its end before it could be cancelled
├── TooLate                 the job may be on its way, so a cancel cannot be promised
├── ClockSkewed             this machine's clock is too far from the store's for a safe far write
└── NotPlaced               the stores refused a timer on every attempt

Errors carry data; the API's table maps each type to a status.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any


class TickwheelError(Exception):
    """Base of every error that Tickwheel raises on purpose."""


class InvalidWheel(TickwheelError, ValueError):
    """The constants of a stage break a rule that keeps jobs from being lost."""


class WheelChanged(TickwheelError):
    """The constants of the stage differ from those recorded at its first deploy."""


class InvalidInput(TickwheelError, ValueError):
    """A value from outside is refused."""


class InvalidJob(InvalidInput):
    """A job breaks a rule; `field` names the part, `value` is what was given."""

    def __init__(self, message: str, *, field: str = "", value: Any = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value


class InvalidSchedule(InvalidInput):
    """A schedule breaks a rule, or never fires; `field` names the part, `value` is what was given."""

    def __init__(self, message: str, *, field: str = "", value: Any = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value


class InvalidJobId(InvalidInput):
    """A text is not a job id."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:200]!r} is not a job id: an id is the text that a submission answered with")
        self.text = text


class Undecodable(TickwheelError):
    """A stored or queued body was not written by Tickwheel, or by a newer one."""


class KeyReused(TickwheelError):
    """An idempotency key belongs to another job than the one that was submitted with it."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"the idempotency key belongs to job {job_id}, which differs in more than its time: use another key, or submit "
            "the same job"
        )
        self.job_id = job_id


class JobNotFound(TickwheelError):
    """No trace of a job: every row of it would have expired, or was removed."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"there is no job {job_id}")
        self.job_id = job_id


class ScheduleNotFound(TickwheelError):
    """A tenant has no such schedule."""

    def __init__(self, tenant: str, schedule_id: str) -> None:
        super().__init__(f"tenant {tenant} has no schedule {schedule_id}")
        self.tenant = tenant
        self.schedule_id = schedule_id


class ScheduleBusy(TickwheelError):
    """A schedule kept changing while it was being changed: nothing was written."""

    def __init__(self, schedule_id: str) -> None:
        super().__init__(f"schedule {schedule_id} is being changed by somebody else: look at it, and change it again")
        self.schedule_id = schedule_id


class ScheduleBehind(TickwheelError):
    """A schedule still catches up on what it missed: its old definition decides that first."""

    def __init__(self, schedule_id: str) -> None:
        super().__init__(
            f"schedule {schedule_id} still catches up on fires that it missed, under its old definition: change it in a "
            "few minutes, or pause it first"
        )
        self.schedule_id = schedule_id


class AlreadySettled(TickwheelError):
    """The job came to its end before it could be cancelled."""

    def __init__(self, job_id: str, *, state: str) -> None:
        super().__init__(f"job {job_id} is already {state}")
        self.job_id = job_id
        self.state = state


class TooLate(TickwheelError):
    """The job may be on its way to its target, so a cancel cannot be promised."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"job {job_id} may be on its way: an at_least_once job can be cancelled only while it is far from due, "
            "and not in the first minute or two after its submission"
        )
        self.job_id = job_id


class ClockSkewed(TickwheelError):
    """This machine's clock is too far from the store's for a safe far write."""

    def __init__(self, *, offset: timedelta, limit: timedelta) -> None:
        super().__init__(
            f"this clock differs from the store's by {offset.total_seconds():+.1f} s, more than the "
            f"{limit.total_seconds():.1f} s that keep a far write safe"
        )
        self.offset = offset
        self.limit = limit


@dataclass
class NotPlaced(TickwheelError):
    """The stores refused these timers on every attempt; `reasons` says why, one a timer."""

    reasons: Sequence[str]

    def __str__(self) -> str:
        return f"{len(self.reasons)} timers were refused on every attempt, the first because: {self.reasons[0]}"
