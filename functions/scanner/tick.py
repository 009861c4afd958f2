"""One tick of one shard: its lease, its time, and how far it has come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from functions.domain.far_ring.cursor import ClassCursor, Cursors, Position
from functions.domain.far_ring.send_times import IMPATIENT, Patience
from functions.domain.jobs.job import Priority
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.shards import ShardLease
from functions.ports.timers import StoredTimer
from functions.scanner.leases import Leases
from functions.scanner.owed_alarms import OwedAlarms
from functions.scanner.pages import PAGE, Pages
from functions.scanner.promote import Promoted

OUT_OF_TIME = "80 % of the time limit is used"

CHECKPOINT_SENDS = 2_000
CHECKPOINT_SECONDS = 5.0

RENEWING = 0.5
"""The share of a class's time that putting rows anew may take, so that they keep nobody's jobs from going out."""

FLOOR = 0.1
"""The share of a tick that is kept for each lower class, however much a higher one has. Low is delayed, and never starved."""

ALARMS_FLOOR = 0.2
"""The share of a tick that is kept for alarms, where there are any."""


class Stopped(Exception):
    """The tick ends here; what was passed is recorded, the rest is for the next one."""


class TakenOver(Exception):
    """Another scanner has the shard, and records how far it comes."""


@dataclass(slots=True, kw_only=True)
class Tick:
    """cursors: as the tick before has left them. ends_at: monotonic (s).

    budgets: as they were read when something was there to promote. sent, handled, buried: what it did. owed: alarms that it
    has passed. _unrecorded: what it has sent and handled since the last checkpoint. _spare: what is left of its patience.
    """

    lease: ShardLease
    cursors: Cursors
    wheel: Wheel
    clock: Clock
    leases: Leases
    pages: Pages
    ends_at: float
    patience: Patience = IMPATIENT
    budgets: Mapping[Priority, int] | None = None
    sent: int = 0
    handled: int = 0
    buried: int = 0
    owed: OwedAlarms = field(init=False)
    _began_at: float = field(init=False)
    _checkpointed_at: float = field(init=False)
    _unrecorded: int = 0
    _spare: timedelta = field(init=False)
    _renews_until: dict[Priority, float] = field(default_factory=dict[Priority, float])
    _next_alarm: Position | None = None

    def __post_init__(self) -> None:
        self.owed = OwedAlarms.of_earlier_ticks(self.cursors, died_at=self.lease.died_at)
        self._began_at = self._checkpointed_at = self.clock.monotonic()
        self._spare = self.patience.spare

    @property
    def shard(self) -> int:
        """The shard that it scans."""
        return self.lease.shard

    @property
    def is_careful(self) -> bool:
        """Whether the tick before has died, perhaps of an alarm."""
        return self.lease.has_died

    def has_time(self, priority: Priority) -> bool:
        """Whether a class has time left: each keeps a share of the tick for those below it. Raises Stopped."""
        now = self.clock.monotonic()
        if now >= self.ends_at:
            raise Stopped(OUT_OF_TIME)
        return now < self._ends_of(priority)

    def may_renew(self, priority: Priority) -> bool:
        """Whether a class has time left for what is written again: it leaves some for what goes out. Raises Stopped."""
        now = self.clock.monotonic()
        until = self._renews_until.setdefault(priority, now + RENEWING * (self._ends_of(priority) - now))
        return self.has_time(priority) and now < until

    def may_wait(self, rows: Sequence[StoredTimer], *, is_last: bool) -> timedelta:
        """How long sending these may take beside the sending itself. is_last: of their bucket and class.

        Nobody waits where there are many: more in that class than a page, or more than that in this tick before.
        """
        if not is_last or self.sent >= PAGE:
            return timedelta(0)
        return min(self.patience.most, self._spare + self._granted(rows))

    def note_promoted(self, rows: Sequence[StoredTimer], promoted: Promoted) -> None:
        """Count what has become of rows, and remember their alarms, up to the first row that is read again."""
        self.sent += promoted.sent
        self.buried += promoted.buried
        self._unrecorded += promoted.sent
        self._spare -= max(timedelta(0), promoted.waited - self._granted(rows))
        before = min(promoted.unsent, default=None)
        for row in rows:
            if row.alarm is not None and (before is None or row.key < before):
                at = Position(self.wheel.bucket_of(row.alarm.wakes_at), row.key)
                self.owed.owe(row.alarm, at=at)

    def record(self, priority: Priority, cursor: ClassCursor) -> None:
        """How far a class has come, to be checkpointed when that is due. Raises TakenOver."""
        self.cursors[priority] = cursor
        self._checkpoint_when_due()

    def record_sent(self) -> None:
        """Record what has been sent, where that is not on record yet. Raises TakenOver."""
        if self._unrecorded:
            self._record()

    def will_handle(self, at: Position) -> None:
        """Record that the alarm of this row is handled next: it may be the last record of this tick. Raises TakenOver."""
        self._next_alarm = at
        self._record()

    def has_handled(self, count: int) -> None:
        """Note that so many alarms were handled, and record it when that is due. Raises TakenOver."""
        self._next_alarm = None
        self.handled += count
        self._unrecorded += count
        self._checkpoint_when_due()

    def give_back(self) -> None:
        """Record the cursors and give the shard back."""
        self._checkpoint(is_last=True)

    def _granted(self, rows: Sequence[StoredTimer]) -> timedelta:
        return self.patience.a_job * sum(row.alarm is None for row in rows)

    def _ends_of(self, priority: Priority) -> float:
        kept = FLOOR * (Priority.LOW - priority) + (ALARMS_FLOOR if self.owed.is_due else 0)
        return self.ends_at - (self.ends_at - self._began_at) * kept

    def _checkpoint_when_due(self) -> None:
        is_late = self.clock.monotonic() - self._checkpointed_at >= CHECKPOINT_SECONDS
        if is_late or self._unrecorded >= CHECKPOINT_SENDS:
            self._record()

    def _record(self) -> None:
        if not self._checkpoint(is_last=False):
            raise TakenOver
        self._unrecorded = 0
        self._checkpointed_at = self.clock.monotonic()

    def _checkpoint(self, *, is_last: bool) -> bool:
        self.lease = replace(self.lease, sequence=self.lease.sequence + 1)
        self.cursors |= {
            priority: replace(cursor, unhandled=self.owed.unhandled(priority))
            for priority, cursor in self.cursors.items()
        }
        next_alarm = self._next_alarm or self.owed.died_at
        return self.leases.checkpoint(self.lease, self.cursors, is_last=is_last, next_alarm=next_alarm)
