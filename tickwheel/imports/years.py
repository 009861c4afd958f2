"""A field of years, as the first and the last instant of a schedule."""

import re
from datetime import UTC, datetime

from tickwheel.imports.clock import zone_of
from tickwheel.imports.fields import Unreadable

_YEAR = re.compile(r"(\*|[0-9]{4})(?:-([0-9]{4}))?(?:/([0-9]{1,3}))?", re.ASCII)
_FIRST, _LAST = 1970, 2199


def bounds_of(text: str, timezone: str) -> dict[str, str]:
    """`start` and `end` of years that follow each other. Raises Unreadable."""
    years: set[int] = set()
    for item in text.split(","):
        match = _YEAR.fullmatch(item)
        if match is None:
            raise Unreadable(f"{item!r} is no year")
        first = _FIRST if match[1] == "*" else int(match[1])
        last = int(match[2]) if match[2] else _LAST if match[1] == "*" or match[3] else first
        years.update(range(max(first, _FIRST), min(last, _LAST) + 1, int(match[3] or 1) or 1))
    if not years or len(years) != max(years) - min(years) + 1:
        raise Unreadable(f"{text!r} are not years that follow each other: put a schedule for each run of them")
    zone = zone_of(timezone)
    start, end = (
        datetime(year, 1, 1, tzinfo=zone).astimezone(UTC).isoformat() for year in (min(years), max(years) + 1)
    )
    return {
        **({"start": start} if min(years) > _FIRST else {}),
        **({"end": end} if max(years) < _LAST else {}),
    }
