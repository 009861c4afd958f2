"""Where a backfill continues whose fires could not all come in at once."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.domain.errors import InvalidInput
from functions.domain.instants import from_ms, to_ms

MOST_AHEAD = timedelta(days=366)
"""How far ahead its next run may be: a thousand fires at the lowest rate are spread over less."""

_BOOKMARK = re.compile(r"(\d{1,15})~(\d{1,15})~([0-9A-Za-z_-]{1,40})(?:~(\d{1,4}))?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookmark:
    """start: the first fire that is left. due_at: when its run is due, so that parts keep the pace. token: of the backfill.

    index: how many fires of the backfill came before it.
    """

    start: datetime
    due_at: datetime
    token: str
    index: int = 0

    def __str__(self) -> str:
        return f"{to_ms(self.start)}~{to_ms(self.due_at)}~{self.token}~{self.index}"

    def first_at(self, *, now: datetime) -> datetime:
        """When the first run of the next part is due: never in the past. Raises InvalidInput."""
        if self.due_at > now + MOST_AHEAD:
            raise InvalidInput(f"after is {str(self)!r}, which no backfill has answered: its next run is too far ahead")
        return max(now, self.due_at)


def parse_bookmark(text: str) -> Bookmark:
    """What `str` wrote, or did before a bookmark had an index. Raises InvalidInput."""
    if found := _BOOKMARK.fullmatch(text):
        with suppress(ValueError, OverflowError):
            start, due_at = (from_ms(int(found[place])) for place in (1, 2))
            return Bookmark(start=start, due_at=due_at, token=found[3], index=int(found[4] or 0))
    raise InvalidInput(f"after is {text[:80]!r}, but must be what a backfill has answered as next")
