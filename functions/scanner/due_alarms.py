"""The alarms that a tick has passed: they are handled behind all of its timers, and none of them waits long for another.

How long the next fire of a schedule takes to work out is up to who wrote its definition. So alarms are remembered while
timers are sent, and what was sent is recorded before the first of them is handled. Where one is set aside, the others of its
tenant come last. After a tick that died each is recorded before it is handled, one by one: so the next tick knows of which it died.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from functions.domain.far_ring.cursor import Position, furthest
from functions.domain.far_ring.timer_key import alarm_of
from functions.domain.faults import fault_of
from functions.domain.jobs.job import Priority
from functions.ports.recorder import Journal
from functions.scanner.owed_alarms import Owed
from functions.scanner.pages import position_behind
from functions.scanner.schedule_alarms import ScheduleAlarms
from functions.scanner.tick import OUT_OF_TIME, Tick
from functions.services.schedules.materialiser import Carried

HANDLED_AT_ONCE = 50
"""Alarms whose chains are carried on together: full batches of rows and of messages, and a fraction of a tick."""

MOST_ASIDES = 3
"""Chains of a tenant that a tick sets aside. Then its other alarms are left to the sweep."""

LEFT_AFTER = timedelta(hours=1)
"""How long an alarm that the stores refuse is tried again. Then it is left to the sweep."""

REFUSED = "a schedule could not go on"


@dataclass(slots=True)
class DueAlarms:
    """Handles the alarms that a tick owes. _in_a_row: of each class, how many the stores have refused without a break."""

    tick: Tick
    alarms: ScheduleAlarms
    journal: Journal
    _accused: Position | None = None
    _in_a_row: Counter[Priority] = field(default_factory=Counter[Priority])
    _asides: Counter[str] = field(default_factory=Counter[str])

    def handle(self) -> str:
        """Handle what this tick has passed, then what earlier ones have left; why some is left to the next. Raises TakenOver."""
        owed = self.tick.owed
        if not owed.is_due:
            return ""
        # Whatever comes of the alarms, what has been sent is not sent again.
        self.tick.record_sent()
        if owed.died_at is not None:
            self._accuse(owed.died_at)
        if self.tick.is_careful:
            self._put_in_careful_order()
        self._handle_owed()
        for priority in Priority:
            while self._may_read_on(priority):
                self._read_on(priority)
                self._handle_owed()
        self._handle_refused()
        self._handle_last()
        if owed.waiting and self._has_time():
            self._leave_old()
            return REFUSED
        return "" if self._has_time() or not (owed.left or owed.waiting) else OUT_OF_TIME

    def _accuse(self, died_at: Position) -> None:
        found = alarm_of(died_at.key)
        if found is not None:
            tenant, schedule_id, version = found
            self.alarms.accuse(tenant, schedule_id, version)
            self._asides[tenant] += 1
        self._accused, self.tick.owed.died_at = died_at, None

    def _put_in_careful_order(self) -> None:
        """All of it, and last what a process is most likely to die of: those who have much of it, and what is new."""
        owed = self.tick.owed
        for priority in Priority:
            while priority in owed.left and not owed.is_full and self._has_time():
                self._read_on(priority)
        shares = Counter(each.alarm.tenant for each in owed.waiting)
        # The first version of a schedule says when it was created.
        owed.waiting = deque(sorted(owed.waiting, key=lambda each: (shares[each.alarm.tenant], each.alarm.version)))

    def _handle_owed(self) -> None:
        """Each of them once, in the order in which they were passed, which is fair."""
        while self.tick.owed.waiting and self._has_time():
            some = self._take()
            refused = self._handle(some) if some else []
            self.tick.owed.refused += refused
            for priority in {owed.priority for owed in some}:
                tried, in_vain = (sum(owed.priority is priority for owed in each) for each in (some, refused))
                self._in_a_row[priority] = self._in_a_row[priority] + in_vain if in_vain == tried else 0
            self.tick.has_handled(len(some) - len(refused))

    def _handle_refused(self) -> None:
        """Once more, as long as that helps: of schedules that are far behind only some continue at once."""
        owed, before = self.tick.owed, 0
        while owed.refused and self.tick.handled > before and self._has_time():
            before = self.tick.handled
            owed.waiting, owed.refused = owed.waiting + owed.refused, deque()
            self._handle_owed()
        owed.waiting, owed.refused = owed.waiting + owed.refused, deque()

    def _take(self) -> list[Owed]:
        """The next alarms to handle together. Those of a tenant of which one was set aside are put off."""
        owed = self.tick.owed
        some: list[Owed] = []
        while owed.waiting and len(some) < (1 if self.tick.is_careful else HANDLED_AT_ONCE):
            following = owed.waiting.popleft()
            if following.at == self._accused:
                continue
            if following.alarm.tenant in self._asides:
                owed.last.append(following)
            elif self._is_stuck(following.priority):
                owed.refused.append(following)
            else:
                some.append(following)
        return some

    def _handle(self, some: Sequence[Owed]) -> list[Owed]:
        """Those that the stores refused."""
        self.tick.owed.handling = some
        if self.tick.is_careful:
            self.tick.will_handle(some[0].at)
        try:
            carried = self.alarms.handle([owed.alarm for owed in some], ends_at=self.tick.ends_at)
        except Exception as error:  # noqa: BLE001  a store failed: those of other classes may still be handled
            self.journal.event("alarms_failed", error=fault_of(error))
            carried = [Carried.REFUSED] * len(some)
        self.tick.owed.handling = ()
        self._asides.update(owed.alarm.tenant for owed, how in zip(some, carried, strict=True) if how is Carried.ASIDE)
        return [owed for owed, how in zip(some, carried, strict=True) if how is Carried.REFUSED]

    def _may_read_on(self, priority: Priority) -> bool:
        return priority in self.tick.owed.left and self._has_time() and not self._is_stuck(priority)

    def _is_stuck(self, priority: Priority) -> bool:
        """Whether the stores refuse whatever there is of a class: a queue of its own may be what fails."""
        return self._in_a_row[priority] >= HANDLED_AT_ONCE

    def _read_on(self, priority: Priority) -> None:
        """Remember the next alarms that earlier ticks have left."""
        owed, cursor = self.tick.owed, self.tick.cursors[priority]
        at = owed.left[priority]
        page = self.tick.pages.read(at, priority)
        for row in page.rows:
            row_at = Position(at.bucket, row.key)
            if row.alarm is not None and row_at <= cursor.position_of(row.alarm.tenant):
                owed.waiting.append(Owed(row_at, priority, row.alarm))
        following = position_behind(page, at, wheel=self.tick.wheel)
        if following < owed.left_until.get(priority, furthest(cursor)):
            owed.left[priority] = following
        else:
            del owed.left[priority]

    def _handle_last(self) -> None:
        """What tenants have beside a chain that was set aside. It costs the others no time of further ticks."""
        left: list[Owed] = []
        while self.tick.owed.last:
            following = self.tick.owed.last.popleft()
            if self._asides[following.alarm.tenant] >= MOST_ASIDES or not self._has_time():
                left.append(following)
                continue
            refused = self._handle([following])
            left += refused
            self.tick.has_handled(1 - len(refused))
        self._report_left(left)

    def _leave_old(self) -> None:
        """What is refused for long must not keep all that comes behind it waiting to be read again."""
        tick = self.tick
        before = tick.wheel.bucket_of(tick.clock.now() - LEFT_AFTER)
        self._report_left([owed for owed in tick.owed.waiting if owed.at.bucket < before])
        tick.owed.waiting = deque(owed for owed in tick.owed.waiting if owed.at.bucket >= before)

    def _report_left(self, left: Sequence[Owed]) -> None:
        for tenant, count in Counter(owed.alarm.tenant for owed in left).items():
            self.journal.event("alarms_left", tenant=tenant, count=count)

    def _has_time(self) -> bool:
        return self.tick.clock.monotonic() < self.tick.ends_at
