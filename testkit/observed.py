"""Stores that can be looked into, and calls at which something happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.far_ring.sealed_timer import Sendable, opened
from functions.domain.jobs.job import Timer
from functions.domain.operations.operation import OwnedDay
from functions.ports.ready_queue import Receipt, Rejected
from functions.ports.timers import Page, StoredTimer, TimerStore
from testkit.fakes import FakeClock, InMemoryReadyQueue


class CrashError(Exception):
    """A call fails here."""


class DeathError(BaseException):
    """The process dies here, past every `except Exception`."""


@dataclass
class ObservedTimers:
    """A timer store that counts its reads, stalls, and fails when a test asks for it."""

    store: TimerStore
    clock: FakeClock
    reads: list[tuple[int, str]] = field(default_factory=list)
    puts: list[Sequence[Timer]] = field(default_factory=list)
    alarms: list[ScheduleAlarm] = field(default_factory=list)
    before_read: Callable[[], None] = lambda: None
    unwritten: Callable[[Timer | ScheduleAlarm], bool] = lambda _: False
    before_put: Callable[[], None] = lambda: None
    put_takes: timedelta = timedelta(0)
    delete_takes: timedelta = timedelta(0)

    def put(self, timers: Sequence[Timer]) -> list[Timer]:
        self.puts.append(timers)
        self.clock.tick(self.put_takes)
        left = [timer for timer in timers if self.unwritten(timer)]
        self.store.put([timer for timer in timers if timer not in left])
        return left

    def put_alarms(self, alarms: Sequence[ScheduleAlarm]) -> list[ScheduleAlarm]:
        self.clock.tick(self.put_takes)
        left = [alarm for alarm in alarms if self.unwritten(alarm)]
        written = [alarm for alarm in alarms if alarm not in left]
        self.alarms.extend(written)
        self.store.put_alarms(written)
        return left

    def put_registered(self, timer: Timer) -> bool | None:
        self.before_put()
        self.clock.tick(self.put_takes)
        if self.unwritten(timer):
            return None
        return self.store.put_registered(timer)

    def read(self, bucket: int, shard: int, *, after: str = "", limit: int) -> Page:
        self.before_read()
        self.reads.append((bucket, after))
        return self.store.read(bucket, shard, after=after, limit=limit)

    def days(self, tenant: str) -> list[OwnedDay]:
        return self.store.days(tenant)

    def read_owned(self, tenant: str, owned: OwnedDay, *, bucket: int, after: str = "", limit: int) -> Page:
        self.before_read()
        return self.store.read_owned(tenant, owned, bucket=bucket, after=after, limit=limit)

    def get(self, job_id: Any) -> Timer | None:
        return self.store.get(job_id)

    def stored(self, job_id: Any) -> StoredTimer | None:
        return self.store.stored(job_id)

    def put_over(self, job_id: Any, timer: Timer, *, written_at: datetime | None) -> bool:
        is_there = self.store.put_over(job_id, timer, written_at=written_at)
        self.clock.tick(self.put_takes)
        return is_there

    def delete_unless_called_back(self, job_id: Any) -> Any:
        self.clock.tick(self.delete_takes)
        return self.store.delete_unless_called_back(job_id)

    def delete(self, job_id: Any) -> Any:
        deleted = self.store.delete(job_id)
        self.clock.tick(self.delete_takes)
        return deleted


@dataclass
class ObservedReadyQueue(InMemoryReadyQueue):
    """A ready queue that remembers what was sent and deferred.

    dies_after: so many messages; whoever sends more dies before they are sent.
    """

    sent: list[Timer] = field(default_factory=list)
    deferred: list[tuple[str, datetime]] = field(default_factory=list)
    send_takes: timedelta = timedelta(0)
    dies_after: int | None = None

    def send(self, timers: Sequence[Sendable]) -> list[Rejected]:
        if timers and self.dies_after is not None and len(self.sent) >= self.dies_after:
            raise DeathError
        self.clock.tick(self.send_takes if timers else timedelta(0))
        rejected = super().send(timers)
        refused = {id(rejection.timer) for rejection in rejected}
        self.sent.extend(opened(timer) for timer in timers if id(timer) not in refused)
        return rejected

    def defer(self, receipt: Receipt, *, until: datetime) -> None:
        self.deferred.append((receipt.handle, until))
        super().defer(receipt, until=until)


@dataclass(frozen=True)
class Watched:
    """Passes the calls to a port on, and tells of each before and after it is made."""

    port: Any
    name: str
    before: Callable[[str], None]
    after: Callable[[str], None]

    def __getattr__(self, call: str) -> Any:
        if not callable(getattr(self.port, call)):
            return getattr(self.port, call)

        def pass_on(*args: Any, **options: Any) -> Any:
            self.before(f"{self.name}.{call}")
            answer = getattr(self.port, call)(*args, **options)
            self.after(f"{self.name}.{call}")
            return answer

        return pass_on


@dataclass
class Unreliable:
    """Passes the calls to a port on, and times out: before a call is made, or after it, so that only its answer is lost."""

    port: Any
    fails: Literal["", "before", "after"] = ""

    def __getattr__(self, call: str) -> Any:
        if not callable(getattr(self.port, call)):
            return getattr(self.port, call)

        def pass_on(*args: Any, **options: Any) -> Any:
            if self.fails == "before":
                raise TimeoutError("what it was given")
            answer = getattr(self.port, call)(*args, **options)
            if self.fails:
                raise TimeoutError("what it answers")
            return answer

        return pass_on
