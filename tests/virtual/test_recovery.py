"""How soon the job of a dead worker runs again, with the constants of every stage, second by second."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from functions.domain.instants import SECOND
from functions.domain.jobs.job import Delivery
from functions.ports.ready_queue import Receipt
from functions.ports.targets import Outcome, Succeeded
from functions.worker.keeper import FIRST_AFTER, HIDDEN_FOR
from infra.stage import STAGES, Stage
from testkit.builders import a_timer
from testkit.fakes.ready_queue import received
from testkit.observed import DeathError, ObservedReadyQueue
from testkit.scheduler import World

RECOVERY = timedelta(seconds=90)
"""What is promised (docs/job-lifecycle.md)."""

POLLED_AND_STARTED = timedelta(seconds=5)
"""Of which the poller and the start of a worker may take so much."""

LONGEST_THAT_RECOVERS_IN_TIME = timedelta(seconds=60)

LEDGERED = Delivery.EXACTLY_ONCE
EVERY_DELIVERY = [LEDGERED, Delivery.AT_LEAST_ONCE]


@dataclass
class Beside:
    """Threads beside calls, on virtual time."""

    world: World
    due: dict[int, tuple[datetime, timedelta, Callable[[], None]]] = field(default_factory=dict)

    @contextmanager
    def repeats(self, act: Callable[[], None], /, *, first_after: timedelta, period: timedelta) -> Iterator[None]:
        number = len(self.due)
        self.due[number] = (self.world.clock.instant + first_after, period, act)
        try:
            yield
        finally:
            del self.due[number]

    def pass_time(self, duration: timedelta) -> None:
        """Half a second after the other, in each of which those act that are to."""
        ends_at = self.world.clock.instant + duration
        while self.world.clock.instant < ends_at:
            self.world.clock.tick(min(SECOND / 2, ends_at - self.world.clock.instant))
            for number, (at, period, act) in list(self.due.items()):
                if at <= self.world.clock.instant:
                    self.due[number] = (at + period, period, act)
                    act()


@dataclass
class SlowTargets:
    """Take so long, and then the first call's worker is killed, or it succeeds. meanwhile: each second of it."""

    beside: Beside
    takes: timedelta
    is_killed: bool
    meanwhile: Callable[[], object] = lambda: None
    called_at: list[datetime] = field(default_factory=list)

    def call(self, *_: object, **__: object) -> Outcome:
        self.called_at.append(self.beside.world.clock.instant)
        if len(self.called_at) > 1:
            return Succeeded()
        for _second in range(self.takes // SECOND):
            self.beside.pass_time(SECOND)
            self.meanwhile()
        self.beside.pass_time(self.takes % SECOND)
        if self.is_killed:
            raise DeathError
        return Succeeded()


class Office:
    """A stage with one job, which is due now."""

    def __init__(
        self, stage: Stage, *, timeout: timedelta, takes: timedelta, delivery: Delivery, is_killed: bool
    ) -> None:
        self.stage = stage
        self.world = World(wheel=stage.wheel)
        self.world.ready.visibility = stage.visibility
        self.beside = Beside(self.world)
        self.targets = SlowTargets(self.beside, takes, is_killed)
        due_at = self.world.clock.instant
        self.world.ready.send([a_timer(due_at=due_at, timeout=timeout, delivery=delivery)])

    def work(self) -> None:
        """One poll."""
        messages = self.world.ready.receive()
        if not messages:
            return
        worker = self.world.worker(targets=self.targets, repeats=self.beside.repeats)
        ends_at = self.world.clock.instant + self.stage.worker.timeout
        returned = worker.execute([received(message) for message in messages], ends_at=ends_at)
        for message in messages:
            if message.message_id not in returned:
                self.world.ready.delete(message.message_id)

    def recovery(self) -> timedelta:
        """From the death of the first worker until another calls the target."""
        with pytest.raises(DeathError):
            self.work()
        died_at = self.world.clock.instant
        while len(self.targets.called_at) < 2:
            self.beside.pass_time(SECOND)
            self.work()
        return self.targets.called_at[1] - died_at


@pytest.mark.parametrize("delivery", EVERY_DELIVERY)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99], ids=["as it begins", "half-way", "at the end"])
@pytest.mark.parametrize("timeout", [10, 30, 60])
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_job_whose_worker_is_killed_runs_again_within_90_seconds(
    stage: Stage, timeout: int, share: float, delivery: Delivery
):
    limit = min(timeout * SECOND, stage.longest_attempt, LONGEST_THAT_RECOVERS_IN_TIME)
    lived = max(limit * share, FIRST_AFTER + SECOND)
    office = Office(stage, timeout=limit, takes=lived, delivery=delivery, is_killed=True)

    assert office.recovery() <= RECOVERY - POLLED_AND_STARTED


@pytest.mark.parametrize("delivery", EVERY_DELIVERY)
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_job_with_a_longer_timeout_runs_again_when_its_lease_is_over(stage: Stage, delivery: Delivery):
    office = Office(stage, timeout=stage.longest_attempt, takes=5 * SECOND, delivery=delivery, is_killed=True)

    recovery = office.recovery()

    lease_is_over = stage.lease + stage.wheel.lease_skew - 5 * SECOND if delivery is LEDGERED else timedelta(0)
    assert recovery <= max(lease_is_over, HIDDEN_FOR) + 3 * SECOND
    assert recovery >= lease_is_over


@pytest.mark.parametrize("delivery", EVERY_DELIVERY)
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_a_job_whose_worker_is_killed_in_its_first_second_waits_for_the_visibility_of_its_queue(
    stage: Stage, delivery: Delivery
):
    office = Office(stage, timeout=30 * SECOND, takes=SECOND / 2, delivery=delivery, is_killed=True)

    assert office.recovery() <= stage.visibility


@pytest.mark.parametrize("delivery", EVERY_DELIVERY)
@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_the_message_of_a_slow_worker_that_lives_comes_to_nobody_else(stage: Stage, delivery: Delivery):
    takes = stage.longest_attempt - SECOND
    office = Office(stage, timeout=stage.longest_attempt, takes=takes, delivery=delivery, is_killed=False)
    office.targets.meanwhile = office.work

    office.work()

    assert len(office.targets.called_at) == 1
    assert office.world.ready.messages == {}


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)
def test_where_a_live_worker_can_hide_its_message_once_only_its_row_keeps_others_from_the_job(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    takes = stage.longest_attempt - SECOND
    office = Office(stage, timeout=stage.longest_attempt, takes=takes, delivery=LEDGERED, is_killed=False)
    hide = ObservedReadyQueue.hide

    def hide_once(queue: ObservedReadyQueue, receipts: Sequence[Receipt], *, hidden_for: timedelta) -> list[str]:
        if queue.hidden:
            raise TimeoutError
        return hide(queue, receipts, hidden_for=hidden_for)

    monkeypatch.setattr(ObservedReadyQueue, "hide", hide_once)
    office.targets.meanwhile = office.work

    office.work()
    office.beside.pass_time(2 * stage.visibility)
    office.work()

    assert len(office.targets.called_at) == 1
    assert "not_hidden" in dict(office.world.journal.events)
    assert office.world.ready.messages == {}


def test_a_batch_that_is_over_within_a_second_makes_no_request_for_its_messages():
    stage = Stage.named("prod")
    office = Office(stage, timeout=30 * SECOND, takes=FIRST_AFTER - SECOND / 2, delivery=LEDGERED, is_killed=False)

    office.work()

    assert office.world.ready.hidden == 0


def test_a_slow_batch_makes_a_request_every_fifteen_seconds():
    stage = Stage.named("prod")
    office = Office(stage, timeout=60 * SECOND, takes=50 * SECOND, delivery=LEDGERED, is_killed=False)

    office.work()

    assert office.world.ready.hidden == 4
