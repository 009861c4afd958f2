"""Errors about tenants: as they stand, and what they may."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.domain.errors.general import TickwheelError


class RateExceeded(TickwheelError):
    """A tenant submits jobs faster than it may. retry_after: when there is room for one more."""

    def __init__(self, tenant: str, *, rate: float, burst: int, retry_after: timedelta) -> None:
        super().__init__(
            f"tenant {tenant} may submit {rate:g} jobs a second, and {burst} at once after a while of none: send fewer, or "
            f"later; an operator may raise its submission_rate"
        )
        self.retry_after = retry_after


class TenantBusy(TickwheelError):
    """A tenant kept changing while it was being changed: nothing was written."""

    def __init__(self, tenant: str) -> None:
        super().__init__(f"{tenant} is being changed by somebody else: look at it, and change it again")


class TenantChanged(TickwheelError):
    """A tenant is not as somebody has seen it who changes it: nothing was written. version: the one it has."""

    def __init__(self, tenant: str, *, seen: int, version: int) -> None:
        super().__init__(f"{tenant} has version {version}, not {seen}: look at it, and change it again")


class TenantDeleted(TickwheelError):
    """A tenant is being deleted, or has been (is_over). until: before that it cannot be there again."""

    def __init__(self, tenant: str, *, is_over: bool, until: datetime | None = None) -> None:
        text = f"tenant {tenant} has been deleted: put it (PUT /v1/tenants/{tenant}) to have it again"
        if not is_over:
            text = f"tenant {tenant} is being deleted: wait for the end of that"
        elif until is not None:
            text = f"tenant {tenant} has been deleted: put it after {until:%Y-%m-%d %H:%M} UTC, when its last messages are gone"
        super().__init__(text)


class QuotaExceeded(TickwheelError):
    """As many jobs of a tenant wait as may, about; the same request may be taken after a while."""

    def __init__(self, tenant: str, *, count: int, limit: int) -> None:
        super().__init__(
            f"about {count} jobs of tenant {tenant} wait, and {limit} may: wait until some have run, cancel some, or ask "
            "an operator for a higher max_pending"
        )
        self.count = count
        self.limit = limit
        self.retry_after = timedelta(minutes=1)


class BacklogExceeded(TickwheelError):
    """More jobs of a tenant wait than its execution_rate serves in days; the same request may be taken after a while.

    rate: jobs a second. limit: how many it serves in the time that is the most.
    """

    def __init__(self, tenant: str, *, count: int, limit: int, rate: float, most: timedelta) -> None:
        days = timedelta(days=1)
        super().__init__(
            f"about {count} jobs of tenant {tenant} wait by then, which take {count / rate / days.total_seconds():.1f} days at the "
            f"{rate:g} a second of its execution_rate, and no more than {most / days:g} days of it are taken in: submit fewer, cancel "
            "some, or ask an operator for a higher execution_rate"
        )
        self.count = count
        self.limit = limit
        self.retry_after = timedelta(minutes=1)


class SchedulesExceeded(TickwheelError):
    """A tenant has as many schedules as it may, and would have another."""

    def __init__(self, tenant: str, *, count: int, limit: int) -> None:
        super().__init__(
            f"tenant {tenant} has {count} schedules, and {limit} may be there: delete some, or ask an operator for a higher "
            "max_schedules"
        )
        self.count = count
        self.limit = limit


class FlowsExceeded(TickwheelError):
    """As many flows of a tenant have limits as may, and another would get some. tenant: None where they are the stage's."""

    def __init__(self, tenant: str | None, *, count: int, limit: int) -> None:
        owner = "the stage" if tenant is None else f"tenant {tenant}"
        super().__init__(
            f"{owner} has {count} flows with limits of their own, and {limit} may be there: delete the limits of some, or say limits in "
            "the jobs"
        )
        self.count = count
        self.limit = limit


class FiresExceeded(TickwheelError):
    """The schedules of a tenant would fire more often than they may. per_minute: what they come to without this change.

    added: fires a minute that it would add.
    """

    def __init__(self, tenant: str, *, per_minute: float, added: float, limit: int) -> None:
        super().__init__(
            f"the schedules of tenant {tenant} come to {per_minute:.4g} fires a minute, this would add {added:.4g}, and {limit} may "
            "be: let some fire less often, pause or delete some, or ask an operator for a higher max_fires_per_minute"
        )
        self.per_minute = per_minute
        self.added = added
        self.limit = limit


class TenantClosed(TickwheelError):
    """A tenant takes nothing in any more: no job, no schedule, no pause. status: why."""

    def __init__(self, tenant: str, status: str) -> None:
        remedy = "what it has continues; an operator opens it by `tickwheel tenant resume`"
        super().__init__(f"tenant {tenant} is {status}: {remedy if status == 'draining' else 'it is gone'}")


class PriorityNotAllowed(TickwheelError):
    """A job has a higher class than its tenant may use. top: the highest that it may."""

    def __init__(self, tenant: str, *, priority: str, top: str) -> None:
        super().__init__(
            f"priority is {priority}, but {top} is the highest that tenant {tenant} may use: lower it, or ask an operator"
        )
