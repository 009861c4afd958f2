"""Instants as the API writes them, as aware datetimes in UTC."""

from datetime import UTC, datetime
from typing import Any


def parse_instant(value: Any) -> datetime:
    """Reads RFC 3339 with an offset, as aware UTC; raises ValueError on anything else, a naive time above all."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a time: write RFC 3339, such as 2030-01-31T09:00:00Z")  # noqa: TRY004
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a time: write RFC 3339, such as 2030-01-31T09:00:00Z") from None
    if instant.tzinfo is None:
        raise ValueError(f"{value!r} has no offset: write {value}Z for UTC, or {value}+02:00")
    return instant.astimezone(UTC)


def format_instant(instant: datetime) -> str:
    """An aware instant as RFC 3339 in UTC."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
