"""The far ring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol

from functions.domain.errors import Undecodable
from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.far_ring.sealed_timer import SealedTimer, seal
from functions.domain.far_ring.timer_key import is_alarm_key, owner_of
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.operations.operation import OwnedDay


@dataclass(frozen=True, slots=True)
class StoredTimer:
    """A far row as it was read: a timer, or the alarm of a schedule. Neither: raw and fault say what it holds.

    written_at: by its writer's clock; None where a read leaves it out. sealed: of a SealedRow.
    """

    sealed: ClassVar[SealedTimer | None] = None

    key: str
    timer: Timer | None
    raw: str = ""
    fault: str = ""
    written_at: datetime | None = None
    alarm: ScheduleAlarm | None = None


class SealedRow(StoredTimer):
    """A row of a timer whose record is decoded when more of it is asked for than who sends it asks."""

    __slots__ = ("_opened", "_sealed")

    def __init__(self, key: str, sealed: SealedTimer) -> None:
        for name, value in {"key": key, "written_at": None, "alarm": None, "_sealed": sealed, "_opened": None}.items():
            object.__setattr__(self, name, value)

    @property
    def sealed(self) -> SealedTimer:  # pyright: ignore[reportIncompatibleVariableOverride]  read alone
        """What is sent."""
        return self._sealed

    @property
    def timer(self) -> Timer | None:  # pyright: ignore[reportIncompatibleVariableOverride]  read alone
        """The timer; None where there is a fault, which nobody saw before."""
        return self._open().timer

    @property
    def raw(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  read alone
        """The record, where there is a fault."""
        return self._open().raw

    @property
    def fault(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]  read alone
        """Why it holds no timer, or nothing."""
        return self._open().fault

    def _open(self) -> StoredTimer:
        found: StoredTimer | None = self._opened
        if found is None:
            found = opened_row(self.key, self._sealed)
            object.__setattr__(self, "_opened", found)
        return found


def sealed_row(key: str, record: str) -> SealedRow | None:
    """The row of a timer, to be sent as it stands; None for one that has to be decoded, such as an alarm."""
    sealed = None if is_alarm_key(key) else seal(record, tenant=owner_of(key)[0])
    return None if sealed is None else SealedRow(key, sealed)


def opened_row(key: str, sealed: SealedTimer) -> StoredTimer:
    """The row with its record decoded."""
    try:
        return StoredTimer(key, sealed.opened())
    except Undecodable as error:
        return StoredTimer(key, None, raw=sealed.record, fault=str(error))


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
