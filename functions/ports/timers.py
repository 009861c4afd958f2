"""The far ring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.operations.operation import OwnedDay


@dataclass(frozen=True, slots=True)
class StoredTimer:
    """A far row as it was read: a timer, or the alarm of a schedule. Neither: raw and fault say what it holds.

    written_at: by its writer's clock; None where a read leaves it out.
    """

    key: str
    timer: Timer | None
    raw: str = ""
    fault: str = ""
    written_at: datetime | None = None
    alarm: ScheduleAlarm | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Rows in key order. is_last: nothing lies behind them in the bucket."""

    rows: Sequence[StoredTimer]
    is_last: bool


class TimerStore(Protocol):
    """The far ring: rows by bucket and shard."""

    def put(self, timers: Sequence[Timer]) -> list[Timer]:
        """Write each timer once, without retries, and return those that are not known to be written."""
        ...

    def put_alarms(self, alarms: Sequence[ScheduleAlarm]) -> list[ScheduleAlarm]:
        """Write each alarm once, without retries, and return those that are not known to be written."""
        ...

    def read(self, bucket: int, shard: int, *, after: str = "", limit: int) -> Page:
        """Rows of a bucket and shard behind a sort key, in order: critical first."""
        ...

    def days(self, tenant: str) -> list[OwnedDay]:
        """The days on which a tenant may have rows of jobs, as of all writes before: marked before its first row is put."""
        ...

    def read_owned(self, tenant: str, owned: OwnedDay, *, bucket: int, after: str = "", limit: int) -> Page:
        """A tenant's rows of a class in a bucket and shard, behind a sort key, as of all writes before."""
        ...

    def put_registered(self, timer: Timer) -> bool | None:
        """Write a timer once, if its ledger row still waits and no cancel is requested; None when that is not known."""
        ...

    def get(self, job_id: JobId) -> Timer | None:
        """The first timer of a job, while it is in the far ring."""
        ...

    def stored(self, job_id: JobId) -> StoredTimer | None:
        """The row of the first timer of a job, with the instant at which it was written."""
        ...

    def delete(self, job_id: JobId) -> StoredTimer | None:
        """Remove the first timer of a job; what this very call removed."""
        ...

    def put_over(self, job_id: JobId, timer: Timer, *, written_at: datetime | None) -> bool:
        """Write a timer over the row of its job, if there is one, as if it had been written then; whether there was one."""
        ...

    def delete_unless_called_back(self, job_id: JobId) -> StoredTimer | None:
        """As `delete`; that of a job with callbacks stays, and is returned."""
        ...


class Waker(Protocol):
    """Wakes whoever continues operations, between its ticks."""

    def wake(self) -> None:
        """Ask for a turn now; the next tick comes anyway."""
        ...
