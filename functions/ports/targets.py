"""What jobs call, and what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from functions.domain.targets.breaker import Breaker
from functions.domain.targets.concurrency import Permit
from functions.domain.targets.options import TargetOptions
from functions.domain.targets.webhooks import WebhookKey
from functions.ports.ledger import Applied


@dataclass(frozen=True, slots=True)
class Changed:
    """A conditional write of a breaker lost; breaker is what it found, None where it is closed."""

    breaker: Breaker | None


class BreakerStore(Protocol):
    """The breakers that are not closed, by tenant and destination. A closed one has no row.

    Every breaker that is written carries a fresh owner token, which names it from then on.
    """

    def get(self, tenant: str, destination: str) -> Breaker | None:
        """The breaker, as of some moment before."""
        ...

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[Breaker], bool]:
        """A tenant's breakers behind a destination, in the order of their destinations; whether there are more."""
        ...

    def everywhere(self, *, limit: int) -> tuple[list[Breaker], int]:
        """The first breakers of all tenants, by tenant and destination; how many there are, about, up to 1,000."""
        ...

    def put(self, breaker: Breaker, *, seen: Breaker | None) -> Applied | Changed:
        """Write a breaker, if the row is still the one that was seen: None for a closed one."""
        ...

    def close(self, seen: Breaker) -> Applied | Changed:
        """Remove the row, if it is still the one that was seen, or gone already."""
        ...

    def reset(self, tenant: str, destination: str) -> bool:
        """Remove the row, whatever it says; whether this very call did."""
        ...


class PermitStore(Protocol):
    """The permits of tenants whose concurrency is capped. A free one has no row, or one whose lease is over."""

    def take(self, permit: Permit, *, now: datetime, skew: timedelta) -> bool:
        """Take a permit that is free, or its owner's already; False when somebody else has it."""
        ...

    def leases(self, tenant: str, *, limit: int) -> dict[int, datetime]:
        """Until when the permits below that number were taken, as of some moment before; none of one without a row."""
        ...

    def give_back(self, permit: Permit) -> None:
        """Let a permit be free, if it is still its owner's."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What a target receives about the attempt that calls it. traceparent: of W3C, with the attempt as the parent."""

    job_id: str
    tenant: str
    idempotency_key: str
    attempt: int
    fence: int
    scheduled_at: datetime
    deadline: datetime
    traceparent: str


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The target took the job; result is what it said, as a JSON text. answer: all that it said, where that was read to its end."""

    result: str = ""
    answer: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pending:
    """The target answered 202: it reports to the API how it ended, under the fence that it received."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The target did not take the job. error_class: what went wrong, in a word, to count and to filter by.

    is_permanent: another attempt cannot help. retry_after: no attempt before this is of any use, says the target.
    is_its_own: the target was reached and refused just this job, so it says nothing about the next.
    """

    error: str
    error_class: str = "error"
    is_permanent: bool = False
    retry_after: timedelta | None = None
    is_its_own: bool = False


Outcome = Succeeded | Pending | Failed


class Targets(Protocol):
    """Whatever a job calls."""

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, options: TargetOptions, timeout: timedelta
    ) -> Outcome:
        """Call a target once, for no longer than the timeout. A failure is a result."""
        ...


class WebhookKeys(Protocol):
    """The master keys of the stage's signatures, the current one first."""

    def masters(self) -> Sequence[WebhookKey]:
        """As of the last few minutes."""
        ...

    def read(self) -> Sequence[WebhookKey]:
        """As of now."""
        ...
