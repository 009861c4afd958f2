"""Conditional writes of ledger rows, and of rows of other tables in one transaction with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from functions.adapters.clients import TRIES
from functions.adapters.dynamodb.dead_letters import DynamoDBDeadLetters
from functions.adapters.dynamodb.ledger_row import read_row, ttl_of
from functions.adapters.dynamodb.table import Item, Table, Write
from functions.adapters.dynamodb.timers import DynamoDBTimerStore
from functions.domain.errors import Busy, JobBusy
from functions.domain.jobs.job import Timer
from functions.ports.ledger import Applied, Refused


@dataclass
class LedgerWrites:
    """One table of rows, each of which changes only while it is what somebody has seen."""

    table: Table
    skew: timedelta
    dead_letters: DynamoDBDeadLetters
    timers: DynamoDBTimerStore

    def _transact(self, key: str, *parts: Any) -> Applied | Refused:
        return _applied(_in_turn(key, lambda: self.table.transact(*parts, tries=TRIES)))

    def _write(self, timer: Timer, *, scheduled_at: datetime | None = None, **asked: Any) -> Applied | Refused:
        scheduled_at = scheduled_at or timer.job.scheduled_at
        return self._apply(timer.job.key, **_transition(due_at=timer.due_at, scheduled_at=scheduled_at, **asked))

    def _update(self, key: str, *, returns: str, **asked: Any) -> Item | Refused:
        return self._change(key, returns=returns, **_transition(**asked))

    def _apply(self, key: str, **asked: Any) -> Applied | Refused:
        """An update that is no transition."""
        return _applied(_in_turn(key, lambda: self.table.update({"k": key}, tries=TRIES, **asked)))

    def _change(self, key: str, *, returns: str, **asked: Any) -> Item | Refused:
        """The attributes that it returns, or the row that it found."""
        write = _in_turn(key, lambda: self.table.update({"k": key}, returns=returns, tries=TRIES, **asked))
        return write.item if write.is_done else _refused(write)

    def _change_freely(self, key: str, **asked: Any) -> Item:
        """An update without a condition; the row as it is then."""
        return _in_turn(key, lambda: self.table.update({"k": key}, returns="ALL_NEW", tries=TRIES, **asked)).item

    def _request(self, key: str, **asked: Any) -> Any:
        """A transition, to be a part of a transaction."""
        return self.table.update_request({"k": key}, **_transition(**asked))

    def _put(self, item: Item, **asked: Any) -> Applied | Refused:
        return _applied(_in_turn(item["k"], lambda: self.table.put(item, tries=TRIES, **asked)))


def _transition(
    *,
    assignments: str,
    due_at: datetime,
    now: datetime,
    additions: str = "",
    removals: str = "",
    scheduled_at: datetime | None = None,
    lease_until: datetime | None = None,
    **values: Any,
) -> dict[str, Any]:
    """An update to `:state` by `:owner`; the other values are those of its expressions."""
    update = f"SET s = :state, o = :owner, u = :now, x = :ttl, {assignments}"
    update += f" REMOVE {removals}" if removals else ""
    update += f" ADD {additions}" if additions else ""
    # A job that runs before its time may have left a timer of that time behind: its row outlives that one too.
    latest = max(due_at, scheduled_at or due_at)
    ttl = ttl_of(now=now, due_at=latest, lease_until=lease_until)
    return {"update": update, "due": due_at, "now": now, "ttl": ttl, **values}


def _in_turn(key: str, write: Callable[[], Write]) -> Write:
    """Raises JobBusy for what collided with the transactions of others on its row each time."""
    try:
        return write()
    except Busy:
        raise JobBusy(key) from None


def _applied(write: Write) -> Applied | Refused:
    return Applied() if write.is_done else _refused(write)


def _refused(write: Write) -> Refused:
    return Refused(read_row(write.item) if write.item else None)
