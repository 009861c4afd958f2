"""The ports in memory, as one execution environment sees them: over its network, at its clock."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any, TypeVar

from functions.domain.far_ring.delays import delay_seconds
from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.far_ring.sealed_timer import Sendable, envelope_of
from functions.domain.far_ring.timer_key import alarm_key, timer_key
from functions.domain.far_ring.warming import BODY, GROUP
from functions.domain.jobs.job import Priority, Timer
from functions.domain.stage.conditions import Depth
from functions.domain.targets.options import TargetOptions
from functions.domain.wheel import Wheel
from functions.ports.ready_queue import Receipt, Rejected
from functions.ports.targets import Invocation, Outcome
from functions.ports.timers import Page, StoredTimer
from simulation.calls import Calls
from simulation.limits import Latency, Limits
from simulation.network import Line
from simulation.partitions import ShardedTable
from simulation.queues import Parcel, Queue
from simulation.virtual_time import Dice, seconds_of

Entry = TypeVar("Entry", Timer, ScheduleAlarm)

SENDERS = 8
"""Calls that a Lambda makes at the same time, as the composition root has it."""

PUT_BATCH = 25
SEND_BATCH = 10


@dataclass(slots=True)
class _Rows:
    """The rows of a bucket and shard. They are sorted when they are read: a bucket is closed by then."""

    by_key: dict[str, StoredTimer] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)

    def sorted(self) -> list[str]:
        if len(self.keys) != len(self.by_key):
            self.keys = sorted(self.by_key)
        return self.keys


class TimerRows:
    """The far ring: what is kept, whoever reads it. row_bytes: of a row, names included."""

    def __init__(self, wheel: Wheel, table: ShardedTable, *, row_bytes: int) -> None:
        self.wheel = wheel
        self.table = table
        self.row_bytes = row_bytes
        self.rows: dict[tuple[int, int], _Rows] = {}

    def keep(self, entry: Timer | ScheduleAlarm) -> None:
        """Put a row where it belongs."""
        is_alarm = isinstance(entry, ScheduleAlarm)
        key = alarm_key(entry) if is_alarm else timer_key(entry.job, due_at=entry.wakes_at)
        row = StoredTimer(key, None, alarm=entry) if is_alarm else StoredTimer(key, entry)
        self.rows.setdefault(self.place_of(entry), _Rows()).by_key[key] = row

    def place_of(self, entry: Timer | ScheduleAlarm) -> tuple[int, int]:
        """Bucket and shard."""
        return self.wheel.bucket_of(entry.wakes_at), entry.shard if isinstance(
            entry, ScheduleAlarm
        ) else entry.job.shard

    def page(self, bucket: int, shard: int, *, after: str, limit: int) -> Page:
        """Rows behind a key."""
        rows = self.rows.get((bucket, shard))
        if rows is None:
            return Page([], is_last=True)
        keys = rows.sorted()
        first = bisect_right(keys, after)
        return Page([rows.by_key[key] for key in keys[first : first + limit]], is_last=first + limit >= len(keys))

    def forget_before(self, bucket: int) -> None:
        """What the table's ttl does, only sooner."""
        for place in [place for place in self.rows if place[0] < bucket]:
            del self.rows[place]


class SimulatedTimers:
    """The far ring over the network. A write is tried once, as the timer store does it: its placer asks again.

    table: where its units are counted, if not where those of all others are.
    """

    def __init__(self, kept: TimerRows, line: Line, limits: Limits, *, table: ShardedTable | None = None) -> None:
        self._kept = kept
        self._table = table or kept.table
        self._line = line
        self._limits = limits

    def put(self, timers: Sequence[Timer]) -> list[Timer]:
        """One write unit a timer."""
        return self._put(timers)

    def put_alarms(self, alarms: Sequence[ScheduleAlarm]) -> list[ScheduleAlarm]:
        """One write unit an alarm."""
        return self._put(alarms)

    def read(self, bucket: int, shard: int, *, after: str = "", limit: int) -> Page:
        """Half a read unit for each 4 KB. Raises Throttled."""
        page = self._kept.page(bucket, shard, after=after, limit=limit)
        read_bytes = len(page.rows) * self._kept.row_bytes
        units = max(1, -(-read_bytes // int(self._limits.read_unit_bytes))) / 2
        table, clock = self._table, self._line.clock
        self._line.insist(
            lambda: table.take(bucket, shard, at=clock.at, units=units, is_read=True), rows=len(page.rows)
        )
        return page

    def _put(self, entries: Sequence[Entry]) -> list[Entry]:
        batches = [entries[start : start + PUT_BATCH] for start in range(0, len(entries), PUT_BATCH)]
        acts = [lambda batch=batch: self._put_batch(batch) for batch in batches]
        return [left for lefts in self._line.clock.side_by_side(acts, lanes=SENDERS) for left in lefts]

    def _put_batch(self, entries: Sequence[Entry]) -> list[Entry]:
        self._line.store_call()
        table, clock = self._table, self._line.clock
        unwritten: list[Entry] = []
        for entry in entries:
            bucket, shard = self._kept.place_of(entry)
            if table.take(bucket, shard, at=clock.at, units=1, is_ticked=self._line.is_ticked):
                self._kept.keep(entry)
            else:
                unwritten.append(entry)
        return unwritten


class SimulatedReady:
    """The ready queues over the network: full batches, side by side. promoted: called with what a scanner sends."""

    def __init__(
        self, queues: Mapping[Priority, Queue], line: Line, *, share: float, promoted: Callable[..., None]
    ) -> None:
        self._promoted = promoted
        self._queues = queues
        self._line = line
        self._share = share

    def send(self, timers: Sequence[Sendable]) -> list[Rejected]:
        """A tenth of a request a message."""
        acts = [
            lambda batch=timers_of[start : start + SEND_BATCH]: self._send_batch(batch)
            for priority in Priority
            if (timers_of := [timer for timer in timers if timer.job.priority is priority])
            for start in range(0, len(timers_of), SEND_BATCH)
        ]
        self._line.clock.side_by_side(acts, lanes=SENDERS)
        return []

    def warm(self, priority: Priority, delays: Sequence[int]) -> int:
        """A tenth of a request a message."""
        batches = [delays[start : start + SEND_BATCH] for start in range(0, len(delays), SEND_BATCH)]
        acts = [lambda batch=batch: self._warm_batch(priority, batch) for batch in batches]
        self._line.clock.side_by_side(acts, lanes=SENDERS)
        return len(delays)

    def defer(self, receipt: Receipt, *, until: datetime) -> None:
        """To the whole second after."""
        self._line.send_call()
        left = -(-(seconds_of(until) - self._line.clock.at) // 1)
        self._queues[Priority[receipt.queue_arn]].hide(receipt.handle, until=self._line.clock.at + max(0.0, left))

    def depths(self) -> dict[Priority, Depth]:
        """Messages of each class, of the whole stage."""
        return {
            priority: Depth(held=round(queue.depth / self._share), waiting=round(queue.visible_count / self._share))
            for priority, queue in self._queues.items()
        }

    def _warm_batch(self, priority: Priority, delays: Sequence[int]) -> None:
        self._line.send_call()
        entries = [(Parcel(str(next(_MESSAGES)), BODY, GROUP, priority.name), delay) for delay in delays]
        self._queues[priority].send(entries, at=self._line.clock.at)

    def _send_batch(self, timers: Sequence[Sendable]) -> None:
        now = self._line.clock.now()
        entries = [
            (
                Parcel(str(next(_MESSAGES)), envelope_of(timer), timer.job.tenant, timer.job.priority.name),
                delay_seconds(timer.wakes_at, now=now, precision=timer.job.precision),
            )
            for timer in timers
        ]
        self._line.send_call()
        self._queues[timers[0].job.priority].send(entries, at=self._line.clock.at)
        for timer in timers if self._line.is_ticked else ():
            self._promoted(timer.job.tenant, at=self._line.clock.at)


_MESSAGES = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How the jobs' targets behave. answer: what a host says to an attempt at an instant."""

    latency: Latency
    answer: Callable[[str, float, int, random.Random], Outcome]


class SimulatedTargets:
    """What jobs call. A target is `https://{host}/{class}`, so that calls are distinguished by their class."""

    def __init__(self, target: Target, line: Line, dice: Dice, calls: Calls) -> None:
        self._target = target
        self._limits = line.limits
        self._kept: OrderedDict[str, None] = OrderedDict()
        self._clock = line.clock
        self._dice = dice
        self._calls = calls

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, options: TargetOptions, timeout: timedelta
    ) -> Outcome:
        """Call it once: only its host, its class and the attempt decide what it answers."""
        del options, timeout
        host, _, name = target.removeprefix("https://").partition("/")
        outcome = self._target.answer(host, self._clock.at, invocation.attempt, self._dice.random)
        priority = Priority[name.upper()]
        self._calls.note(invocation, payload, host=host, priority=priority, at=self._clock.at, outcome=outcome)
        self._clock.spend(self._dice.duration(self._target.latency), cpu=self._cpu_of(host))
        return outcome

    def _cpu_of(self, host: str) -> float:
        """Of a call: a host that was not among the last ones is connected to anew."""
        is_kept = host in self._kept
        self._kept[host] = None
        self._kept.move_to_end(host)
        if len(self._kept) > self._limits.kept_hosts:
            self._kept.popitem(last=False)
        return self._limits.call_kept_cpu if is_kept else self._limits.call_new_cpu


class Counts:
    """The journal of a simulation: how often, and nothing else. _lines: of the invocation that runs now."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._lines = 0

    def event(self, name: str, /, **keys: Any) -> None:
        """One more of these events; of a job that was returned, by its error."""
        self._lines += 1
        self.counts[f"{name}: {keys['error']}" if name in _TOLD_BY_ERROR else name] += 1

    def take_lines(self) -> int:
        """Lines of the log since this was asked last: an invocation runs to its end before another begins."""
        lines, self._lines = self._lines, 0
        return lines

    def count(self, metric: str, amount: int = 1) -> None:
        """Add to a counter."""
        self.counts[metric] += amount

    def observe(self, metric: str, value: float, /, **dimensions: str) -> None:
        """Nothing: the calls are measured where they arrive."""


_TOLD_BY_ERROR = (
    "job_returned",
    "submission_failed",
    "alarms_failed",
    "not_recorded",
    "chain_broken",
    "plans_not_read",
)
