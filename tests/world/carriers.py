"""What still carries a job to its run: a message, or a far row that no cursor has passed.

Between any two calls a job that was promised has such a carrier, or has come to its end. This sees a loss at once,
also one that the audit would repair five minutes later.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from functions.domain.claims import LedgerRow
from functions.domain.cursor import Cursors, Position
from functions.domain.envelope import decode_envelope, decode_timer
from functions.domain.job import Priority, Timer
from functions.domain.lifecycle import State
from tests.fakes import InMemoryReadyQueue, InMemoryShardStore, InMemoryTimerStore


@lru_cache(maxsize=4_096)
def timers_of(body: str) -> tuple[Timer, ...]:
    """The timers of a message."""
    return tuple(decode_envelope(body))


@lru_cache(maxsize=4_096)
def timer_of(record: str, tenant: str) -> Timer:
    """The timer of a far row."""
    return decode_timer(record, tenant=tenant)


def carriers(ready: InMemoryReadyQueue, timers: InMemoryTimerStore, shards: InMemoryShardStore) -> dict[str, set[int]]:
    """The attempts that are on their way, by the key of their job."""
    found: dict[str, set[int]] = {}
    for timer in _waiting(ready, timers, shards):
        found.setdefault(timer.job.key, set()).add(timer.attempt)
    return found


def leads_on(attempt: int, row: LedgerRow | None) -> bool:
    """Whether a message with this attempt can still run a job whose ledger row stands so."""
    if row is None:
        return True
    return attempt > row.attempt if row.state is State.RETRYING else attempt >= row.attempt


def _waiting(ready: InMemoryReadyQueue, timers: InMemoryTimerStore, shards: InMemoryShardStore) -> Iterator[Timer]:
    for message in (*ready.messages.values(), *ready.dead):
        yield from timers_of(message.body)
    cursors = shards.cursors(list(shards.rows))
    for (bucket, shard), rows in timers.rows.items():
        for key, record in rows.items():
            if _is_ahead(Position(bucket, key), cursors.get(shard)):
                yield timer_of(record, key.split("#")[1])


def _is_ahead(at: Position, cursors: Cursors | None) -> bool:
    return cursors is None or at > cursors[Priority(int(at.key[0]))].at
