"""Write units of what a job makes, counted from what is written.

As DynamoDB bills it: one for each KB of a row, twice that in a transaction
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html).
"""

from __future__ import annotations

from functions.domain.far_ring.timer_key import timer_key
from functions.domain.far_ring.timer_record import encode_timer
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.overlap import Overlap

_KB = 1_024
_REST_OF_ROW = 40
"""Bytes of a far row beside its sort key and its record: names, partition key and numbers."""

_DEAD_LETTER_ROW = 400
"""Bytes of a dead letter beside its record, about: its key, the job's id and a short error."""


def submission_units(timer: Timer, *, is_far: bool, is_keyed: bool) -> int:
    """What taking a job in writes: its far row, and the ledger row that its idempotency key registers."""
    return (row_units(timer) if is_far else 0) + is_keyed


def row_units(timer: Timer) -> int:
    """A far row."""
    record = len(encode_timer(timer).encode())
    return _units_of(record + len(timer_key(timer.job, due_at=timer.wakes_at)) + _REST_OF_ROW)


def attempt_units(timer: Timer) -> int:
    """What an attempt writes: its claim and its settlement, and for the first of a fire what its chain and slot write."""
    fire = timer.job.occurrence
    if timer.attempt > 1 or fire is None:
        return _LEDGERED[timer.job.delivery]
    # The next alarm, the state, and the slot where runs must not overlap.
    return _LEDGERED[timer.job.delivery] + 2 + (fire.overlap is not Overlap.ALLOW)


def dead_letter_units(timer: Timer) -> int:
    """What a failure for good writes beside its settlement: the dead letter, in one transaction with it where there is one."""
    letter = _units_of(len(encode_timer(timer).encode()) + _DEAD_LETTER_ROW)
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
