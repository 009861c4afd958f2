"""Errors about a stage: its constants, its load, and who may act in it."""

from __future__ import annotations

from datetime import timedelta

from functions.domain.errors.general import TickwheelError


class InvalidWheel(TickwheelError, ValueError):
    """The constants of a stage break a rule that keeps jobs from being lost."""


class WheelChanged(TickwheelError):
    """The constants of the stage differ from those recorded at its first deploy."""


class ReadRateExceeded(TickwheelError):
    """A caller reads faster than it may. tenant: empty for what is of none. retry_after: when there is room for this one."""

    def __init__(self, caller: str, tenant: str, *, rate: float, retry_after: timedelta) -> None:
        of_whom, whose = (f" of tenant {tenant}", "the tenant's") if tenant else ("", "the default plan's")
        super().__init__(
            f"{caller} may ask for {rate:g} reads{of_whom} a second, of which lists, previews and the like take several: ask "
            f"later, for fewer at once, or less often; an operator may raise {whose} read_rate"
        )
        self.retry_after = retry_after


class Shed(TickwheelError):
    """The stage is behind, and takes nothing of a class in. retry_after: when that is looked at again."""

    def __init__(self, priority: str, *, lag: timedelta, retry_after: timedelta) -> None:
        super().__init__(
            f"the stage is {lag.total_seconds():g} s behind and takes no {priority} jobs in until it has caught up: submit "
            "again later, or with a higher priority if it matters more"
        )
        self.retry_after = retry_after


class Forbidden(TickwheelError):
    """A caller may not act for a tenant; without a tenant: is no operator. caller: how patterns would name it."""

    def __init__(self, caller: str, *, tenant: str = "", remedy: str) -> None:
        asked = f"may not act for tenant {tenant}" if tenant else "is no operator of this stage"
        super().__init__(f"{caller} {asked}: {remedy}")
