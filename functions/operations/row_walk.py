"""Walk over a tenant's rows in the far ring, day by day and bucket by bucket, from any position on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from functions.domain.operations.operation import OwnedDay, Stretch, WalkPosition
from functions.domain.wheel import Wheel
from functions.ports.timers import Page, StoredTimer, TimerStore

_BUCKETS_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Finding:
    """Rows of a page, and where the walk is behind them."""

    rows: Sequence[StoredTimer]
    place: WalkPosition


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A walk over the rows of a tenant. page: how many are read at once, at most.

    side_by_side: maps a function over items at the same time, answers in order.
    """

    wheel: Wheel
    timers: TimerStore
    tenant: str
    page: int
    side_by_side: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

    def findings(self, left: Sequence[tuple[Stretch, str]]) -> Iterator[Finding]:
        """Page by page, in the order of the way that is left; one without rows behind every few buckets."""
        for stretch, after in left:
            width = self.wheel.next_bucket(stretch.first) - stretch.first
            for first in range(stretch.first, stretch.end, _BUCKETS_AT_ONCE * width):
                end = min(first + _BUCKETS_AT_ONCE * width, stretch.end)
                entries = [(bucket, after if bucket == stretch.first else "") for bucket in range(first, end, width)]
                pages = self.side_by_side(lambda entry, owned=stretch.owned: self._read(owned, *entry), entries)
                for (bucket, _), page in zip(entries, pages, strict=True):
                    yield from self._rest_of_bucket(stretch.owned, bucket, page)
                yield Finding((), _place(stretch.owned, end))

    def _rest_of_bucket(self, owned: OwnedDay, bucket: int, page: Page) -> Iterator[Finding]:
        while page.rows:
            last = page.rows[-1].key
            # Rows of another day are read on that day, in the same bucket.
            rows = [row for row in page.rows if row.timer is None or OwnedDay.of(row.timer).day == owned.day]
            yield Finding(rows, _place(owned, bucket, last))
            if page.is_last:
                return
            page = self._read(owned, bucket, last)

    def _read(self, owned: OwnedDay, bucket: int, after: str) -> Page:
        return self.timers.read_owned(self.tenant, owned, bucket=bucket, after=after, limit=self.page)


def _place(owned: OwnedDay, bucket: int, key: str = "") -> WalkPosition:
    return WalkPosition(owned.day, owned.priority.value, owned.shard, bucket, key)
