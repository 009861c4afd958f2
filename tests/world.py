"""A whole Tickwheel on the fakes, with every fault that can be had: the real rules, time in the hand of the test.

A process is made of the real submit, cancel, scan, execute, sweep and bury code on ports that can die before or after
any call, lose an answer, or stall while the rest of the world goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from functions.api.cancel import Canceller
from functions.api.submit import Accepted, Submission, Submitter
from functions.dead_letters.bury import Burier
from functions.domain.claims import MESSAGE_LIFE
from functions.domain.cursor import oldest_bucket
from functions.domain.errors import NotPlaced
from functions.domain.job import Delivery, Timer
from functions.domain.job_id import parse_job_id
from functions.domain.wheel import Wheel
from functions.placing import Placer
from functions.ports import Failed, Invocation, Receipt, Rejected, Succeeded
from functions.scanner.scan import Scanner
from functions.sweeper.sweep import Sweeper
from functions.worker.execute import MARGIN, Message, Worker
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

TICK = timedelta(seconds=60)
FUNCTION_TIMEOUT = timedelta(seconds=60)


class Crash(BaseException):
    """The process is dead. Not an Exception: no code may survive it."""


@dataclass
class Fault:
    """What goes wrong in one process, at the nth call that it makes to a port."""

    at_call: int
    kind: str  # "before": dies before the call; "after": dies after it; "lost": the call is made twice; "stall"
    stall: timedelta = timedelta(0)


@dataclass
class ProcessClock:
    """The clock of one process: it may differ from the world's, and a process cannot tell."""

    world: FakeClock
    ahead: timedelta

    def now(self) -> datetime:
        return self.world.instant + self.ahead

    def monotonic(self) -> float:
        return self.world.monotonic()

    def sleep(self, duration: timedelta) -> None:
        self.world.tick(duration)

    def offset(self) -> timedelta:
        return self.ahead


class FaultyPort:
    """Passes calls on, and lets the fault of its process happen."""

    def __init__(self, port: Any, process: Process) -> None:
        self._port = port
        self._process = process

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._port, name)
        return lambda *args, **kwargs: self._process.through(call, args, kwargs)


class Process:
    """One run of one Lambda, with at most one fault."""

    def __init__(self, world: World, *, ahead: timedelta, fault: Fault | None) -> None:
        self.world = world
        self.clock = ProcessClock(world.clock, ahead)
        self.fault = fault
        self.calls = 0

    def through(self, call: Callable[..., Any], args: Any, kwargs: Any, *, is_repeated: bool = True) -> Any:
        self.calls += 1
        fault = self.fault
        if fault is None or self.calls != fault.at_call or (fault.kind == "lost" and not is_repeated):
            return call(*args, **kwargs)
        match fault.kind:
            case "before":
                raise Crash
            case "after":
                call(*args, **kwargs)
                raise Crash
            case "lost":
                # The SDK repeats the call with the same arguments, and sees only the second answer.
                call(*args, **kwargs)
                return call(*args, **kwargs)
            case _:
                self.world.go_on(fault.stall)
                return call(*args, **kwargs)

    def __getattr__(self, port: str) -> Any:
        if port == "placer":
            return Placer(wheel=self.world.wheel, clock=self.clock, timers=self.timers, ready=self.ready)
        return FaultyPort(getattr(self.world, port), self)


@dataclass
class Run:
    """One call of a target."""

    key: str
    fence: int
    started_at: datetime
    is_success: bool = False


@dataclass
class Expected:
    """What the world was promised about a job."""

    job_id: str
    submission: Submission
    due_at: datetime
    cancel: str = ""  # "", "asked" (no answer, refused, or requested), "acknowledged"


@dataclass
class World:
    """The stores, the queue, the targets, and what must be true of them."""

    wheel: Wheel = LOCAL_WHEEL
    audits: bool = True
    clock: FakeClock = field(default_factory=FakeClock)
    worker_class: type[Worker] = Worker
    scanner_class: type[Scanner] = Scanner

    def __post_init__(self) -> None:
        self.timers = InMemoryTimerStore(wheel=self.wheel)
        self.ready = InMemoryReadyQueue(self.clock)
        self.ledger = InMemoryLedger(skew=self.wheel.skew)
        self.shards = InMemoryShardStore()
        self.dead_letters = InMemoryDeadLetters()
        self.payloads = InMemoryPayloadStore()
        self.journal = RecordingJournal()
        self.jobs: dict[str, Expected] = {}
        self.first_ids: dict[str, str] = {}
        self.runs: list[Run] = []
        self.live: list[tuple[str, ProcessClock, datetime]] = []
        self.broken: list[str] = []
        self.stall_target = timedelta(0)
        self.refuses_sends = False
        self._number = 0
        self._random = random.Random(7)
        self.ready.refuses = self._refuse

    def _refuse(self, timer: Timer) -> Rejected | None:
        return Rejected(timer, "throttled", is_permanent=False) if self.refuses_sends else None

    def _token(self) -> str:
        self._number += 1
        return f"token-{self._number}"

    def process(self, *, ahead: timedelta = timedelta(0), fault: Fault | None = None) -> Process:
        return Process(self, ahead=ahead, fault=fault)

    def submit(self, submission: Submission, process: Process) -> Accepted | None:
        """The answer that the client got; None when there was none, or it was told that nothing was stored."""
        submitter = Submitter(
            wheel=self.wheel,
            clock=process.clock,
            ledger=process.ledger,
            payloads=process.payloads,
            placer=process.placer,
            journal=self.journal,
            identity=self._token,
            token=self._token,
            side_by_side=lambda rule, items: [rule(item) for item in items],
        )
        try:
            answer = submitter.submit([submission])[0]
        except Crash:
            return None
        if isinstance(answer, NotPlaced):
            return None
        key = submission.idempotency_key
        if key is not None:
            first = self.first_ids.setdefault(key, answer.job_id)
            self._expect(first == answer.job_id, f"key {key} answered with two ids")
        if answer.job_id not in self.jobs:
            self.jobs[answer.job_id] = Expected(answer.job_id, submission, answer.due_at)
        return answer

    def cancel(self, job_id: str, process: Process) -> None:
        canceller = Canceller(
            wheel=self.wheel,
            clock=process.clock,
            ledger=process.ledger,
            timers=process.timers,
            payloads=process.payloads,
            placer=process.placer,
            token=self._token,
        )
        expected = self.jobs[job_id]
        if not expected.cancel:
            expected.cancel = "asked"
        try:
            if canceller.cancel(parse_job_id(job_id)):
                expected.cancel = "acknowledged"
        except Crash:
            pass
        except Exception as refusal:
            if type(refusal).__name__ not in ("AlreadySettled", "TooLate"):
                raise

    def scan(self, shard: int, process: Process) -> None:
        scanner = self.scanner_class(
            wheel=self.wheel,
            clock=process.clock,
            shards=process.shards,
            timers=process.timers,
            ready=process.ready,
            dead_letters=process.dead_letters,
            journal=self.journal,
            token=self._token,
        )
        try:
            scanner.scan(shard, time_limit=FUNCTION_TIMEOUT)
        except Crash:
            return

    def sweep(self, process: Process) -> None:
        sweeper = Sweeper(
            wheel=self.wheel,
            clock=process.clock,
            shards=process.shards,
            timers=process.timers,
            ledger=process.ledger,
            placer=process.placer,
            journal=self.journal,
            sample=1.0,
        )
        try:
            sweeper.sweep(time_limit=FUNCTION_TIMEOUT)
        except (Crash, NotPlaced):
            return

    def work(self, process: Process, *, batch: int = 10) -> int:
        """Deliver a batch to a worker; how many messages it had."""
        messages = self.ready.receive(batch)
        if not messages:
            return 0
        worker = self.worker_class(
            wheel=self.wheel,
            clock=process.clock,
            ledger=process.ledger,
            placer=process.placer,
            ready=process.ready,
            dead_letters=process.dead_letters,
            payloads=process.payloads,
            targets=_Targets(self, process),
            journal=self.journal,
            side_by_side=_one_after_the_other,
            token=self._token,
            jitter=self._random.random,
        )
        try:
            returned = worker.execute(
                [_delivery(message) for message in messages], ends_at=process.clock.now() + FUNCTION_TIMEOUT
            )
        except Crash:
            return len(messages)
        for message in messages:
            if message.message_id not in returned:
                self.ready.delete(message.message_id)
        return len(messages)

    def bury(self, process: Process) -> None:
        """Deliver what the dead-letter queue has to its consumer."""
        burier = Burier(
            clock=process.clock,
            skew=self.wheel.skew,
            ledger=process.ledger,
            dead_letters=process.dead_letters,
            journal=self.journal,
            token=self._token,
        )
        for message in list(self.ready.dead):
            try:
                if burier.bury(
                    message.body,
                    message_id=message.message_id,
                    sent_at=message.sent_at,
                    receive_count=message.receive_count,
                ):
                    self.ready.dead.remove(message)
            except Crash:
                return

    def redeliver(self) -> None:
        """SQS delivers at least once: messages in flight become visible although somebody has them."""
        for message in self.ready.messages.values():
            if message.receive_count:
                message.visible_at = self.clock.instant

    def go_on(self, duration: timedelta) -> None:
        """The rest of the world goes on, without faults, while one process stalls."""
        end = self.clock.instant + duration
        self.redeliver()
        while True:
            for shard in range(self.wheel.scan_shards):
                self.scan(shard, self.process())
            if self.clock.instant >= end:
                break
            self.clock.tick(min(end - self.clock.instant, timedelta(seconds=20)))
        stall, self.stall_target = self.stall_target, timedelta(0)
        self.work(self.process(ahead=self.wheel.skew / 2))
        self.stall_target = stall

    def drain(self) -> None:
        """Run without faults until nothing is left to do; it must come to that."""
        self.refuses_sends, self.stall_target = False, timedelta(0)
        last = max((expected.due_at for expected in self.jobs.values()), default=self.clock.instant)
        ends = max(last, self.clock.instant) + timedelta(hours=1)
        while self.clock.instant < ends and not self._is_idle(last):
            for shard in range(self.wheel.scan_shards):
                self.scan(shard, self.process())
            if self.audits:
                self.sweep(self.process())
            for _ in range(3):
                while self.work(self.process()):
                    pass
                self.bury(self.process())
                self.clock.tick(TICK / 3)
        self._expect(not self.ready.messages and not self.ready.dead, "messages go round for ever")

    def forget(self, duration: timedelta) -> None:
        """Days pass: rows and messages expire."""
        self.clock.tick(duration)
        self.ledger.expire(self.clock.instant)
        for message in list(self.ready.messages.values()):
            if message.sent_at + MESSAGE_LIFE <= self.clock.instant:
                self.ready.delete(message.message_id)

    def _is_idle(self, last: datetime) -> bool:
        cursors = self.shards.cursors(range(self.wheel.scan_shards))
        return (
            not self.ready.messages
            and not self.ready.dead
            and self.clock.instant > last + timedelta(minutes=10)
            and len(cursors) == self.wheel.scan_shards
            and all(oldest_bucket(found) > self.wheel.bucket_of(self.clock.instant) for found in cursors.values())
        )

    def check(self) -> None:
        assert not self.broken, self.broken

    def check_nothing_lost(self) -> None:
        buried = {letter.job_id for letter in self.dead_letters.letters.values()}
        for job_id, expected in self.jobs.items():
            parsed = parse_job_id(job_id)
            row = self.ledger.get(parsed.key)
            succeeded = [run for run in self.runs if run.key == parsed.key and run.is_success]
            has_expired = expected.submission.expires_after is not None
            may_not_run = bool(expected.cancel) or has_expired
            if parsed.delivery is Delivery.AT_LEAST_ONCE:
                self._expect(bool(succeeded) or job_id in buried or may_not_run, f"lost: {job_id}")
                continue
            self._expect((row is not None and row.is_settled) or may_not_run, f"lost: {job_id} is {row}")
            if row is not None and row.state == "failed" and parsed.delivery is Delivery.EXACTLY_ONCE:
                self._expect(job_id in buried, f"failed without a dead letter: {job_id}")
        self.check()

    def check_settled_once(self) -> None:
        """After the drain, nothing that comes back may run again."""
        for job_id in self.jobs:
            parsed = parse_job_id(job_id)
            succeeded = [run for run in self.runs if run.key == parsed.key and run.is_success]
            if parsed.delivery is not Delivery.AT_LEAST_ONCE:
                self._expect(len(succeeded) <= 1 or self._are_zombies(succeeded), f"ran twice: {job_id}")
        self.check()

    def _are_zombies(self, runs: list[Run]) -> bool:
        # Between its effect and its settle a worker may die: then the effect is repeated, under a larger fence.
        fences = [run.fence for run in runs]
        return fences == sorted(set(fences))

    def _expect(self, is_true: bool, violation: str) -> None:
        if not is_true:
            self.broken.append(violation)

    def effect(self, target: str, invocation: Invocation, process: Process) -> Succeeded | Failed:
        """A target is called: whatever must be true at that moment is checked here."""
        parsed = parse_job_id(invocation.job_id)
        key, now = parsed.key, process.clock.now()
        expected = self.jobs.get(invocation.job_id)
        earlier = [run for run in self.runs if run.key == key]
        self._expect(now >= invocation.scheduled_at, f"early: {key} at {now}")
        self._expect(expected is None or expected.cancel != "acknowledged", f"ran after its cancel: {key}")
        if parsed.delivery is Delivery.AT_MOST_ONCE:
            self._expect(not earlier, f"at most once ran again: {key}")
        if parsed.delivery is Delivery.EXACTLY_ONCE:
            row = self.ledger.get(key)
            self._expect(row is not None and not row.is_settled, f"ran after it was settled: {key}")
            self._expect(all(run.fence < invocation.fence for run in earlier), f"the fence did not grow: {key}")
            for other, clock, lease_until in self.live:
                self._expect(other != key or clock.now() >= lease_until, f"two live runs: {key}")
        run = Run(key, invocation.fence, now)
        self.runs.append(run)
        if "poison" in target:
            raise Crash
        if self.stall_target:
            stall, self.stall_target = self.stall_target, timedelta(0)
            self.live.append((key, process.clock, invocation.deadline + MARGIN))
            self.go_on(stall)
            self.live.pop()
        if "broken" in target or ("flaky" in target and invocation.attempt == 1):
            return Failed("the target said no")
        run.is_success = True
        return Succeeded("{}")


def _one_after_the_other(jobs: Sequence[Callable[[], None]]) -> None:
    for job in jobs:
        job()


@dataclass
class _Targets:
    world: World
    process: Process

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, timeout: timedelta
    ) -> Succeeded | Failed:
        # Unlike an SDK, the worker never repeats a request to a target by itself.
        return self.process.through(self.world.effect, (target, invocation, self.process), {}, is_repeated=False)


def _delivery(message: QueuedMessage) -> Message:
    return Message(
        message_id=message.message_id,
        body=message.body,
        receipt=Receipt("arn:aws:sqs:us-east-1:000000000000:ready", message.message_id),
        receive_count=message.receive_count,
    )
