"""An `exact` job is claimed a moment before its instant and called at it; whoever cancels it before the claim has cancelled it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.far_ring.timer_record import encode_envelope
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.claims import CLAIMED_AHEAD, LEASE_MARGIN
from functions.domain.jobs.job import Delivery, Precision, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import State
from functions.domain.targets.flows import NamedFlow
from functions.domain.tenants.plan import TenantPlan
from functions.ports.ready_queue import Receipt
from functions.ports.targets import Failed
from functions.worker.message import Message
from testkit.builders import NOON, a_schedule, a_template, a_timer, an_occurrence_timer
from testkit.observed import DeathError
from testkit.scheduler import World

DUE = NOON + 1_500 * MILLISECOND
AHEAD = DUE - CLAIMED_AHEAD


class Moments(World):
    """A world in which something may happen at an instant while a worker waits."""

    def __init__(self) -> None:
        super().__init__()
        self.at: dict[datetime, Callable[[], object]] = {}
        self.claimed_at: datetime | None = None
        pass_time = self.clock.tick

        def tick(duration: timedelta) -> None:
            until = self.clock.instant + max(duration, timedelta(0))
            for instant in sorted(instant for instant in self.at if instant <= until):
                pass_time(instant - self.clock.instant)
                self.at.pop(instant)()
            pass_time(until - self.clock.instant)

        self.clock.tick = tick

    def run(self, timer: Timer) -> list[str]:
        """A worker that has received its message; the instant of its claim is noted."""

        def note(call: str) -> None:
            if call in ("ledger.claim", "ledger.attempt"):
                self.claimed_at = self.clock.now()

        message = Message(
            message_id="m1",
            body=encode_envelope([timer]),
            receipt=Receipt("arn:aws:sqs:us-east-1:000000000000:ready", "m1"),
            receive_count=1,
        )
        return self.watched(before=note).work(message)

    @property
    def called_at(self) -> list[datetime]:
        return [instant for instant, *_ in self.targets.effects]


@pytest.fixture
def world() -> Moments:
    return Moments()


def exact(**overrides: Any) -> Timer:
    return a_timer(due_at=DUE, precision=Precision.EXACT, **overrides)


def test_it_is_claimed_ahead_and_called_at_its_instant(world: Moments):
    timer = exact(timeout=10 * SECOND)
    leases: list[datetime | None] = []
    world.at[DUE - MILLISECOND] = lambda: leases.append(world.row(timer.job).lease_until)

    assert world.run(timer) == []

    assert (world.claimed_at, world.called_at) == (AHEAD, [DUE])
    assert leases == [DUE + 10 * SECOND + LEASE_MARGIN]
    assert world.calls[0].deadline == DUE + 10 * SECOND
    assert world.row(timer.job).state is State.SUCCEEDED
    assert world.journal.values["lag_ms"] == [0.0]
    assert "early" not in world.journal.counts


def test_a_store_that_is_slow_makes_it_no_later_than_its_answer(world: Moments):
    timer = exact()
    slow = world.watched(
        after=lambda call: world.clock.tick(70 * MILLISECOND if call == "ledger.claim" else NOON - NOON)
    )

    slow.work(Message(message_id="m1", body=encode_envelope([timer]), receipt=Receipt("arn:q", "m1"), receive_count=1))

    assert world.called_at == [DUE]


@pytest.mark.parametrize("before", [CLAIMED_AHEAD + MILLISECOND, SECOND])
def test_a_cancel_that_is_confirmed_before_the_claim_wins(world: Moments, before: timedelta):
    timer = exact()
    confirmed: list[bool] = []
    world.at[DUE - before] = lambda: confirmed.append(world.canceller().cancel(job_id_of(timer.job)))

    assert world.run(timer) == []

    assert confirmed == [True]
    assert world.calls == []
    assert world.row(timer.job).state is State.CANCELLED


@pytest.mark.parametrize("before", [CLAIMED_AHEAD - MILLISECOND, MILLISECOND])
def test_a_cancel_after_the_claim_is_not_confirmed_and_no_other_attempt_follows(world: Moments, before: timedelta):
    timer = exact()
    world.targets.answer = lambda *_: Failed("HTTP 500", "http_500")
    confirmed: list[bool] = []
    world.at[DUE - before] = lambda: confirmed.append(world.canceller().cancel(job_id_of(timer.job)))

    assert world.run(timer) == []

    assert confirmed == [False]
    assert world.called_at == [DUE]
    assert world.row(timer.job).state is State.CANCELLED


def test_one_whose_worker_dies_between_claim_and_instant_is_rescued_with_a_larger_fence(world: Moments):
    timer = exact(timeout=10 * SECOND)

    def die() -> None:
        raise DeathError

    world.at[DUE - MILLISECOND] = die
    with pytest.raises(DeathError):
        world.run(timer)
    assert world.row(timer.job).state is State.RUNNING
    world.clock.tick(10 * SECOND + LEASE_MARGIN + world.wheel.lease_skew + SECOND)

    assert world.run(timer) == []

    assert [call.fence for call in world.calls] == [2]
    assert world.row(timer.job).rescue_count == 1


def test_of_two_messages_of_it_one_calls(world: Moments):
    timer = exact()
    world.at[DUE - 50 * MILLISECOND] = lambda: world.run(timer)

    world.run(timer)

    assert world.called_at == [DUE]


@pytest.mark.parametrize(
    "timer",
    [
        a_timer(due_at=DUE),
        a_timer(due_at=DUE, precision=Precision.EXACT, attempt=2),
        a_timer(due_at=DUE, precision=Precision.EXACT, delivery=Delivery.AT_MOST_ONCE),
        a_timer(due_at=DUE, precision=Precision.EXACT, flows=(NamedFlow(key="mail"),)),
    ],
    ids=["default", "a retry", "at_most_once", "in a flow"],
)
def test_what_a_moment_could_change_is_claimed_at_its_instant(world: Moments, timer: Timer):
    world.run(timer)

    assert (world.claimed_at, world.called_at) == (DUE, [DUE])


def test_whether_a_fire_becomes_a_run_is_decided_at_its_instant(world: Moments):
    schedule = a_schedule(job=a_template(precision=Precision.EXACT))
    world.store(schedule)

    world.run(an_occurrence_timer(schedule, fire_at=DUE))

    assert (world.claimed_at, world.called_at) == (DUE, [DUE])


def test_one_of_a_tenant_with_a_cap_of_calls_is_claimed_at_its_instant(world: Moments):
    world.plans.plans["acme"] = TenantPlan(max_concurrency=1)

    world.run(exact())

    assert (world.claimed_at, world.called_at) == (DUE, [DUE])
