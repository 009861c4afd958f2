"""What a store makes of an instant."""

from __future__ import annotations

from datetime import datetime

from functions.domain.instants import from_ms, to_ms


def kept(instant: datetime) -> datetime:
    """Whole milliseconds."""
    return from_ms(to_ms(instant))
