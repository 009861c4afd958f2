"""A whole Tickwheel on the fakes: the real Lambdas as processes, the stores that outlive them, and what was promised."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any

from functions.api.cancel import Canceller
from functions.api.submit import Accepted, Submission, Submitter
from functions.dead_letters.bury import Burier
from functions.domain.claims import MESSAGE_LIFE
from functions.domain.cursor import first_cursors
from functions.domain.errors import AlreadySettled, ClockSkewed, KeyReused, NotPlaced, TooLate
from functions.domain.instants import MILLISECOND
from functions.domain.job import Priority, Timer
from functions.domain.job_id import job_id_of, parse_job_id
from functions.domain.wheel import Wheel
from functions.placing import Placer
from functions.ports import Receipt, Rejected
from functions.scanner.scan import Scanner
from functions.sweeper.sweep import SETTLING, Sweeper
from functions.worker.execute import Message, Worker
from tests.builders import LOCAL_WHEEL
from tests.fakes import (
    FakeClock,
    InMemoryDeadLetters,
    InMemoryLedger,
    InMemoryPayloadStore,
    InMemoryReadyQueue,
    InMemoryShardStore,
    InMemoryTimerStore,
    QueuedMessage,
    RecordingJournal,
)
from tests.world.carriers import carriers, timers_of
from tests.world.history import History
from tests.world.port import Port
from tests.world.process import SMOOTHLY, Conditions, LateCall, Process, Unavailable
from tests.world.promises import Promises
from tests.world.targets import Targets

REQUEST_LIMIT = timedelta(seconds=30)
TICK = timedelta(seconds=60)
FUNCTION_LIMIT = timedelta(seconds=60)
LATEST = timedelta(seconds=30)
"""How long a call that nobody waits for any more may take to be made."""

_REFUSALS = (AlreadySettled, ClockSkewed, KeyReused, NotPlaced, TooLate, Unavailable)


@dataclass
class World:
    """lambdas: classes that stand in for the real ones. is_new: no shard has ever been scanned."""

    wheel: Wheel = LOCAL_WHEEL
    audits: bool = True
    is_new: bool = False
    lambdas: dict[type, type] = field(default_factory=dict)
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.dead_letters = InMemoryDeadLetters()
        self.ledger = InMemoryLedger(skew=self.wheel.skew, dead_letters=self.dead_letters)
        self.timers = InMemoryTimerStore(wheel=self.wheel, ledger=self.ledger, clock=self.clock)
        self.ready = InMemoryReadyQueue(self.clock, refuses=self._refuse)
        self.shards = InMemoryShardStore()
        self.payloads = InMemoryPayloadStore()
        self.journal = RecordingJournal()
        self.promises = Promises(self)
        self.late: list[LateCall] = []
        self.live: list[Process] = []
        self.history = History()
        self.refused: dict[Priority, bool] = {}
        self._first_seen: dict[str, datetime] = {}
        self._numbers = 0
        self._random = random.Random(7)
        if not self.is_new:
            self._have_scanned()

    def submit(self, submission: Submission, conditions: Conditions = SMOOTHLY) -> Process:
        """A client submits one job."""
        process = self._process("submit", conditions, limit=REQUEST_LIMIT)
        submitter = self._build(Submitter, process, side_by_side=process.map_side_by_side)
        self.promises.submitted(submission)

        def request() -> None:
            answer = submitter.submit([submission])[0]
            if isinstance(answer, Accepted):
                self.promises.accepted(submission, answer)

        return self._begin(process, request, conditions)

    def cancel(self, job_id: str, conditions: Conditions = SMOOTHLY) -> Process:
        """A client cancels a job whose id it has."""
        process = self._process("cancel", conditions, limit=REQUEST_LIMIT)
        canceller = self._build(Canceller, process)
        removed_by = self.promises.jobs[job_id].removed_by

        def request() -> None:
            try:
                if canceller.cancel(parse_job_id(job_id)):
                    self.promises.cancelled(job_id)
                else:
                    self.promises.cancel_requested(job_id)
            except (AlreadySettled, TooLate):
                removed_by.discard(process.name)
                raise

        return self._begin(process, request, conditions)

    def scan(self, shard: int, conditions: Conditions = SMOOTHLY) -> Process:
        """One tick of one shard."""
        process = self._process(f"scan {shard}", conditions)
        scanner = self._build(Scanner, process)
        return self._begin(process, lambda: scanner.scan(shard, time_limit=FUNCTION_LIMIT), conditions)

    def sweep(self, conditions: Conditions = SMOOTHLY) -> Process:
        """One audit."""
        process = self._process("sweep", conditions)
        sweeper = self._build(Sweeper, process, sample=1.0)
        return self._begin(process, lambda: sweeper.sweep(time_limit=FUNCTION_LIMIT), conditions)

    def work(self, conditions: Conditions = SMOOTHLY, *, batch: int = 10) -> Process | None:
        """Deliver a batch of messages to a worker; None when there is none."""
        # A poll takes its time. Without it, what was put off until this very instant would come back without end.
        self.clock.tick(MILLISECOND)
        messages = self.ready.receive(batch)
        if not messages:
            return None
        process = self._process("work", conditions)
        timers = [timer for message in messages for timer in timers_of(message.body)]
        worker = self._build(
            Worker, process, side_by_side=process.side_by_side, targets=Targets(self.promises, process, timers)
        )
        ends_at = process.clock.now() + FUNCTION_LIMIT

        def deliver() -> None:
            returned = worker.execute([_delivery(message) for message in messages], ends_at=ends_at)
            for message in messages:
                if message.message_id not in returned:
                    self.ready.delete(message.message_id)

        return self._begin(process, deliver, conditions)

    def bury(self, conditions: Conditions = SMOOTHLY) -> Process | None:
        """Deliver what the dead-letter queue has to its consumer."""
        dead = list(self.ready.dead)
        if not dead:
            return None
        process = self._process("bury", conditions)
        burier = self._build(Burier, process)

        def deliver() -> None:
            for message in dead:
                if (
                    burier.bury(
                        message.body,
                        message_id=message.message_id,
                        seen_at=self._first_seen.setdefault(message.message_id, self.clock.instant),
                        receive_count=message.receive_count,
                    )
                    and message in self.ready.dead
                ):
                    self.ready.dead.remove(message)

        return self._begin(process, deliver, conditions)

    def redeliver(self) -> None:
        """SQS delivers at least once: messages in flight become visible although somebody has them."""
        for message in self.ready.messages.values():
            if message.receive_count:
                message.visible_at = self.clock.instant

    def time_passes(self, duration: timedelta) -> None:
        """And nothing else happens."""
        self.clock.tick(duration)
        self.tidy()

    def tidy(self) -> None:
        """Lambdas that have used up their time are stopped; calls that were late are made at last."""
        for process in self.live:
            if self.clock.instant > process.ends_at:
                process.kill()
        self.live[:] = [process for process in self.live if not process.is_over]
        while self.late and self.late[0].sent_at + LATEST < self.clock.instant:
            self.land()

    def land(self, which: int = 0) -> None:
        """A call that nobody waits for any more is made."""
        if self.late:
            late = self.late.pop(which % len(self.late))
            self.history.note_turn(self.clock.instant, late.process, f"{late.name} is made at last")
            late.make()

    def go_on(self, duration: timedelta) -> None:
        """The rest of the world goes on, without faults, while one process stalls."""
        end = self.clock.instant + duration
        self.redeliver()
        while True:
            for shard in range(self.wheel.scan_shards):
                self.scan(shard)
            if self.clock.instant >= end:
                break
            self.clock.tick(min(end - self.clock.instant, timedelta(seconds=20)))
        self.work(Conditions(ahead=self.wheel.skew / 2))

    def drain(self) -> None:
        """Run without faults until nothing is left to do; it must come to that."""
        for process in self.live:
            process.finish()
        while self.late:
            self.land()
        self.refused.clear()
        ends_at = self.clock.instant + timedelta(hours=2)
        while self.clock.instant < ends_at and not self._is_idle():
            for shard in range(self.wheel.scan_shards):
                self.scan(shard)
            if self.audits:
                self.sweep()
            for _ in range(3):
                while self.work():
                    pass
                self.bury()
                self.clock.tick(timedelta(seconds=20))
        self.promises.expect(not self.ready.messages and not self.ready.dead, "messages go round for ever")

    def forget(self, duration: timedelta) -> None:
        """Days pass: rows and messages expire."""
        self.clock.tick(duration)
        self.ledger.expire(self.clock.instant)
        for message in list(self.ready.messages.values()):
            if message.sent_at + MESSAGE_LIFE <= self.clock.instant:
                self.ready.delete(message.message_id)

    def come_to_an_end(self) -> None:
        """Drain it, and see that every promise has been kept. Raises AssertionError."""
        self.drain()
        self.promises.check_nothing_lost(is_over=True)
        self.promises.check_dead_letters()
        self.check()

    def end(self) -> None:
        """No thread outlives its history."""
        for process in self.live:
            process.kill()
        self.live.clear()

    def check(self) -> None:
        """Raises AssertionError with what was not kept, and how it came to that."""
        if self.promises.broken:
            violations = "\n".join(self.promises.broken)
            raise AssertionError(f"{violations}\n\n{self.history.tell(violations)}")

    def _begin(self, process: Process, body: Callable[[], Any], conditions: Conditions) -> Process:
        def run() -> None:
            self.history.note_turn(self.clock.instant, process.name, f"begins with {conditions}")
            try:
                body()
            except _REFUSALS as refusal:
                self.history.note_turn(self.clock.instant, process.name, f"ends with {type(refusal).__name__}")

        if conditions.is_held:
            process.start(run)
            self.live.append(process)
        else:
            process.run(run)
        return process

    def _process(self, kind: str, conditions: Conditions, *, limit: timedelta = FUNCTION_LIMIT) -> Process:
        return Process(self, f"{kind} #{self._number()}", conditions, limit=limit)

    def _build(self, wanted: type, process: Process, **special: Any) -> Any:
        """One Lambda, wired by the names of what it asks for."""
        names = ("timers", "ready", "ledger", "shards", "dead_letters", "payloads")
        ports = {name: Port(process, name, getattr(self, name), self._watch) for name in names}
        given = {
            **ports,
            "wheel": self.wheel,
            "skew": self.wheel.skew,
            "clock": process.clock,
            "placer": self.lambdas.get(Placer, Placer)(
                wheel=self.wheel, clock=process.clock, timers=ports["timers"], ready=ports["ready"]
            ),
            "journal": self.journal,
            "token": lambda: f"{process.name} {self._number():05}",
            "identity": lambda: f"job-{self._number():05}",
            "jitter": self._random.random,
            **special,
        }
        made = self.lambdas.get(wanted, wanted)
        return made(**{part.name: given[part.name] for part in fields(made)})

    def _watch(self, process: Process, call: str, make: Callable[[], Any]) -> Any:
        """Make a call with the clock of its process, and look at what it did."""
        before = dict(self.ledger.rows)
        cursors = self.shards.cursors(list(self.shards.rows)) if call == "shards.checkpoint" else {}
        self.clock.ahead = process.clock.ahead
        try:
            answer = make()
        finally:
            self.clock.ahead = timedelta(0)
        if call.startswith("ledger"):
            self.promises.ledger_changed(before, self.ledger.rows, is_in_company=process.is_in_company)
        if call == "shards.checkpoint":
            self.promises.cursors_moved(cursors, self.shards.cursors(list(self.shards.rows)))
        if call == "timers.delete" and answer is not None and answer.timer is not None:
            expected = self.promises.jobs.get(str(job_id_of(answer.timer.job)))
            if expected is not None:
                expected.removed_by.add(process.name)
        return answer

    def _refuse(self, timer: Timer) -> Rejected | None:
        is_permanent = self.refused.get(timer.job.priority)
        if is_permanent is None:
            return None
        if is_permanent:
            self.promises.note_refusal(timer)
        return Rejected(timer, "refused", is_permanent=is_permanent)

    def _have_scanned(self) -> None:
        frontier = self.wheel.next_bucket(self.wheel.horizon(now=self.clock.now()))
        for shard in range(self.wheel.scan_shards):
            lease = self.shards.acquire(
                shard, owner="", now=self.clock.now(), lease_until=self.clock.now(), skew=self.wheel.skew
            )
            assert lease is not None
            self.shards.checkpoint(lease, first_cursors(frontier), lease_until=None)

    def _is_idle(self) -> bool:
        """Nothing waits, and whatever was written has been audited."""
        since = max((self.wheel.ends_at(bucket) for bucket, _ in self.timers.rows), default=self.clock.instant)
        is_audited = not self.audits or self.clock.instant > since + SETTLING + TICK
        return is_audited and not carriers(self.ready, self.timers, self.shards)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers


def _delivery(message: QueuedMessage) -> Message:
    return Message(
        message_id=message.message_id,
        body=message.body,
        receipt=Receipt("arn:aws:sqs:us-east-1:000000000000:ready", message.message_id),
        receive_count=message.receive_count,
    )
