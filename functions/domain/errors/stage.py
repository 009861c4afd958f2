"""Errors about a stage: its constants, its load, its clocks and stores, its targets, and who may act in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


class ClockSkewed(TickwheelError):
    """This machine's clock is too far from the store's for a safe far write."""

    def __init__(self, *, offset: timedelta, limit: timedelta) -> None:
        super().__init__(
            f"this clock differs from the store's by {offset.total_seconds():+.1f} s, more than the "
            f"{limit.total_seconds():.1f} s that keep a far write safe"
        )


@dataclass
class NotPlaced(TickwheelError):
    """The stores refused these timers on every attempt; `reasons` says why, one a timer."""

    reasons: Sequence[str]

    def __str__(self) -> str:
        return f"{len(self.reasons)} timers were refused on every attempt, the first because: {self.reasons[0]}"


class InvalidPattern(TickwheelError, ValueError):
    """A pattern of the allowed targets is none, or allows nothing."""

    def __init__(self, pattern: str, remedy: str) -> None:
        super().__init__(f"targets has {pattern!r}: {remedy}")
        self.pattern = pattern


class MalformedWebhookSecret(TickwheelError):
    """The secret of the master keys is not what the stage made it; nothing of it is repeated."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"the webhook secret {fault}: put one as docs/targets.md says")
