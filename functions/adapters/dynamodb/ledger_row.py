"""The bytes of a ledger row: its attributes, when it expires, and the condition that it has not changed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from functions.domain.instants import from_ms, to_ms, to_seconds
from functions.domain.jobs.claims import MOVED_LIFE, LedgerRow, expires_at
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.lifecycle import State


def unchanged_since(row: LedgerRow | None) -> tuple[str, dict[str, Any]]:
    """The condition that a row is still the one that was seen, and its values."""
    if row is None:
        return "attribute_not_exists(k)", {}
    if not row.fence:
        return "s = :seen AND attribute_not_exists(f)", {":seen": {"S": row.state}}
    return "s = :seen AND f = :fence", {":seen": {"S": row.state}, ":fence": {"N": str(row.fence)}}


def read_row(item: Mapping[str, Any]) -> LedgerRow:
    """The row that an item holds."""
    return LedgerRow(
        state=State(item["s"]["S"]),
        attempt=_number(item, "a"),
        fence=_number(item, "f"),
        owner=_text(item, "o"),
        due_at=_instant(item, "d"),
        lease_until=_instant(item, "l"),
        rescue_count=_number(item, "r"),
        cancel_requested=bool(item.get("c", {}).get("BOOL")),
        job_id=_text(item, "i"),
        fingerprint=_text(item, "h"),
        result=_text(item, "z"),
        error=_text(item, "e"),
        updated_at=_instant(item, "u"),
        parked_until=_instant(item, "w"),
        held=_text(item, "j"),
        moved_to=_text(item, "m"),
        spent=_number(item, "p"),
        counted_from=_instant(item, "q"),
    )


def _number(item: Mapping[str, Any], name: str) -> int:
    return int(item[name]["N"]) if name in item else 0


def _text(item: Mapping[str, Any], name: str) -> str:
    return item[name]["S"] if name in item else ""


def _instant(item: Mapping[str, Any], name: str) -> datetime | None:
    return from_ms(int(item[name]["N"])) if name in item else None


def ms_of(instant: datetime) -> dict[str, str]:
    """An instant as a number attribute."""
    return {"N": str(to_ms(instant))}


def moved_ttl_of(job_id: JobId, timer: Timer, *, now: datetime) -> dict[str, str]:
    """Of the row of a job that goes on as another. A timer of its own time may be left behind."""
    return {"N": str(to_seconds(max(now, job_id.due_at, timer.due_at) + MOVED_LIFE) + 1)}


def ttl_of(*, now: datetime, due_at: datetime, lease_until: datetime | None = None) -> dict[str, str]:
    """When a row expires."""
    # A second more: whole seconds are rounded down.
    return {"N": str(to_seconds(expires_at(now=now, due_at=due_at, lease_until=lease_until)) + 1)}
