"""Tenants: their plans, rates and usage, what waits of them, and their deletion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Protocol

from functions.domain.tenants.deletion import Deletion, DeletionStage
from functions.domain.tenants.plan import Tenant, TenantPlan
from functions.domain.tenants.rate_bookings import Timetable
from functions.domain.tenants.usage import Days, Usage
from functions.ports.ledger import Applied


class TenantPlans(Protocol):
    """The plans of tenants, as of at most half a minute before."""

    def of(self, tenant: str) -> TenantPlan:
        """The plan of a tenant: the stage's default where it has no row."""
        ...

    def of_everybody(self) -> TenantPlan:
        """The plan of a tenant that has no row. Paused: everybody is."""
        ...


EVERYBODY = "~everybody"
"""Whose row pauses all tenants: none can be called so."""


@dataclass(frozen=True, slots=True)
class Revision:
    """The number of changes of all tenants so far; and the secret of the stage's job ids, empty while there is none."""

    changes: int = 0
    id_secret: bytes = field(default=b"", repr=False)


class TenantStore(Protocol):
    """The tenants that have a row, and the secret of job ids. Every change of any of them is a new revision."""

    def revision(self) -> Revision:
        """The last one, as of some moment before."""
        ...

    def keep_id_secret(self, secret: bytes) -> bytes:
        """Keep the secret of job ids, where there is none yet; the one that is kept."""
        ...

    def all(self) -> tuple[Revision, dict[str, Tenant]]:
        """Every row by its tenant, EVERYBODY's too, as of all writes before, and a revision at least as old."""
        ...

    def get(self, tenant: str) -> Tenant | None:
        """A tenant's row, or EVERYBODY's, as of all writes before."""
        ...

    def page(self, *, after: str, limit: int) -> tuple[dict[str, Tenant], bool]:
        """Tenants behind one, in the order of their names; whether there are more. Without EVERYBODY."""
        ...

    def change(self, name: str, tenant: Tenant, *, seen: int) -> bool:
        """Write a tenant, if the version that is there is still the one that was seen: 0 for none."""
        ...


@dataclass(frozen=True, slots=True)
class Ahead:
    """No room for submissions; next_at: the theoretical arrival time that was found, None where it kept changing."""

    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class Booked:
    """Somebody else has reserved; timetable is what was found, None where there is none."""

    timetable: Timetable | None


class RateStore(Protocol):
    """What is used up of the rates of tenants.

    A reservation whose answer is lost is lost with it: a rate is never exceeded for that.
    """

    def book(self, tenant: str, timetable: Timetable, *, seen: Timetable | None) -> Applied | Booked:
        """Reserve executions: write a timetable, if the one that is there is still the one that was seen."""
        ...

    def spend(
        self, tenant: str, *, cost: timedelta, now: datetime, latest: datetime, most: datetime | None = None
    ) -> Applied | Ahead:
        """Reserve submissions: add a cost to the theoretical arrival time, or to now, unless it is past `latest`.

        most: what is past that was reserved at another rate, and counts for nothing.
        """
        ...


class DeletionStore(Protocol):
    """The deletions of tenants that are not over."""

    def begin(self, deletion: Deletion) -> Deletion:
        """Keep a new deletion; the one that there is, unless that is of an earlier life of the tenant."""
        ...

    def get(self, tenant: str) -> Deletion | None:
        """How far it has come, as of all writes before."""
        ...

    def open(self, *, limit: int) -> list[str]:
        """Tenants with a deletion."""
        ...

    def take(
        self, tenant: str, *, owner: str, lease_until: datetime, now: datetime, skew: timedelta
    ) -> Deletion | None:
        """Take the lease; None while another has it, or when there is no deletion."""
        ...

    def save(self, deletion: Deletion, *, lease_until: datetime | None) -> Deletion | None:
        """Record progress and prolong the lease, or give it back (None). None when somebody else has taken it."""
        ...

    def forget(self, deletion: Deletion) -> None:
        """It is over; nothing happens when it is gone, or another of the tenant has begun."""
        ...


@dataclass(frozen=True, slots=True)
class Swept:
    """A page of what there was of a tenant. after: where the next begins, None behind the last."""

    deleted: int
    after: str | None


class TenantData(Protocol):
    """All that is stored of tenants."""

    def sweep(self, tenant: str, part: DeletionStage, *, after: str) -> Swept:
        """Delete a page of a part. Repeating it, or a later one, changes nothing."""
        ...


class PendingStore(Protocol):
    """How many jobs of tenants wait, by the UTC day on which they are due."""

    def add(self, tenant: str, day: date, count: int) -> None:
        """Add to what is known of a day; a negative count takes away."""
        ...

    def counts(self, tenant: str, *, since: date) -> Mapping[date, int]:
        """The jobs of a day and of each day after it, as of some moment before. None is below zero."""
        ...


class UsageStore(Protocol):
    """What tenants have used, by UTC days."""

    def add(self, tenant: str, day: date, used: Usage) -> None:
        """Add to what is known of a day."""
        ...

    def days(self, tenant: str, days: Days) -> dict[date, Usage]:
        """The days on which there was anything, in order, as of some moment before."""
        ...
