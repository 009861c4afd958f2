"""The only way into the wheel, for submissions, retries, early messages and stragglers alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.domain.errors import ClockSkewed, NotPlaced
from functions.domain.far_ring.collected import enters_at_once
from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.faults import fault_of
from functions.domain.jobs.collection import CollectionId, release_in
from functions.domain.jobs.job import Timer
from functions.domain.wheel import Ring, Wheel
from functions.ports.clock import Clock
from functions.ports.ready_queue import ReadyQueue
from functions.ports.timers import TimerStore
from functions.services.far_ring.collecting import Collecting
from functions.services.far_ring.flow_order import FlowOrders
from functions.services.far_ring.pacer import Pacer

ATTEMPTS = 3
"""How often a write is tried. With client timeouts of 2 s each they end well within a tick."""

_PAUSE = timedelta(milliseconds=50)
_UNCONFIRMED = "the timer store did not confirm the write"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a timer went; ring is None when the stores refused it on every attempt, and fault says why.

    is_permanent: it cannot be placed in this form, so trying again does not help.
    """

    ring: Ring | None
    fault: str = ""
    is_permanent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Placer:
    """Places timers into the ring they belong to at the moment of each attempt.

    Placing is safe to repeat: a far row has a key of its own and a repeated message is dropped by the ledger. pacer: gives what
    is near and may not run yet a `not_before`; None lets everything through.
    """

    wheel: Wheel
    clock: Clock
    timers: TimerStore
    ready: ReadyQueue
    pacer: Pacer | None = None
    flow_orders: FlowOrders | None = None
    collecting: Collecting | None = None

    def place(self, timers: Sequence[Timer]) -> list[Placement]:
        """Place each timer; the answers are in the order of the timers."""
        placed: dict[int, Placement] = {}
        # Once: what it reserves is not reserved again by another attempt.
        waiting = list(enumerate(self._paced(timers)))
        unordered = {index: fault for index, timer in waiting if timer.job.flows and (fault := self._line_up(timer))}
        placed |= {index: Placement(None, fault) for index, fault in unordered.items()}
        waiting = [each for each in waiting if each[0] not in unordered]
        for attempt in range(1, ATTEMPTS + 1):
            if attempt > 1:
                self.clock.sleep(_PAUSE * attempt)
            # Asked again on every attempt: a write that was far a moment ago may no longer be.
            now = self.clock.now()
            far = [each for each in waiting if self._ring_of(each[1], now=now) is Ring.FAR]
            near = [each for each in waiting if self._ring_of(each[1], now=now) is Ring.NEAR]
            collected = [each for each in near if self._collects(each[1], now=now)]
            near = [each for each in near if each not in collected] if collected else near
            placed |= self._place_far(far) | self._place_near(near) | self._collect(collected)
            waiting = [each for each in waiting if _may_try_again(placed[each[0]])]
            if not waiting:
                break
        return [placed[index] for index in range(len(timers))]

    def place_one(self, timer: Timer) -> Ring:
        """Place a timer; the ring that it went to. Raises NotPlaced."""
        return _ring_or_raise(self.place([timer])[0])

    def place_alarms(self, alarms: Sequence[ScheduleAlarm]) -> list[bool]:
        """Write alarms into the far ring, once; whether the scanner is sure to read each.

        One that is not may stand behind it: its fire is to be placed instead, or the alarm is to come due later.
        """
        now = self.clock.now()
        far = [alarm for alarm in alarms if self.wheel.place(alarm.alarm_at, now=now) is Ring.FAR]
        if not far or self._is_skewed():
            return [False] * len(alarms)
        unwritten = {id(alarm) for alarm in self.timers.put_alarms(far)}
        finished, is_skewed = self.clock.now(), self._is_skewed()
        safe = {
            id(alarm)
            for alarm in far
            if id(alarm) not in unwritten and not is_skewed and finished <= self.wheel.closes_at(alarm.alarm_at)
        }
        return [id(alarm) in safe for alarm in alarms]

    def place_registered(self, timer: Timer) -> Ring | None:
        """Put a far timer of a registered job again, for as long as its ledger row says that it waits; None when it does not.

        Without the ledger nothing would stop a row that is written behind a cancel. Raises NotPlaced.
        """
        if timer.job.flows and (fault := self._line_up(timer)):
            raise NotPlaced([fault])
        written = self.timers.put_registered(timer)
        if written is None:
            raise NotPlaced([_UNCONFIRMED])
        if not written:
            return None
        # Behind the scanner it is placed once more, and not accepted if that is refused.
        return self.place_one(timer) if self._may_be_behind(timer) else Ring.FAR

    def confirm(self, timer: Timer) -> None:
        """Follow a timer that was put into the far ring right before this, by a write that was not the placer's.

        A late row may lie behind the scanner: a near send follows it. Raises NotPlaced.
        """
        if self._may_be_behind(timer):
            _ring_or_raise(self._place_near([(0, timer)])[0])

    def line_up(self, timer: Timer) -> None:
        """Before a write that is not the placer's. Raises NotPlaced."""
        if timer.job.flows and (fault := self._line_up(timer)):
            raise NotPlaced([fault])

    def withdraw(self, timer: Timer) -> None:
        """What was lined up is not written, because somebody else was faster. Raises what the store raises: its place is missed in time."""
        if self.flow_orders is not None and timer.job.flows:
            self.flow_orders.withdraw(timer)

    def enter(self, timer: Timer) -> None:
        """Put an attempt into its collection, and make sure of its release. Raises NotPlaced."""
        _ring_or_raise(self._collect([(0, timer)])[0])

    def note_put_off(self, timer: Timer, *, until: datetime) -> None:
        """An attempt was put off: where it is a release, none other is to be sent meanwhile."""
        found = release_in(timer.job)
        if found is not None and self.collecting is not None:
            self.collecting.note(found[0], until, number=found[1])

    def reopen(self, collection: CollectionId) -> bool:
        """Place the release of a collection, where none is known to come and something waits; whether it was placed.

        Raises what the stores raise, and NotPlaced.
        """
        release = self.collecting.overdue(collection) if self.collecting is not None else None
        if release is None:
            return False
        self._release(release)
        return True

    def check_clock(self) -> None:
        """Raises NotPlaced when this clock may write no far rows: before a write that is not the placer's."""
        if self._is_skewed():
            raise NotPlaced([self._skew_fault()])

    def _line_up(self, timer: Timer) -> str:
        """Its place in the order of its flows comes before itself: else one that is due later could start in between."""
        # What has had its turn in a room is in the order.
        if self.flow_orders is None or timer.turns:
            return ""
        try:
            self.flow_orders.line_up(timer)
        except Exception as error:  # noqa: BLE001  the others of its batch have nothing to do with it
            return fault_of(error)
        return ""

    def _paced(self, timers: Sequence[Timer]) -> Sequence[Timer]:
        """What waits in a collection runs when that is released: neither a cap nor a pause has to keep it back before."""
        if self.pacer is None:
            return timers
        now = self.clock.now()
        collected = [self._collects(timer, now=now) for timer in timers]
        paced = iter(self.pacer.pace([timer for timer, is_so in zip(timers, collected, strict=True) if not is_so]))
        return [timer if is_so else next(paced) for timer, is_so in zip(timers, collected, strict=True)]

    def _collects(self, timer: Timer, *, now: datetime) -> bool:
        return self.collecting is not None and enters_at_once(timer, now=now)

    def _collect(self, numbered: Sequence[tuple[int, Timer]]) -> dict[int, Placement]:
        if not numbered or self.collecting is None:
            return {}
        timers = [timer for _, timer in numbered]
        try:
            unwritten = {id(timer) for timer in self.collecting.put(timers)}
            for release in self.collecting.due([timer for timer in timers if id(timer) not in unwritten]):
                self._release(release)
        except Exception as error:  # noqa: BLE001  the others of its batch have nothing to do with it
            return {index: Placement(None, fault_of(error)) for index, _ in numbered}
        return {
            index: Placement(None, _UNCONFIRMED) if id(timer) in unwritten else Placement(Ring.NEAR)
            for index, timer in numbered
        }

    def _release(self, release: Timer) -> None:
        """Raises NotPlaced: what waits then has no release, and is not accepted."""
        assert self.collecting is not None
        _ring_or_raise(self.place([release])[0])
        found = release_in(release.job)
        assert found is not None
        self.collecting.note(found[0], release.due_at, number=found[1])

    def _may_be_behind(self, timer: Timer) -> bool:
        """Whether the scanner may not read a far row that has just been written."""
        return self._is_skewed() or self.clock.now() > self.wheel.closes_at(timer.wakes_at)

    def _ring_of(self, timer: Timer, *, now: datetime) -> Ring:
        ring = self.wheel.place(timer.wakes_at, now=now)
        if ring is Ring.FAR and self._is_skewed():
            # A clock that may write no far rows holds nothing back: that would refuse what could be placed.
            return self.wheel.place(timer.due_at, now=now)
        return ring

    def _place_near(self, numbered: Sequence[tuple[int, Timer]]) -> dict[int, Placement]:
        if not numbered:
            return {}
        # By object: two timers of a batch may be equal, and each needs its own answer.
        rejected = {id(rejection.timer): rejection for rejection in self.ready.send([timer for _, timer in numbered])}
        return {
            index: Placement(None, rejection.reason, rejection.is_permanent)
            if (rejection := rejected.get(id(timer)))
            else Placement(Ring.NEAR)
            for index, timer in numbered
        }

    def _place_far(self, numbered: Sequence[tuple[int, Timer]]) -> dict[int, Placement]:
        if not numbered:
            return {}
        if self._is_skewed():
            return {index: Placement(None, self._skew_fault(), is_permanent=True) for index, _ in numbered}
        unwritten = {id(timer) for timer in self.timers.put([timer for _, timer in numbered])}
        finished = self.clock.now()
        written = [each for each in numbered if id(each[1]) not in unwritten]
        # The answer to the write may be the first that shows how wrong this clock is: then each of them was too late.
        is_skewed = self._is_skewed()
        late = [each for each in written if is_skewed or finished > self.wheel.closes_at(each[1].wakes_at)]
        placed = {index: Placement(None, _UNCONFIRMED) for index, _ in numbered}
        placed |= {index: Placement(Ring.FAR) for index, _ in written}
        # A late row may lie behind the scanner. If its message is not taken, it is not placed.
        return placed | self._place_near(late)

    def _is_skewed(self) -> bool:
        return abs(self.clock.offset()) > self.wheel.skew / 2

    def _skew_fault(self) -> str:
        return str(ClockSkewed(offset=self.clock.offset(), limit=self.wheel.skew / 2))


def _ring_or_raise(placement: Placement) -> Ring:
    if placement.ring is None:
        raise NotPlaced([placement.fault])
    return placement.ring


def _may_try_again(placement: Placement) -> bool:
    return placement.ring is None and not placement.is_permanent
