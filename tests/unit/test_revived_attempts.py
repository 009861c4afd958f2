"""An attempt whose message was lost, and an earlier message of the same job that comes again."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from functions.domain.far_ring.timer_record import encode_envelope
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.claims import LONG_OVERDUE, LedgerRow, lost_attempt, overdue_attempt
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.lifecycle import State
from functions.domain.targets.breaker import MIN_FAILURES
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.ready_queue import Rejected
from functions.ports.targets import Failed, Pending, Succeeded
from testkit.builders import NOON, a_timer
from testkit.scheduler import World, pass_time
from tests.unit.test_execute import a_message

LONG_AGO = NOON - LONG_OVERDUE - MILLISECOND


@pytest.mark.parametrize(
    ("row", "attempt"),
    [
        (LedgerRow(state=State.RETRYING, attempt=1, due_at=LONG_AGO), 2),
        (LedgerRow(state=State.RETRYING, attempt=4, due_at=LONG_AGO), 5),
        (LedgerRow(state=State.SCHEDULED, attempt=2, due_at=LONG_AGO), 2),
        (LedgerRow(state=State.RETRYING, attempt=1, due_at=LONG_AGO + MILLISECOND), None),
        (LedgerRow(state=State.RETRYING, attempt=1, due_at=LONG_AGO, parked_until=NOON), None),
        (LedgerRow(state=State.RETRYING, attempt=1, due_at=LONG_AGO, parked_until=LONG_AGO), 2),
        (LedgerRow(state=State.RUNNING, attempt=1, due_at=LONG_AGO), None),
        (LedgerRow(state=State.RUNNING, attempt=3, lease_until=LONG_AGO), 3),
        (LedgerRow(state=State.RUNNING, attempt=3, lease_until=LONG_AGO, held="{}"), 4),
        (LedgerRow(state=State.RUNNING, attempt=3, lease_until=LONG_AGO + MILLISECOND, held="{}"), None),
        (LedgerRow(state=State.FAILED, attempt=1, due_at=LONG_AGO), None),
        (LedgerRow(state=State.RETRYING, attempt=1), None),
        (None, None),
    ],
)
def test_only_an_attempt_that_should_have_come_long_ago_may_be_lost(row: LedgerRow | None, attempt: int | None):
    assert overdue_attempt(row, now=NOON) == attempt


@pytest.fixture
def world() -> World:
    """A job has failed once, and the message of its second attempt was lost."""
    world = World()
    world.targets.answer = lambda *_: Failed("down", "http_503")
    world.work(a_message(a_timer(identity="x")))
    assert world.row(a_timer(identity="x").job).state is State.RETRYING
    world.ready.messages.clear()
    world.targets.answer = lambda *_: Succeeded("{}")
    return world


def test_a_message_of_the_first_attempt_revives_the_second(world: World):
    world.clock.tick(timedelta(hours=1))

    assert world.work(a_message(a_timer(identity="x"), "again")) == []
    world.receive_and_work()

    row = world.row(a_timer(identity="x").job)
    assert (row.state, row.attempt) == (State.SUCCEEDED, 2)
    assert [call.attempt for call in world.calls] == [1, 2]
    assert [event["attempt"] for event in world.events("revived")] == [2]


def test_what_is_revived_beside_its_own_message_still_runs_once(world: World):
    world.clock.tick(timedelta(hours=1))
    world.work(a_message(a_timer(identity="x"), "again"))

    own = a_timer(identity="x").revived(attempt=2, due_at=world.clock.now())
    world.work(a_message(own, "its own"))
    world.receive_and_work()

    assert [call.attempt for call in world.calls] == [1, 2]


def pause(world: World) -> Callable[[], object]:
    world.plans.plans["acme"] = TenantPlan(status=TenantStatus.PAUSED)
    return world.plans.plans.clear


def let_nobody_sit(world: World) -> Callable[[], object]:
    world.plans.plans["acme"] = TenantPlan(max_concurrency=1)
    world.limiter.take("acme", limit=1, lease_until=world.clock.now() + timedelta(hours=1))
    return world.plans.plans.clear


def break_its_destination(world: World) -> Callable[[], object]:
    world.targets.answer = lambda *_: Failed("down", "http_503")
    world.work(*(a_message(replace(a_timer(), due_at=world.clock.now()), f"f{n}") for n in range(MIN_FAILURES)))
    world.ready.messages.clear()
    world.targets.effects.clear()
    return lambda: setattr(world.targets, "answer", lambda *_: Succeeded("{}"))


@pytest.mark.parametrize("hindrance", [pause, let_nobody_sit, break_its_destination])
def test_a_message_that_would_be_parked_revives_it_too(
    world: World, hindrance: Callable[[World], Callable[[], object]]
):
    world.clock.tick(timedelta(hours=1))
    relieve = hindrance(world)

    assert world.work(a_message(a_timer(identity="x"), "again")) == []

    assert [event["attempt"] for event in world.events("revived")] == [2]
    relieve()
    pass_time(world, until=world.clock.now() + timedelta(hours=2))
    row = world.row(a_timer(identity="x").job)
    assert (row.state, row.attempt) == (State.SUCCEEDED, 2)


def test_a_message_stays_that_could_revive_nothing(world: World):
    world.clock.tick(timedelta(hours=1))
    pause(world)
    world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)
    world.timers.unwritten = lambda _: True

    assert world.work(a_message(a_timer(identity="x"), "again")) == ["again"]


def test_a_message_that_its_workers_died_of_revives_it_too(world: World):
    world.clock.tick(timedelta(hours=1))
    body = encode_envelope([a_timer(identity="x")])

    assert world.burier().bury(body, message_id="m", seen_at=world.clock.now(), receive_count=10)
    world.receive_and_work()

    assert [event["attempt"] for event in world.events("revived")] == [2]
    assert world.row(a_timer(identity="x").job).state is State.SUCCEEDED
    assert world.buried == []


def test_a_duplicate_that_comes_in_time_revives_nothing(world: World):
    due_at: datetime | None = world.row(a_timer(identity="x").job).due_at
    assert due_at is not None
    world.clock.tick(due_at + LONG_OVERDUE - world.clock.now())

    world.work(a_message(a_timer(identity="x"), "again"))

    assert world.ready.messages == {}
    assert world.events("revived") == []


def test_a_revived_attempt_is_granted_and_waits_for_nothing():
    watchdog = replace(a_timer(attempt=2), is_granted=False, not_before=NOON + timedelta(hours=1))

    revived = watchdog.revived(attempt=2, due_at=NOON)

    assert (revived.is_granted, revived.wakes_at, revived.attempt) == (True, NOON, 2)
    assert str(job_id_of(revived.job)) == str(job_id_of(watchdog.job))
    assert revived.backoff >= SECOND


def test_a_message_of_the_first_attempt_revives_a_second_whose_worker_has_died_with_its_message(world: World):
    job = a_timer(identity="x").job
    world.clock.tick(timedelta(minutes=1))
    second = a_timer(identity="x").revived(attempt=2, due_at=world.clock.now())
    world.ledger.claim(second, owner="dead", lease_until=world.clock.now() + SECOND, now=world.clock.now())
    world.clock.tick(timedelta(hours=1))

    world.work(a_message(a_timer(identity="x"), "again"))
    world.receive_and_work()

    row = world.row(job)
    assert (row.state, row.attempt, row.rescue_count) == (State.SUCCEEDED, 2, 1)


@pytest.mark.parametrize(("attempts", "calls"), [(2, [1, 2]), (1, [1])])
def test_a_message_of_a_run_whose_target_fell_silent_brings_its_watchdog_back(attempts: int, calls: list[int]):
    world = World()
    timer = a_timer(retry=RetryPolicy(attempts=attempts))
    world.targets.answer = lambda *_: Pending()
    world.work(a_message(timer))
    world.ready.messages.clear()
    world.clock.tick(timedelta(hours=1))
    world.targets.answer = lambda *_: Succeeded("{}")

    world.work(a_message(timer, "again"))
    world.receive_and_work()

    assert [call.attempt for call in world.calls] == calls
    assert world.row(timer.job).state is (State.SUCCEEDED if attempts > 1 else State.FAILED)
    assert [event["attempt"] for event in world.events("revived")] == [2]


POLICY = RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=SECOND, max_age=timedelta(hours=1))


class TestReplayed:
    """A job that had failed for good was replayed a day later, by then expired, and its message was lost."""

    @pytest.fixture
    def first(self) -> Timer:
        return a_timer(identity="x", retry=POLICY, expires_at=NOON + timedelta(hours=2))

    @pytest.fixture
    def world(self, first: Timer) -> World:
        world = World()
        world.targets.answer = lambda *_: Failed("down", "http_503", is_permanent=True)
        world.work(a_message(first))
        world.clock.tick(timedelta(days=1))
        (letter,) = world.buried
        assert letter.timer is not None
        now = world.clock.now()
        replayed = letter.timer.replayed(due_at=now)
        world.ledger.replay(replayed, far=replayed, job_id=letter.job_id, fence=letter.fence, owner="operator", now=now)
        world.placer.place([replayed])
        return world

    def test_a_message_of_before_revives_it_with_the_budget_of_its_replay(self, world: World, first: Timer):
        (replayed,) = world.ready.sent
        world.ready.messages.clear()
        world.clock.tick(LONG_OVERDUE + SECOND)

        world.work(a_message(first, "again"))

        revived = world.ready.sent[-1]
        assert revived.job.expires_at is None
        assert (revived.attempt, revived.spent, revived.counted_from) == (3, 2, replayed.due_at)
        world.targets.answer = lambda *_: Succeeded("{}")
        world.receive_and_work()
        assert (world.row(first.job).state, world.row(first.job).attempt) == (State.SUCCEEDED, 3)

    def test_so_it_does_when_it_has_been_tried_again_since(self, world: World, first: Timer):
        world.targets.answer = lambda *_: Failed("down", "http_503")
        world.receive_and_work()
        world.ready.messages.clear()
        world.clock.tick(LONG_OVERDUE + timedelta(minutes=1))

        world.work(a_message(first, "again"))

        revived = world.ready.sent[-1]
        assert (revived.attempt, revived.spent, revived.job.expires_at) == (4, 2, None)
        assert revived.next_attempt(failed_at=world.clock.now(), jitter=0) is not None

    def test_a_message_of_the_replay_itself_keeps_what_a_pause_has_granted_it(self, world: World):
        (replayed,) = world.ready.sent
        granted = replace(replayed, counted_from=NOON + timedelta(days=9))
        row = LedgerRow(state=State.RETRYING, attempt=3, due_at=LONG_AGO, spent=2, counted_from=LONG_AGO)

        revived = lost_attempt(granted, row, now=NOON)

        assert revived is not None
        assert (revived.attempt, revived.spent, revived.counted_from) == (4, 2, granted.counted_from)


def test_a_row_of_a_replay_that_kept_no_budget_leaves_that_of_the_message():
    revived = lost_attempt(a_timer(), LedgerRow(state=State.RETRYING, attempt=2, due_at=LONG_AGO), now=NOON)

    assert revived is not None
    assert (revived.attempt, revived.spent, revived.counted_from) == (3, 0, None)
