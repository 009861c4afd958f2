"""A whole Tickwheel on the fakes that keeps the history of what it does: the real Lambdas, a model of a good target."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Any

from functions.api.manage_schedules import ScheduleManager
from functions.api.submit import Submitter
from functions.domain.claims import LedgerRow
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.job import Timer
from functions.domain.schedule import Schedule
from functions.domain.submission import Submission
from functions.ports import Rejected
from functions.sweeper.heal import PASS_INTERVAL
from tests.builders import LOCAL_WHEEL
from tests.fakes import QueuedMessage
from tests.world.carriers import timers_of
from tests.world.expected import fires_between
from tests.world.host import FUNCTION_LIMIT
from tests.world.passing import TICK
from tests.world.process import SMOOTHLY, Conditions, Fate, Process
from tests.world.process import Fault as FaultAtCall
from tests.world.world import World
from verification.faults import Chaos, Fault, Strike
from verification.history import Fires, History, Letter, Row
from verification.recorder import Recorder

LATENESS = timedelta(minutes=10)
"""A fire that has come due no longer than this before its schedule is paused may not have run by then: three ticks were
missed, and the scanners after them died."""

MESSAGE_AGE = timedelta(days=13)
"""How long a copy of a message may stay away, and come after all."""

_MOST_NESTED = 2
_COSTS = (0, 1, 20)


def calm() -> Chaos:
    """Nothing goes wrong by itself."""
    return Chaos((), random.Random(0), LOCAL_WHEEL.skew)


class Struck(Process):
    """A process that faults may strike. keys: of the jobs that it had to do with."""

    def __init__(self, stage: Stage, name: str, conditions: Conditions, *, limit: timedelta) -> None:
        super().__init__(stage, name, conditions, limit=limit)
        self.keys: set[str] = set()
        self._stage = stage
        self._is_held = conditions.is_held
        self._strikes = stage.chaos.for_process(name.partition(" ")[0])
        self._striking: Strike | None = None

    @property
    def has_suffered(self) -> bool:
        """Whether it did not run through at once, to its end and without a fault."""
        return self.is_disturbed or self.is_dead or self._is_held

    def through(self, name: str, make: Callable[[], Any], failed: Any = None, about: Sequence[Any] = ()) -> Any:
        if name in ("ledger.claim", "ledger.rescue", "ledger.attempt", "target.begin"):
            self.keys.add(about[0].job.key)
        return super().through(name, make, failed, about)

    def _fate(self, name: str, *, is_local: bool) -> Fate:
        if self._fault is not None or self._stage.chaos.is_over:
            return super()._fate(name, is_local=is_local)
        due = [strike for strike in self._strikes if strike.is_due(name)]
        if not due:
            return super()._fate(name, is_local=is_local)
        self._striking = due[0]
        self._fault = FaultAtCall(due[0].fate, at_call=self._calls + 1, stall=due[0].stall)
        fate = super()._fate(name, is_local=is_local)
        if fate is Fate.HELD:
            self._fault = None
        else:
            self._stage.chaos.struck[due[0].fault] += 1
        return fate

    def _stall(self) -> None:
        if self._striking is not None and self._striking.fault is Fault.DOUBLE_TICKS:
            self._fault = None
            self._stage.scan(int(self.name.split(" ")[1]))
        else:
            super()._stall()
            self._fault = None


@dataclass
class _Life:
    """While a schedule fires: since a client asked for it, and was told so, until it asked for its end, and was told."""

    schedule: Schedule
    asked_at: datetime
    told_at: datetime | None = None
    stopped_at: datetime | None = None
    is_over_at: datetime | None = None


@dataclass
class Stage(World):
    """A world in which faults strike, clients act at their times, and a history is kept."""

    chaos: Chaos = field(default_factory=calm)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.record = Recorder(self, self.chaos)
        self.promises = self.record
        self.schedules.promises = self.record.schedules
        self.processes: list[Struck] = []
        self._submissions: list[Submission] = []
        self._lives: dict[str, list[_Life]] = {}
        self._agenda: list[tuple[datetime, int, Callable[[], None]]] = []
        self._next_tick = self.clock.instant
        self._ticks_to_miss = 0
        self._has_missed = False
        self._depth = 0
        self._copies: list[QueuedMessage] = []
        self._caught_up_at = self._ended_at = self.clock.instant
        self._rows: dict[str, LedgerRow] = {}
        self._managed = ""

    def at(self, instant: datetime, act: Callable[[], None]) -> None:
        """A client is going to act then, or as soon after it as it comes to that."""
        heappush(self._agenda, (instant, len(self._agenda) + self._number(), act))

    def conditions(self) -> Conditions:
        """Of a new process: its clock, and what its calls cost."""
        return Conditions(ahead=self.chaos.ahead(), costs=self.chaos.random.choice(_COSTS) * MILLISECOND)

    def submit(self, submission: Submission, conditions: Conditions = SMOOTHLY) -> Process:
        # Kept, so that no other has its id.
        self._submissions.append(submission)
        return super().submit(submission, conditions)

    def put_schedule(self, schedule: Schedule, conditions: Conditions = SMOOTHLY) -> Process:
        self._managed = f"{schedule.tenant}#{schedule.schedule_id}"
        lives = self._lives.setdefault(self._managed, [])
        if not lives or lives[-1].is_over_at is not None:
            lives.append(_Life(schedule, self.clock.instant))
        return super().put_schedule(schedule, conditions)

    def resume(self, key: str, conditions: Conditions = SMOOTHLY) -> Process:
        self._managed, lives = key, self._lives[key]
        if lives[-1].is_over_at is not None:
            lives.append(_Life(lives[-1].schedule, self.clock.instant))
        return super().resume(key, conditions)

    def pause(self, key: str, conditions: Conditions = SMOOTHLY) -> Process:
        self._stops(key)
        return super().pause(key, conditions)

    def delete(self, key: str, conditions: Conditions = SMOOTHLY) -> Process:
        self._stops(key)
        return super().delete(key, conditions)

    def is_firing(self, key: str) -> bool:
        """Whether a client was told that a schedule fires."""
        life = self._lives[key][-1]
        return life.told_at is not None and life.stopped_at is None

    def is_stopped(self, key: str) -> bool:
        """Whether a client was told that a schedule does not fire any more."""
        return self._lives[key][-1].is_over_at is not None

    def process(self, kind: str, conditions: Conditions, *, limit: timedelta = FUNCTION_LIMIT) -> Process:
        process = Struck(self, f"{kind} #{self._number()}", conditions, limit=limit)
        self.processes.append(process)
        return process

    def build(self, wanted: type, process: Process, **special: Any) -> Any:
        if wanted is Submitter:
            submission = self._submissions[-1]
            special["identity"] = lambda: self.record.name_of(submission)
        return super().build(wanted, process, **special)

    def go_on(self, duration: timedelta) -> None:
        if not self.chaos.faults:
            super().go_on(duration)
            return
        if self._depth == _MOST_NESTED:
            self.clock.tick(duration)
            return
        if self.chaos.random.random() < 0.5:
            # What is with a worker that stands still is given to another.
            self.redeliver()
        self._depth += 1
        self.live_until(self.clock.instant + duration)
        self._depth -= 1

    def live_until(self, end: datetime) -> None:
        """Clients act, ticks come, and messages are delivered, each at its time."""
        while self.clock.instant < end:
            waiting = [end, self._next_tick, *(instant for instant, _, _ in self._agenda[:1])]
            message = self._next_message()
            waiting += [message.visible_at] if message else []
            self.clock.tick(min(waiting) - self.clock.instant)
            self.tidy()
            if self._agenda and self._agenda[0][0] <= self.clock.instant:
                heappop(self._agenda)[2]()
            elif self._next_tick <= self.clock.instant:
                self._tick()
            else:
                self.work(self.conditions(), batch=self.chaos.random.choice([10, 10, 2, 1]))
                self.bury(self.conditions())

    def finish(self) -> None:
        """Without faults until nothing is left to do; then messages come again that nobody has seen for days."""
        self.chaos.is_over = True
        self._caught_up_at = self.clock.instant + PASS_INTERVAL + TICK
        self.drain()
        self._ended_at = self.clock.instant
        self._rows = dict(self.ledger.rows)
        self._come_back()

    def whole_history(self) -> History:
        """Of a stage that has been finished."""
        disturbed = [process.keys for process in self.processes if process.has_suffered]
        return History(
            jobs=self.record.asked_for(),
            fires=[self._owed(key, lives) for key, lives in self._lives.items()],
            calls=self.record.calls(),
            rows={
                key: Row(
                    key=key,
                    state=row.state,
                    attempt=row.attempt,
                    fence=row.fence,
                    settled_at=self.record.settled.get(key),
                    reason=row.error,
                )
                for key, row in self._rows.items()
            },
            letters=[
                Letter(f"{letter.tenant}#{letter.identity}", letter.error_class)
                for letter in self.dead_letters.letters.values()
            ],
            cancels=self.record.all_cancels(),
            ended_at=self._ended_at,
            disturbed=frozenset().union(*disturbed),
        )

    def keep_a_copy(self) -> None:
        """Of a message, which may come once more as long as its queue keeps it."""
        messages = list(self.ready.messages.values())
        if messages:
            self._copies.append(self.chaos.random.choice(messages))

    def _manage(self, kind: str, conditions: Conditions, ask: Callable[[ScheduleManager], Any]) -> Process:
        key = self._managed

        def told(manager: ScheduleManager) -> None:
            ask(manager)
            if not self.record.loses_an_answer():
                self._note_told(kind, self._lives[key][-1])

        return super()._manage(kind, conditions, told)

    def _note_told(self, kind: str, life: _Life) -> None:
        if kind in ("put", "resume"):
            life.told_at = life.told_at or self.clock.instant
        elif kind in ("pause", "delete"):
            life.is_over_at = life.is_over_at or self.clock.instant

    def _refuse(self, timer: Timer) -> Rejected | None:
        if self.chaos.refuses():
            return Rejected(timer, "throttled", is_permanent=False)
        return super()._refuse(timer)

    def _stops(self, key: str) -> None:
        self._managed = key
        life = self._lives[key][-1]
        life.stopped_at = life.stopped_at or self.clock.instant

    def _tick(self) -> None:
        self._next_tick += TICK
        if self._ticks_to_miss:
            self._ticks_to_miss -= 1
            return
        if not self._has_missed and self.chaos.strikes(Fault.MISSED_TICKS, 0.15):
            self._has_missed, self._ticks_to_miss = True, 2
            return
        self._duplicate()
        for shard in range(self.wheel.scan_shards):
            self.scan(shard, self.conditions())
        if self.audits:
            self.sweep(self.conditions())
        self.heal(self.conditions())

    def _duplicate(self) -> None:
        messages = list(self.ready.messages.values())
        if not messages or not self.chaos.strikes(Fault.DUPLICATES, 0.7):
            return
        message = self.chaos.random.choice(messages)
        if message.receive_count:
            message.visible_at = self.clock.instant
            return
        self._copies.append(message)
        later = timedelta(seconds=self.chaos.random.choice([0, 0.5, 20, 120]))
        self._deliver_again(message, at=max(message.visible_at, self.clock.instant) + later)

    def _deliver_again(self, message: QueuedMessage, *, at: datetime) -> None:
        copy_id = f"copy-{self._number()}-{message.message_id}"
        self.ready.messages[copy_id] = replace(message, message_id=copy_id, visible_at=at, receive_count=0)

    def _come_back(self) -> None:
        ledgered = [copy for copy in self._copies if all(timer.job.is_ledgered for timer in timers_of(copy.body))]
        if not ledgered:
            return
        self.forget(MESSAGE_AGE)
        for copy in ledgered:
            self._deliver_again(copy, at=self.clock.instant)
        for _ in range(5):
            while self.work():
                pass
            self.clock.tick(100 * SECOND)

    def _owed(self, key: str, lives: Sequence[_Life]) -> Fires:
        schedule, skew = lives[0].schedule, self.wheel.skew
        due: set[datetime] = set()
        possible: set[datetime] = set()
        for life in lives:
            stopped_at = life.stopped_at or self._ended_at
            # What is deleted at the end has caught up before.
            must_end = self._caught_up_at if stopped_at > self._caught_up_at else stopped_at - LATENESS
            possible.update(fires_between(schedule, life.asked_at - skew, (life.is_over_at or self._ended_at) + skew))
            if life.told_at is not None:
                due.update(fires_between(schedule, life.told_at + skew, must_end))
        job = schedule.job
        return Fires(
            key=key,
            tenant=schedule.tenant,
            delivery=job.delivery,
            payload=job.payload.text,
            due=frozenset(due),
            possible=frozenset(possible - due),
        )
