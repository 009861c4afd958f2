"""A whole Tickwheel on the fakes that keeps the history of what it does: the real Lambdas, a model of a good target."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from heapq import heappop, heappush
from typing import Any

from functions.api.jobs.submit import Submitter
from functions.domain.instants import MILLISECOND, MINUTE, SECOND
from functions.domain.jobs.claims import MESSAGE_LIFE, LedgerRow
from functions.domain.jobs.job import Timer
from functions.domain.jobs.submission import Submission
from functions.ports.ready_queue import Rejected
from functions.sweeper.heal import PASS_INTERVAL
from testkit.builders import LOCAL_WHEEL
from testkit.fakes import QueuedMessage
from testkit.world.carriers import timers_of
from testkit.world.collected import collections_in_use, is_release
from testkit.world.host import FUNCTION_LIMIT
from testkit.world.passing import TICK
from testkit.world.process import SMOOTHLY, Conditions, Process
from testkit.world.world import World
from verification.acts import KEEPING_BACK, Act
from verification.drawing import IN_ORDER, TOLD
from verification.faults import Chaos, Fault
from verification.history import DeadLetterSeen, History, Row
from verification.lives import Life, Scheduling
from verification.owned import Owning
from verification.pace import MINUTES, Pace
from verification.recorder import Recorder
from verification.struck import Struck
from verification.tellings import telling_of

MESSAGE_AGE = timedelta(days=13)
"""How long a copy of a message may stay away, and come after all."""

_MOST_NESTED = 2
_COSTS = (0, 1, 20)


def calm() -> Chaos:
    """No faults at all."""
    return Chaos((), random.Random(0), LOCAL_WHEEL.skew)


_LATE = 90 * SECOND
"""Of a release where nothing goes wrong: the next tick is a minute away, or a message has just been missed."""
_LATE_BY = 20 * MINUTE
"""Where anything does: a release is missed after five minutes, and three of its workers may have died of other jobs before."""

_TO_A_CALL = 5 * SECOND
"""From the token of a call until it begins, where nothing happens to its worker."""


@dataclass
class Stage(Scheduling, Owning, World):
    """A world in which faults strike, clients act at their times, and a history is kept."""

    chaos: Chaos = field(default_factory=calm)
    pace: Pace = MINUTES

    def __post_init__(self) -> None:
        super().__post_init__()
        self.record = Recorder(self, self.chaos)
        self.promises = self.record
        self.acts: Counter[Act] = Counter()
        self.lives: dict[str, list[Life]] = {}
        self.schedules.promises = self.record.schedules
        self.processes: list[Struck] = []
        self._submissions: list[Submission] = []
        self._agenda: list[tuple[datetime, int, Callable[[], None]]] = []
        self._next_tick = self._ticked_at = self.clock.instant
        self._ticks_to_miss = 0
        self._has_missed = False
        self._depth = 0
        self._copies: list[QueuedMessage] = []
        self._throttled: set[str] = set()
        self._caught_up_at = self._ended_at = self.clock.instant
        self._rows: dict[str, LedgerRow] = {}
        self._managed = ""

    @property
    def is_held_up(self) -> bool:
        """Whether a process stands still, while the others go on."""
        return self._depth > 0

    def at(self, instant: datetime, act: Callable[[], None]) -> None:
        """A client is going to act then, or as soon after it as it comes to that."""
        heappush(self._agenda, (instant, len(self._agenda) + self._number(), act))

    def begin_ticking(self) -> None:
        """From now on a tick comes each minute: at no instant that any bucket knows of."""
        self._next_tick = self.clock.instant

    def conditions(self) -> Conditions:
        """Of a new process: its clock, and what its calls cost."""
        return Conditions(ahead=self.chaos.ahead(), costs=self.chaos.random.choice(_COSTS) * MILLISECOND)

    def submit(self, submission: Submission, conditions: Conditions = SMOOTHLY) -> Process:
        # Kept, so that no other has its id.
        self._submissions.append(submission)
        return super().submit(submission, conditions)

    def work(self, conditions: Conditions = SMOOTHLY, *, batch: int = 10) -> Process | None:
        for message in self.ready.messages.values():
            if message.message_id in self._throttled and message.visible_at <= self.clock.instant:
                message.receive_count = self.ready.max_receive_count
        return super().work(conditions, batch=batch)

    def process(self, kind: str, conditions: Conditions, *, limit: timedelta = FUNCTION_LIMIT) -> Process:
        process = Struck(self, f"{kind} #{self._number()}", conditions, limit=limit)
        self.processes.append(process)
        return process

    def build(self, wanted: type, process: Process, **special: Any) -> Any:
        if wanted is Submitter:
            submission = self._submissions[-1]
            self.record.submits(process.name, submission)
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
        self._throttle()
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
            if self._act():
                continue
            if self._next_tick <= self.clock.instant:
                self._tick()
                self._next_tick = self.after_tick(self._next_tick)
            else:
                self._deliver()

    def finish(self) -> None:
        """Without faults until nothing is left to do; then messages come again that nobody has seen for days."""
        self.chaos.is_over = True
        self.lift_everything()
        self._caught_up_at = self.clock.instant + PASS_INTERVAL + TICK
        self.drain()
        if self.ask_again_for_replays():
            self.drain()
        self.promises.operations.check_exports()
        self._ended_at = self.clock.instant
        self._rows = dict(self.kept_rows())
        self._come_back()

    def whole_history(self) -> History:
        """Of a stage that has been finished."""
        disturbed = [process.keys for process in self.processes if process.has_suffered]
        asked, tellings, letters = self.record.asked_for(), self.record.tellings(), self.dead_letters.letters.values()
        in_flows = [job.flow.key for job in asked if job.flow is not None]
        self.acts[Act.ORDERS] += in_flows.count(IN_ORDER.key)
        self.acts[Act.FLOWS] += len(in_flows) - in_flows.count(IN_ORDER.key)
        self.acts[Act.CALLBACKS] += sum(bool(job.callbacks) for job in asked)
        self.acts[Act.COLLECTIONS] += sum(job.collect is not None for job in asked)
        self.acts[Act.DEADLINES] += sum(job.ends_by is not None for job in asked)
        untold = [letter for letter in letters if letter.timer is not None and letter.timer.job.target == TOLD]
        tellings += [
            telling_of(letter.timer.job.key, letter.timer.job.payload.text, None)
            for letter in untold
            if letter.timer is not None
        ]
        of_callbacks = {telling.key for telling in tellings}
        released = self.promises.released
        disturbed += [released.members[key] for keys in disturbed for key in keys if key in released.members]
        return History(
            jobs=asked,
            tellings=tellings,
            slack=self.wheel.skew + _TO_A_CALL,
            fires=[self.owed(key, caught_up_at=self._caught_up_at, ended_at=self._ended_at) for key in self.lives],
            calls=self.record.calls(),
            rows={
                key: Row(
                    key=key,
                    state=row.state,
                    attempt=row.attempt,
                    fence=row.fence,
                    settled_at=self.record.settled.get(key),
                    reason=row.error,
                    over=tuple(self.record.over.get(key, ())),
                )
                for key, row in self._rows.items()
                if key not in of_callbacks and not is_release(key.partition("#")[2])
            },
            letters=[
                DeadLetterSeen(f"{letter.tenant}#{letter.identity}", letter.error_class)
                for letter in letters
                if letter not in untold and not is_release(letter.identity)
            ],
            cancels=self.record.all_cancels(),
            ended_at=self._ended_at,
            disturbed=frozenset(self.record.unsure).union(*disturbed),
            replays=self.record.replays,
            releases=self.record.releases(),
            lateness=self._lateness,
        )

    @property
    def _lateness(self) -> timedelta | None:
        if any(self.acts[act] for act in KEEPING_BACK):
            return None
        return _LATE_BY if self.chaos.faults else _LATE

    def keep_a_copy(self) -> None:
        """Of a message, which may come once more as long as its queue keeps it."""
        messages = list(self.ready.messages.values())
        if messages:
            self._copies.append(self.chaos.random.choice(messages))

    def kept_rows(self) -> Mapping[str, LedgerRow]:
        """All rows of the ledger, as they were last seen."""
        return dict(self.ledger.rows)

    def _act(self) -> bool:
        """Whether it was somebody's turn to ask for something."""
        if not self._agenda or self._agenda[0][0] > self.clock.instant:
            return False
        heappop(self._agenda)[2]()
        return True

    def _deliver(self) -> None:
        self.work(self.conditions(), batch=self.chaos.random.choice([10, 10, 2, 1]))
        self.bury(self.conditions())

    def _refuse(self, timer: Timer) -> Rejected | None:
        if self.chaos.refuses():
            return Rejected(timer, "throttled", is_permanent=False)
        return super()._refuse(timer)

    def after_tick(self, at: datetime) -> datetime:
        """When the next tick comes, which is `at` if one comes each minute."""
        return at

    def _tick(self) -> None:
        self._ticked_at = self.clock.instant
        self._next_tick += TICK
        if self._ticks_to_miss:
            self._ticks_to_miss -= 1
            return
        if not self._has_missed and self.chaos.strikes(Fault.MISSED_TICKS, 0.15):
            self._has_missed, self._ticks_to_miss = True, 2
            return
        self._duplicate()
        self._throttle()
        for shard in range(self.wheel.scan_shards):
            self.scan(shard, self.conditions())
        if self.audits:
            self.sweep(self.conditions())
        self.heal(self.conditions())
        if collections_in_use(self.collections):
            self.open_collections(self.conditions())
        if self.promises.operations.open():
            self.operate(self.conditions())

    def _duplicate(self) -> None:
        messages = list(self.ready.messages.values())
        if not messages or not self.chaos.strikes(Fault.DUPLICATES, 0.7):
            return
        message = self.chaos.random.choice(messages)
        if message.receive_count:
            message.visible_at = self.clock.instant
            return
        self._copies.append(message)
        later = timedelta(seconds=self.chaos.random.choice(self.pace.copied))
        self._deliver_again(message, at=max(message.visible_at, self.clock.instant) + later)

    def _throttle(self) -> None:
        messages = list(self.ready.messages.values())
        if not messages or not self.chaos.strikes(Fault.THROTTLED, 0.3):
            return
        # What is with a worker that stands still comes first: its time to be hidden may be over.
        held = [message for message in messages if message.receive_count]
        message = self.chaos.random.choice(held or messages)
        self._throttled.add(message.message_id)
        if held:
            message.visible_at = self.clock.instant

    def _deliver_again(self, message: QueuedMessage, *, at: datetime) -> None:
        copy_id = f"copy-{self._number()}-{message.message_id}"
        self.ready.messages[copy_id] = replace(message, message_id=copy_id, visible_at=at, receive_count=0)

    def _come_back(self) -> None:
        until = self.clock.instant + MESSAGE_AGE
        ledgered = [
            copy
            for copy in self._copies
            if copy.sent_at + MESSAGE_LIFE > until and all(timer.job.is_ledgered for timer in timers_of(copy.body))
        ]
        if not ledgered:
            return
        self.forget(MESSAGE_AGE)
        for copy in ledgered:
            self._deliver_again(copy, at=self.clock.instant)
        for _ in range(5):
            while self.work():
                pass
            self.clock.tick(100 * SECOND)
