"""Parts of sentences."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.domain.instants import DAY, format_instant
from functions.domain.jobs.claims import LedgerRow
from functions.domain.tenants.backlog import Backlog


def instant_text(instant: datetime | None) -> str:
    """An instant, or that it is not known."""
    return format_instant(instant) if instant else "an unknown time"


def whole_seconds(duration: timedelta) -> int:
    """The whole seconds of it."""
    return int(duration.total_seconds())


def error_text(row: LedgerRow) -> str:
    """What an attempt failed with, without its full stop."""
    return row.error.rstrip(".") or "no error was kept"


def backlog_text(backlog: Backlog | None) -> str:
    """How long what waits takes; empty where nothing does."""
    if backlog is None or not backlog.count:
        return ""
    days = backlog.takes / DAY
    return f"; about {backlog.count} jobs wait, which take {days:.1f} days at that rate"


def note_text(note: str) -> str:
    """A note in brackets; empty without one."""
    return f" ({note})" if note else ""
