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

    Rows are in class order: the first page of a bucket is remembered, and serves the other classes as far as it goes.
    """

    def __init__(self, timers: TimerStore, shard: int) -> None:
        self._timers = timers
        self._shard = shard
        self._first: dict[int, Page] = {}
        self._remembered = 0

    def read(self, at: Position, priority: Priority) -> Page:
        """Rows of a class behind a position, of all tenants; is_last: the class has no more in that bucket."""
        start, end = class_bounds(priority)
        low = max(at.key, start)
        page = self._first.get(at.bucket)
        if page is None or not (page.is_last or low < page.rows[-1].key):
            is_first = not at.key and priority is Priority.CRITICAL
            page = self._timers.read(at.bucket, self._shard, after="" if is_first else low, limit=PAGE)
            if is_first and self._remembered + len(page.rows) <= _MOST_REMEMBERED:
                self._first[at.bucket] = page
                self._remembered += len(page.rows)
        rows = [row for row in page.rows if low < row.key < end]
        return Page(rows, is_last=page.is_last or page.rows[-1].key >= end)

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
