"""What the audit trail costs: bytes of lines as the code writes them, in the steps that Firehose bills.

Run it by `python -m bench.audit`; the table is in docs/audit.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from bench.prices import read_prices
from functions.domain.audit import Ending, encode_ending, packed
from functions.domain.instants import SECOND
from functions.domain.jobs.job import Delivery, Priority
from functions.domain.jobs.job_id import JobId
from functions.domain.jobs.occurrence import identity_of
from functions.domain.lifecycle import State

STEP = 5 * 1_024
"""Bytes: a record is billed as if it were a multiple of this."""

JOBS = 1_000_000
NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
BATCHES = (10, 5, 1)
"""Jobs of an invocation of the worker: a full batch, half of one, and when messages come alone."""


def ending(number: int, identity: str) -> Ending:
    """Of a job that took 150 ms and began 574 ms late."""
    due_at = NOON + number * SECOND
    job_id = JobId(
        tenant="globex-europe",
        priority=Priority.NORMAL,
        delivery=Delivery.EXACTLY_ONCE,
        bucket=int(due_at.timestamp()) // 60 * 60,
        shard=12,
        due_at=due_at,
        identity=identity,
    )
    began_at = due_at + timedelta(milliseconds=574)
    return Ending(
        job_id=job_id,
        outcome=State.SUCCEEDED,
        attempt=1,
        due_at=due_at,
        began_at=began_at,
        ended_at=began_at + timedelta(milliseconds=150),
        target="https://hooks.example.com/orders",
    )


def a_job(number: int) -> Ending:
    """Under a random identity."""
    return ending(number, f"{number:032x}")


def a_fire(number: int) -> Ending:
    """Of a schedule."""
    return ending(number, identity_of("nightly-report", NOON + number * SECOND))


def row(name: str, make: Callable[[int], Ending], *, batch: int, prices: Mapping[str, float]) -> str:
    """A million executions in invocations of so many."""
    lines = [encode_ending(make(number)) for number in range(batch)]
    records = [sum(len(line.encode()) + 1 for line in record) for record in packed(lines)]
    steps = sum(-(-size // STEP) for size in records)
    price = JOBS / batch * steps * prices["firehose_5_kb"] / 1_000_000
    return f"| {name}, {batch} an invocation | {sum(records) // batch:,} | {JOBS // batch:,} | {price:.2f} USD |"


def table() -> list[str]:
    """Rows of markdown."""
    prices = read_prices()
    head = ["| a million | bytes a line | requests | Firehose |", "|---|---|---|---|"]
    kinds = (("jobs", a_job), ("fires of schedules", a_fire))
    return head + [row(name, make, batch=batch, prices=prices) for name, make in kinds for batch in BATCHES]


if __name__ == "__main__":
    print("\n".join(table()))
