"""What a tick reads of its shard."""

from __future__ import annotations

from functions.domain.far_ring.cursor import Position
from functions.domain.far_ring.timer_key import class_bounds
from functions.domain.jobs.job import Priority
from functions.domain.wheel import Wheel
from functions.ports.timers import Page, TimerStore

PAGE = 500

_MOST_REMEMBERED = 20_000


class Pages:
    """Reads a bucket class by class, with one Query a bucket as long as the bucket fits into a page.

    Rows are in class order: the page with which a class begins is remembered, and serves those below as far as it goes.
    """

    def __init__(self, timers: TimerStore, shard: int) -> None:
        self._timers = timers
        self._shard = shard
        self._begun: dict[int, tuple[str, Page]] = {}
        self._remembered = 0

    def read(self, at: Position, priority: Priority) -> Page:
        """Rows of a class behind a position, of all tenants; is_last: the class has no more in that bucket."""
        start, end = class_bounds(priority)
        low = max(at.key, start)
        after, page = self._begun.get(at.bucket, ("", None))
        if page is None or low < after or not (page.is_last or low < page.rows[-1].key):
            after = "" if not at.key and priority is Priority.CRITICAL else low
            page = self._timers.read(at.bucket, self._shard, after=after, limit=PAGE)
            if not at.key:
                self._remember(at.bucket, after, page)
        rows = [row for row in page.rows if low < row.key < end]
        return Page(rows, is_last=page.is_last or page.rows[-1].key >= end)

    def _remember(self, bucket: int, after: str, page: Page) -> None:
        _, before = self._begun.get(bucket, ("", None))
        remembered = self._remembered + len(page.rows) - (len(before.rows) if before is not None else 0)
        if remembered <= _MOST_REMEMBERED:
            self._begun[bucket], self._remembered = (after, page), remembered

    def read_between(self, at: Position, start: str, end: str, *, limit: int) -> Page:
        """Rows of a bucket with keys between two, behind a position; is_last: there are no more of them there."""
        after = max(at.key, start)
        page = self._timers.read(at.bucket, self._shard, after=after, limit=limit)
        rows = [row for row in page.rows if row.key < end]
        return Page(rows, is_last=page.is_last or len(rows) < len(page.rows))


def position_behind(page: Page, at: Position, *, wheel: Wheel) -> Position:
    """The position behind a page that was read at another."""
    if page.is_last:
        return Position(wheel.next_bucket(at.bucket))
    return Position(at.bucket, page.rows[-1].key if page.rows else at.key)
