"""What still carries a job to its run: a message, or a far row that no cursor has passed.

Between any two calls a job that was promised has such a carrier, or has come to its end. This sees a loss at once,
also one that the audit would repair five minutes later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from functions.domain.far_ring.cursor import Cursors, decode_cursors, has_passed
from functions.domain.far_ring.flow_turn import flow_of, is_turn
from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.far_ring.timer_key import is_alarm_key
from functions.domain.far_ring.timer_record import decode_alarm, decode_envelope, decode_timer
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.collection import CollectionId, release_in, release_named
from functions.domain.jobs.job import Timer
from functions.domain.lifecycle import State
from functions.domain.targets.flows import FlowId
from functions.ports.collections import CollectionStore
from testkit.fakes.kept import kept
from testkit.world.stores import KeptByAll, SeenShards, SeenTimers

_ALL = 10_000


@lru_cache(maxsize=4_096)
def timers_of(body: str) -> tuple[Timer, ...]:
    """The timers of a message."""
    return tuple(decode_envelope(body))


@lru_cache(maxsize=4_096)
def timer_of(record: str, tenant: str) -> Timer:
    """The timer of a far row."""
    return decode_timer(record, tenant=tenant)


@lru_cache(maxsize=4_096)
def alarm_of(record: str, tenant: str) -> ScheduleAlarm:
    """The alarm of a far row."""
    return decode_alarm(record, tenant=tenant)


@lru_cache(maxsize=1_024)
def cursors_of(text: str) -> Cursors:
    """The cursors of a shard, not to be changed."""
    return decode_cursors(text)


def carriers(stores: KeptByAll) -> dict[str, list[Timer]]:
    """The timers that are on their way, by the key of their job."""
    found: dict[str, list[Timer]] = {}
    turns: set[FlowId] = set()
    for message in (*stores.ready.messages.values(), *stores.ready.dead):
        for timer in timers_of(message.body):
            if is_turn(timer):
                turns.add(flow_of(timer))
            found.setdefault(timer.job.key, []).append(timer)
    # What waits in a room is carried by the turn of its flow.
    for flow in turns:
        for waiting in stores.flows.waiting(flow, after="", limit=_ALL):
            if waiting.timer is not None:
                found.setdefault(waiting.timer.job.key, []).append(waiting.timer)
    for key, record in _ahead(stores.timers, stores.shards):
        if not is_alarm_key(key):
            timer = timer_of(record, key.split("#")[1])
            found.setdefault(timer.job.key, []).append(timer)
    # What waits in a collection is carried by a release of it.
    for collection in _released(found, stores.ledger.rows, stores.collections):
        for row in stores.collections.waiting(collection, upto="~", limit=_ALL):
            for timer in row.timers or ():
                found.setdefault(timer.job.key, []).append(timer)
    return found


def alarms(timers: SeenTimers) -> list[ScheduleAlarm]:
    """All alarms, also those that were handled."""
    rows = [(key, record) for rows in timers.rows.values() for key, record in rows.items()]
    return [alarm_of(record, key.split("#")[1]) for key, record in rows if is_alarm_key(key)]


def alarms_ahead(timers: SeenTimers, shards: SeenShards) -> list[ScheduleAlarm]:
    """The alarms that are going to ring."""
    return [alarm_of(record, key.split("#")[1]) for key, record in _ahead(timers, shards) if is_alarm_key(key)]


def leads_on(timer: Timer, row: LedgerRow | None) -> bool:
    """Whether a message of this timer can still run a job whose ledger row stands so."""
    if row is None:
        return True
    if row.state is State.RETRYING:
        return timer.attempt > row.attempt and (row.due_at is None or kept(timer.due_at) >= row.due_at)
    return timer.attempt >= row.attempt


def _released(
    found: Mapping[str, list[Timer]], rows: Mapping[str, LedgerRow], collections: CollectionStore
) -> set[CollectionId]:
    """Collections of which a release is on its way; or has failed for good, so that only the sweeper can see that it is missing."""
    released: set[CollectionId] = set()
    for timer in [timer for timers in found.values() for timer in timers]:
        named = release_in(timer.job)
        if named is not None:
            row = rows.get(timer.job.key)
            # One that has ended before its time was recorded still lets the next one come.
            if row is None or not row.is_settled or collections.state(named[0]).number <= named[1]:
                released.add(named[0])
    for key, row in rows.items():
        named = release_named(*key.split("#", 1)) if row.state is State.FAILED and "#b-" in key else None
        if named is not None and collections.state(named[0]).number == named[1]:
            released.add(named[0])
    return released


def _ahead(timers: SeenTimers, shards: SeenShards) -> Iterator[tuple[str, str]]:
    cursors = {shard: cursors_of(row["cursors"]) for shard, row in shards.rows.items() if row["cursors"]}
    for (bucket, shard), rows in timers.rows.items():
        for key, record in rows.items():
            if shard not in cursors or not has_passed(cursors[shard], bucket, key):
                yield key, record
