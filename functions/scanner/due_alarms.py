"""The alarms that a tick has passed: they are handled behind all of its timers, and none of them waits long for another.

How long the next fire of a schedule takes to work out is up to who wrote its definition. So alarms are remembered while
timers are sent, and what was sent is recorded before the first of them is handled. Where one is set aside, the others of its
tenant come last. After a tick that died each is recorded before it is handled, one by one: so the next tick knows of which it died.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import chain
from typing import NamedTuple, Protocol

from functions.domain.far_ring.cursor import ClassCursor, Position, furthest
from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.far_ring.timer_key import alarm_of
from functions.domain.faults import fault_of
from functions.domain.jobs.job import Priority
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.scanner.pages import Pages
from functions.services.schedules.materialiser import Carried

HANDLED_AT_ONCE = 50
"""Alarms whose chains are carried on together: full batches of rows and of messages, and a fraction of a tick."""

MOST_OWED = 20_000
"""Alarms that a tick remembers. Further ones are read again."""

MOST_ASIDES = 3
"""Chains of a tenant that a tick sets aside. Then its other alarms are left to the sweep."""

LEFT_AFTER = timedelta(hours=1)
"""How long an alarm that the stores refuse is tried again. Then it is left to the sweep."""

OUT_OF_TIME = "80 % of the time limit is used"
REFUSED = "a schedule could not go on"


class AlarmService(Protocol):
    """Handles the alarm rows of schedules."""

    def handle(self, alarms: Sequence[ScheduleAlarm], *, ends_at: float) -> list[Carried]:
        """Carry the chains of these alarms on: none begins after `ends_at` (monotonic, s), but at least one does."""
        ...

    def accuse(self, tenant: str, schedule_id: str, version: int) -> None:
        """A process died while it handled the alarm of this chain: it is set aside. Never raises."""
        ...


class Tick(Protocol):
    """What the alarms need of its tick."""

    def cursor_of(self, priority: Priority) -> ClassCursor:
        """How far a class has come."""
        ...

    def will_handle(self, at: Position) -> None:
        """Record that the alarm of this row is handled next: it may be the last record of this tick.

        Raises when the tick is over.
        """
        ...

    def has_handled(self, count: int) -> None:
        """Note that so many alarms were handled, and record it when that is due. Raises when the tick is over."""
        ...


class _Owed(NamedTuple):
    """An alarm that has been passed and has not been handled. at: of its row."""

    at: Position
    priority: Priority
    alarm: ScheduleAlarm

    @property
    def behind(self) -> Position:
        """A position behind which it is read again: right before it, or a few rows before that."""
        return Position(self.at.bucket, self.at.key[:-1])


class DueAlarms:
    """The alarms of one tick.

    cursors: as the tick before has left them. is_careful: that one died. died_at: of this alarm, where that is known.
    """

    def __init__(
        self,
        tick: Tick,
        pages: Pages,
        alarms: AlarmService,
        cursors: Mapping[Priority, ClassCursor],
        *,
        wheel: Wheel,
        clock: Clock,
        journal: Journal,
        ends_at: float,
        is_careful: bool = False,
        died_at: Position | None = None,
    ) -> None:
        self._tick = tick
        self._pages = pages
        self._alarms = alarms
        self._wheel = wheel
        self._clock = clock
        self._journal = journal
        self._ends_at = ends_at
        self._is_careful = is_careful
        self._died_at = died_at
        self._accused: Position | None = None
        self._owed: deque[_Owed] = deque()
        self._handling: Sequence[_Owed] = ()
        self._refused: deque[_Owed] = deque()
        self._in_a_row: Counter[Priority] = Counter()
        self._handled = 0
        self._last: deque[_Owed] = deque()
        self._asides: Counter[str] = Counter()
        # What earlier ticks have left is read again, as far as they had come.
        self._left = {
            priority: cursor.unhandled for priority, cursor in cursors.items() if cursor.unhandled is not None
        }
        self._left_until = {priority: furthest(cursor) for priority, cursor in cursors.items()}

    @property
    def is_due(self) -> bool:
        """Whether there is an alarm to handle, or one to accuse."""
        return bool(self._owed or self._left or self._died_at)

    @property
    def died_at(self) -> Position | None:
        """The alarm that killed the tick before, until that has been reported."""
        return self._died_at

    def owe(self, alarm: ScheduleAlarm, *, priority: Priority, at: Position) -> None:
        """Remember an alarm whose row is passed."""
        owed = _Owed(at, priority, alarm)
        if len(self._owed) < MOST_OWED:
            self._owed.append(owed)
            return
        self._left[priority] = min(owed.behind, self._left.get(priority, owed.behind))
        self._left_until.pop(priority, None)

    def unhandled(self, priority: Priority) -> Position | None:
        """Behind which position alarms of a class have not been handled; None where all have."""
        waiting = chain(self._handling, self._owed, self._refused, self._last)
        behind = [owed.behind for owed in waiting if owed.priority is priority]
        return min([*behind, *([self._left[priority]] if priority in self._left else [])], default=None)

    def handle(self) -> str:
        """Handle what this tick has passed, then what earlier ones have left; else why some of it is left to the next."""
        if self._died_at is not None:
            self._accuse(self._died_at)
        if self._is_careful:
            self._put_in_careful_order()
        self._handle_owed()
        for priority in Priority:
            while self._may_read_on(priority):
                self._read_on(priority)
                self._handle_owed()
        self._handle_refused()
        self._handle_last()
        if self._owed and self._has_time():
            self._leave_old()
            return REFUSED
        return "" if self._has_time() or not (self._left or self._owed) else OUT_OF_TIME

    def _accuse(self, died_at: Position) -> None:
        found = alarm_of(died_at.key)
        if found is not None:
            tenant, schedule_id, version = found
            self._alarms.accuse(tenant, schedule_id, version)
            self._asides[tenant] += 1
        self._accused, self._died_at = died_at, None

    def _put_in_careful_order(self) -> None:
        """All of it, and last what a process is most likely to die of: those who have much of it, and what is new."""
        for priority in Priority:
            while priority in self._left and len(self._owed) < MOST_OWED and self._has_time():
                self._read_on(priority)
        shares = Counter(owed.alarm.tenant for owed in self._owed)
        # The first version of a schedule says when it was created.
        self._owed = deque(sorted(self._owed, key=lambda owed: (shares[owed.alarm.tenant], owed.alarm.version)))

    def _handle_owed(self) -> None:
        """Each of them once, in the order in which they were passed, which is fair."""
        while self._owed and self._has_time():
            some = self._take()
            refused = self._handle(some) if some else []
            self._refused += refused
            for priority in {owed.priority for owed in some}:
                tried, in_vain = (sum(owed.priority is priority for owed in each) for each in (some, refused))
                self._in_a_row[priority] = self._in_a_row[priority] + in_vain if in_vain == tried else 0
            self._handled += len(some) - len(refused)
            self._tick.has_handled(len(some) - len(refused))

    def _handle_refused(self) -> None:
        """Once more, as long as that helps: of schedules that are far behind only some go on at once."""
        before = 0
        while self._refused and self._handled > before and self._has_time():
            before = self._handled
            self._owed += self._refused
            self._refused.clear()
            self._handle_owed()
        self._owed += self._refused
        self._refused.clear()

    def _take(self) -> list[_Owed]:
        """The next alarms to handle together. Those of a tenant of which one was set aside are put off."""
        some: list[_Owed] = []
        while self._owed and len(some) < (1 if self._is_careful else HANDLED_AT_ONCE):
            following = self._owed.popleft()
            if following.at == self._accused:
                continue
            if following.alarm.tenant in self._asides:
                self._last.append(following)
            elif self._is_stuck(following.priority):
                self._refused.append(following)
            else:
                some.append(following)
        return some

    def _handle(self, some: Sequence[_Owed]) -> list[_Owed]:
        """Those that the stores refused."""
        self._handling = some
        if self._is_careful:
            self._tick.will_handle(some[0].at)
        try:
            carried = self._alarms.handle([owed.alarm for owed in some], ends_at=self._ends_at)
        except Exception as error:  # noqa: BLE001  a store failed: those of other classes may still be handled
            self._journal.event("alarms_failed", error=fault_of(error))
            carried = [Carried.REFUSED] * len(some)
        self._handling = ()
        self._asides.update(owed.alarm.tenant for owed, how in zip(some, carried, strict=True) if how is Carried.ASIDE)
        return [owed for owed, how in zip(some, carried, strict=True) if how is Carried.REFUSED]

    def _may_read_on(self, priority: Priority) -> bool:
        return priority in self._left and self._has_time() and not self._is_stuck(priority)

    def _is_stuck(self, priority: Priority) -> bool:
        """Whether the stores refuse whatever there is of a class: a queue of its own may be what fails."""
        return self._in_a_row[priority] >= HANDLED_AT_ONCE

    def _read_on(self, priority: Priority) -> None:
        """Remember the next alarms that earlier ticks have left."""
        at, cursor = self._left[priority], self._tick.cursor_of(priority)
        page = self._pages.read(at, priority)
        for row in page.rows:
            row_at = Position(at.bucket, row.key)
            if row.alarm is not None and row_at <= cursor.position_of(row.alarm.tenant):
                self._owed.append(_Owed(row_at, priority, row.alarm))
        following = Position(self._wheel.next_bucket(at.bucket))
        if not page.is_last:
            following = Position(at.bucket, page.rows[-1].key)
        if following < self._left_until.get(priority, furthest(cursor)):
            self._left[priority] = following
        else:
            del self._left[priority]

    def _handle_last(self) -> None:
        """What tenants have beside a chain that was set aside. It costs the others no time of further ticks."""
        left: list[_Owed] = []
        while self._last:
            owed = self._last[0]
            if self._asides[owed.alarm.tenant] >= MOST_ASIDES or not self._has_time():
                left.append(self._last.popleft())
                continue
            self._last.popleft()
            refused = self._handle([owed])
            left += refused
            self._tick.has_handled(1 - len(refused))
        self._report_left(left)

    def _leave_old(self) -> None:
        """What is refused for long must not keep all that comes behind it waiting to be read again."""
        before = self._wheel.bucket_of(self._clock.now() - LEFT_AFTER)
        self._report_left([owed for owed in self._owed if owed.at.bucket < before])
        self._owed = deque(owed for owed in self._owed if owed.at.bucket >= before)

    def _report_left(self, left: Sequence[_Owed]) -> None:
        for tenant, count in Counter(owed.alarm.tenant for owed in left).items():
            self._journal.event("alarms_left", tenant=tenant, count=count)

    def _has_time(self) -> bool:
        return self._clock.monotonic() < self._ends_at
