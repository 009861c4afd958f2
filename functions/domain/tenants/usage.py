"""What a tenant uses: jobs, attempts, write units of the tables and bytes of payloads, counted by the UTC day."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date, timedelta

from functions.domain.errors import InvalidInput

USAGE_LIFE = timedelta(days=400)
"""How long the usage of a day can be asked for."""

MAX_DAYS = USAGE_LIFE.days
USUAL_DAYS = 30
EARLIEST = date(2000, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Counts of a time. executed: attempts that were called. failed: for good. units: of writes. bytes: of payloads."""

    submitted: int = 0
    executed: int = 0
    succeeded: int = 0
    failed: int = 0
    units: int = 0
    bytes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in FIGURES})

    @property
    def jobs(self) -> int:
        """How much has happened: what decides when it is worth a write."""
        return self.submitted + self.executed


FIGURES = tuple(field.name for field in fields(Usage))
"""The names of all counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Days:
    """UTC days, both included. Raises InvalidInput when they are out of order, too many, or before EARLIEST."""

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.first < EARLIEST:
            raise InvalidInput(f"from is {self.first}, but {EARLIEST} is the earliest")
        if self.first > self.last:
            raise InvalidInput(f"from is {self.first}, which is after until, {self.last}")
        if self.count > MAX_DAYS:
            raise InvalidInput(f"from {self.first} until {self.last} is {self.count} days, but {MAX_DAYS} are the most")

    @property
    def count(self) -> int:
        """How many days."""
        return (self.last - self.first).days + 1


def days_asked(first: date | None, last: date | None, *, today: date) -> Days:
    """By default USUAL_DAYS until today. Raises InvalidInput."""
    end = last or (today if first is None else max(first, today))
    usual = max(end, EARLIEST + timedelta(days=USUAL_DAYS)) - timedelta(days=USUAL_DAYS - 1)
    return Days(first=first or usual, last=end)
