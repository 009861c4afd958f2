"""Which days of the far ring are a tenant's: a mark for each day, class and shard, written before its first row is."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from functions.adapters.clients import tried
from functions.adapters.dynamodb.table import Item, Table
from functions.domain.errors import Undecodable
from functions.domain.instants import EPOCH, to_seconds
from functions.domain.jobs.claims import TIMER_LIFE
from functions.domain.jobs.job import Priority, Timer
from functions.domain.operations.operation import OwnedDay

MARK_LIFE = TIMER_LIFE + timedelta(days=1)
"""How long a mark stands after its day: longer than any row of it."""

MOST_KNOWN = 50_000
"""Marks that a process remembers. One that it forgets costs it half a read unit."""

Mark = tuple[str, OwnedDay]
"""A tenant, and where it has rows."""

_ITEM = "day#"
_DAY = "%Y%m%d"
_PARTS = 4
_BATCH = 25


@dataclass
class DynamoDBDayMarks:
    """{t: tenant, i: `day#{yyyymmdd}#{class}#{shard:04d}`, x: ttl (s)}, in the tenants table.

    writer: makes one attempt a call, because a timer waits for its mark. pool: writes the batches of many marks side by
    side. Safe for the threads of a batch.
    """

    table: Table
    writer: Table
    pool: Executor
    most_known: int = MOST_KNOWN
    _known: dict[Mark, None] = field(default_factory=dict[Mark, None], init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def days(self, tenant: str) -> list[OwnedDay]:
        """A read unit for each 4 KB of marks. Raises Undecodable."""
        owned = "t = :t AND begins_with(i, :item)"
        return [_read(item) for item in self.table.query_all(owned, only="i", is_consistent=True, t=tenant, item=_ITEM)]

    def put(self, timers: Sequence[Timer]) -> set[Mark]:
        """Mark the days of timers; the marks that are not known to stand.

        Half a read unit for each that this process has not seen, and a write unit for each that nobody has written.
        """
        wanted = {mark_of(timer) for timer in timers}
        unmet = [mark for mark in sorted(wanted) if mark not in self._known]
        batches = [unmet[start : start + _BATCH] for start in range(0, len(unmet), _BATCH)]
        put = self.pool.map if len(batches) > 1 else map
        return {mark for left in put(self._put, batches) for mark in left}

    def _put(self, marks: Sequence[Mark]) -> Sequence[Mark]:
        """Once, without retries; those that are not known to be written."""
        left = tried(lambda: self._write(self._missing(marks)))
        if left is None:
            return marks
        self._remember([mark for mark in marks if mark not in left])
        return left

    def _missing(self, marks: Sequence[Mark]) -> Sequence[Mark]:
        """Also those that the store left unread: writing one again changes nothing."""
        found = _names_of(self.writer.get_some(map(_key, marks)))
        return [mark for mark in marks if (mark[0], _item(mark[1])) not in found]

    def _write(self, marks: Sequence[Mark]) -> Sequence[Mark]:
        if not marks:
            return []
        unprocessed = _names_of(self.writer.put_many(map(_row, marks)))
        return [mark for mark in marks if (mark[0], _item(mark[1])) in unprocessed]

    def _remember(self, marks: Sequence[Mark]) -> None:
        with self._lock:
            self._known.update(dict.fromkeys(marks))
            while len(self._known) > self.most_known:
                del self._known[next(iter(self._known))]


def mark_of(timer: Timer) -> Mark:
    """The mark that stands before the row of a timer is put."""
    return timer.job.tenant, OwnedDay.of(timer)


def _item(owned: OwnedDay) -> str:
    day = EPOCH + timedelta(days=owned.day)
    return f"{_ITEM}{day:{_DAY}}#{owned.priority.value}#{owned.shard:04d}"


def _key(mark: Mark) -> Item:
    tenant, owned = mark
    return {"t": tenant, "i": _item(owned)}


def _row(mark: Mark) -> Item:
    return {**_key(mark), "x": to_seconds(mark[1].ends_at + MARK_LIFE)}


def _names_of(items: Iterable[Item]) -> set[tuple[str, str]]:
    return {(item["t"], item["i"]) for item in items}


def _read(item: Item) -> OwnedDay:
    try:
        _, day, priority, shard = item["i"].split("#", _PARTS - 1)
        begins_at = datetime.strptime(day, _DAY).replace(tzinfo=UTC)
        return OwnedDay((begins_at - EPOCH).days, Priority(int(priority)), int(shard))
    except ValueError as error:
        raise Undecodable(f"not a mark: {error!r}") from error
