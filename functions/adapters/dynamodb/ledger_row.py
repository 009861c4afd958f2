"""The bytes of a ledger row: its attributes, when it expires, and the condition that it has not changed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from functions.adapters.dynamodb.table import Item, instant_of
from functions.domain.instants import to_seconds
from functions.domain.jobs.claims import MOVED_LIFE, LedgerRow, expires_at
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.lifecycle import State

STARTS = "#starts#"
"""In the key of what counts the starts of an attempt that has no row. No identity has a "#", so it is no row's key."""


def unchanged_since(row: LedgerRow | None) -> tuple[str, dict[str, Any]]:
    """The condition that a row is still the one that was seen, and its values."""
    if row is None:
        return "attribute_not_exists(k)", {}
    if not row.fence:
        return "s = :seen AND attribute_not_exists(f)", {"seen": row.state}
    return "s = :seen AND f = :fence", {"seen": row.state, "fence": row.fence}


def read_row(item: Item) -> LedgerRow:
    """The row that an item holds."""
    return LedgerRow(
        state=State(item["s"]),
        attempt=item.get("a", 0),
        fence=item.get("f", 0),
        owner=item.get("o", ""),
        due_at=instant_of(item, "d"),
        lease_until=instant_of(item, "l"),
        rescue_count=item.get("r", 0),
        cancel_requested=bool(item.get("c")),
        job_id=item.get("i", ""),
        fingerprint=item.get("h", ""),
        result=item.get("z", ""),
        whole=item.get("y", ""),
        error=item.get("e", ""),
        updated_at=instant_of(item, "u"),
        parked_until=instant_of(item, "w"),
        waits_for=item.get("b", ""),
        held=item.get("j", ""),
        moved_to=item.get("m", ""),
        spent=item.get("p", 0),
        counted_from=instant_of(item, "q"),
        asked=item.get("g", ""),
        tried=item.get("t", ""),
    )


def moved_ttl_of(job_id: JobId, timer: Timer, *, now: datetime) -> int:
    """When the row of a job expires that continues as another. A timer of its own time may be left behind."""
    return to_seconds(max(now, job_id.due_at, timer.due_at) + MOVED_LIFE) + 1


def ttl_of(*, now: datetime, due_at: datetime, lease_until: datetime | None = None) -> int:
    """When a row expires."""
    # A second more: whole seconds are rounded down.
    return to_seconds(expires_at(now=now, due_at=due_at, lease_until=lease_until)) + 1
