"""What a tenant uses: jobs, attempts, write units of the tables and bytes of payloads, counted by the UTC day.

Write units are counted from what is written, as DynamoDB bills it: one for each KB of a row, twice that in a transaction.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date, timedelta

from functions.domain.errors import InvalidInput
from functions.domain.far_ring.timer_key import timer_key
from functions.domain.far_ring.timer_record import encode_timer
from functions.domain.jobs.job import Delivery, Job, Timer
from functions.domain.jobs.occurrence import Overlap

USAGE_LIFE = timedelta(days=400)
"""How long the usage of a day can be asked for."""

MAX_DAYS = USAGE_LIFE.days
USUAL_DAYS = 30
EARLIEST = date(2000, 1, 1)

_KB = 1_024
_REST_OF_ROW = 40
"""Bytes of a far row beside its sort key and its record: names, partition key and numbers."""

_LETTER_ROW = 400
"""Bytes of a dead letter beside its record, about: its key, the job's id and a short error."""


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
    """Until today, and USUAL_DAYS of them, where nothing else is said. Raises InvalidInput."""
    end = last or (today if first is None else max(first, today))
    usual = max(end, EARLIEST + timedelta(days=USUAL_DAYS)) - timedelta(days=USUAL_DAYS - 1)
    return Days(first=first or usual, last=end)


def submission_units(timer: Timer, *, is_far: bool, is_keyed: bool) -> int:
    """What taking a job in writes: its far row, and the ledger row that its idempotency key registers."""
    return (row_units(timer) if is_far else 0) + is_keyed


def row_units(timer: Timer) -> int:
    """A far row."""
    record = len(encode_timer(timer).encode())
    return _units_of(record + len(timer_key(timer.job, due_at=timer.wakes_at)) + _REST_OF_ROW)


def attempt_units(timer: Timer) -> int:
    """What an attempt writes: its claim and its settlement, and for the first of a fire what its chain and slot write."""
    return _LEDGERED[timer.job.delivery] + (fire_units(timer.job) if timer.attempt == 1 else 0)


def fire_units(job: Job) -> int:
    """What a fire of a schedule writes beside its run: the next alarm, the state, and its slot where runs must not overlap."""
    if job.occurrence is None:
        return 0
    return 2 + (job.occurrence.overlap is not Overlap.ALLOW)


def letter_units(timer: Timer) -> int:
    """What a failure for good writes beside its settlement: the dead letter, in one transaction with it where there is one."""
    letter = _units_of(len(encode_timer(timer).encode()) + _LETTER_ROW)
    match timer.job.delivery:
        case Delivery.AT_MOST_ONCE:
            return 0
        case Delivery.AT_LEAST_ONCE:
            return letter
        case Delivery.EXACTLY_ONCE:
            return 2 * letter + 1


_LEDGERED = {Delivery.EXACTLY_ONCE: 2, Delivery.AT_MOST_ONCE: 1, Delivery.AT_LEAST_ONCE: 0}


def _units_of(size: int) -> int:
    return -(-size // _KB)
