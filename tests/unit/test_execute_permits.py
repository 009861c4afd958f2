"""Jobs of a tenant whose concurrency is capped: a permit for each call, which comes back whatever happens."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.claims import LEASE_MARGIN
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.lifecycle import State
from functions.domain.targets.breaker import MIN_FAILURES
from functions.domain.tenants.plan import TenantPlan
from functions.ports.targets import Failed, Outcome, Pending, Succeeded
from testkit.builders import LOCAL_WHEEL, NOON, a_schedule, a_timer, an_occurrence_timer
from testkit.observed import CrashError, DeathError, Watched
from testkit.scheduler import World
from tests.unit.test_execute import a_message

TIMEOUT = timedelta(seconds=10)
OVER = TIMEOUT + LEASE_MARGIN + LOCAL_WHEEL.skew + SECOND
OUTCOMES = [Succeeded(), Pending(), Failed("503"), Failed("no", is_permanent=True)]


@pytest.fixture
def world() -> World:
    """One whose tenant acme may have one call at a time."""
    world = World()
    cap(world, 1)
    return world


def cap(world: World, limit: float) -> None:
    world.plans.plans["acme"] = TenantPlan(max_concurrency=limit)


def a_capped_timer(**overrides: Any) -> Timer:
    return a_timer(**{"timeout": TIMEOUT, **overrides})


def work_meanwhile(world: World, *timers: Timer) -> None:
    """Others come while a target is being called, each while the one before is."""
    waiting = iter(timers)

    def answer(*_: object) -> Outcome:
        following = next(waiting, None)
        if following is not None:
            world.work(a_message(following, str(job_id_of(following.job))))
        return Succeeded()

    world.targets.answer = answer


def fail_at(world: World, call: str, error: type[BaseException], *, after: bool = False) -> None:
    """The first of these calls fails, or its worker dies there."""
    calls: list[str] = []

    def strike(name: str) -> None:
        if name == call and not calls:
            calls.append(name)
            raise error

    port = call.partition(".")[0]
    hooks: dict[str, Callable[[str], None]] = {
        "before": strike if not after else lambda _: None,
        "after": strike if after else lambda _: None,
    }
    setattr(world, port, Watched(getattr(world, port), port, **hooks))


def test_a_tenant_without_a_cap_costs_nothing():
    world = World()

    world.work(a_message(a_capped_timer()))

    assert len(world.calls) == 1
    assert (world.permits.writes, world.permits.reads) == (0, 0)


def test_a_call_takes_a_permit_and_gives_it_back(world: World):
    held: list[int] = []
    world.targets.answer = lambda *_: held.append(len(world.permits.rows)) or Succeeded()

    world.work(a_message(a_capped_timer()))

    assert (held, world.permits.rows) == ([1], {})
    assert (world.permits.writes, world.permits.reads) == (2, 0)


def test_a_job_that_finds_no_permit_waits_on_without_an_attempt(world: World):
    first, second = a_capped_timer(), a_capped_timer()
    work_meanwhile(world, second)

    assert world.work(a_message(first)) == []

    assert [call.job_id for call in world.calls] == [str(job_id_of(first.job))]
    (parked,) = world.ready.sent
    assert parked == replace(second, due_at=parked.due_at)
    assert parked.due_at > NOON
    row = world.row(second.job)
    assert (row.state, row.attempt, row.fence, row.parked_until) == (State.SCHEDULED, 0, 0, parked.due_at)
    assert (world.journal.counts["parked_by_cap"], "parked" in world.journal.counts) == (1, False)


def test_a_job_that_found_no_permit_runs_when_it_comes_back(world: World):
    second = a_capped_timer()
    work_meanwhile(world, second)
    world.work(a_message(a_capped_timer()))
    (parked,) = world.ready.sent
    world.clock.tick(parked.due_at - NOON)

    world.work(a_message(parked, "again"))

    assert world.row(second.job).state is State.SUCCEEDED
    assert world.row(second.job).attempt == 1


def test_no_more_calls_run_at_the_same_time_than_the_cap_says(world: World):
    cap(world, 3)
    timers = [a_capped_timer() for _ in range(6)]
    work_meanwhile(world, *timers[1:])

    world.work(a_message(timers[0]))

    assert len(world.calls) == 3
    assert len(world.ready.sent) == 1
    assert world.permits.rows == {}


@pytest.mark.parametrize("delivery", Delivery)
def test_every_delivery_has_permits(world: World, delivery: Delivery):
    second = a_capped_timer(delivery=delivery)
    work_meanwhile(world, second)

    world.work(a_message(a_capped_timer(delivery=delivery)))

    assert len(world.calls) == 1
    assert [timer.job for timer in world.ready.sent] == [second.job]
    assert world.permits.rows == {}


def test_jobs_of_another_tenant_are_not_in_the_way(world: World):
    work_meanwhile(world, a_capped_timer(tenant="globex"))

    world.work(a_message(a_capped_timer()))

    assert len(world.calls) == 2


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
@pytest.mark.parametrize("delivery", Delivery)
def test_a_permit_comes_back_whatever_the_target_answers(world: World, outcome: Outcome, delivery: Delivery):
    world.targets.answer = lambda *_: outcome

    world.work(a_message(a_capped_timer(delivery=delivery)))

    assert len(world.calls) == 1
    assert world.permits.writes == 2
    assert world.permits.rows == {}


@pytest.mark.parametrize("call", ["ledger.claim", "ledger.settle", "permits.leases"])
def test_a_permit_comes_back_when_something_fails_around_the_call(world: World, call: str):
    fail_at(world, call, CrashError)
    second = a_capped_timer()
    work_meanwhile(world, second)

    world.work(a_message(a_capped_timer()))

    assert world.journal.counts["returned"] == 1
    assert world.permits.rows == {}


def test_a_permit_comes_back_when_the_claim_is_refused(world: World):
    timer = a_capped_timer()
    world.ledger.cancel(job_id_of(timer.job), owner="op", now=NOON)

    world.work(a_message(timer))

    assert (world.calls, world.permits.rows, world.permits.writes) == ([], {}, 2)


def test_a_fire_that_is_skipped_gives_its_permit_back(world: World):
    world.work(a_message(an_occurrence_timer(a_schedule())))  # a schedule that is deleted

    assert (world.calls, world.permits.rows, world.permits.writes) == ([], {}, 2)


def test_what_calls_nothing_needs_no_permit(world: World):
    expired = a_capped_timer(expires_at=NOON)

    world.work(a_message(expired))

    assert world.row(expired.job).state is State.EXPIRED
    assert world.permits.writes == 0


def test_a_job_whose_destination_is_left_alone_takes_no_permit(world: World):
    world.targets.answer = lambda *_: Failed("503", "http_503")
    for number in range(MIN_FAILURES):
        world.work(a_message(a_capped_timer(), f"f{number}"))
    writes = world.permits.writes

    world.work(a_message(a_capped_timer()))

    assert world.journal.counts["parked"] == 1
    assert world.permits.writes == writes


def test_a_probe_that_finds_no_permit_leaves_the_probe_to_another(world: World):
    world.targets.answer = lambda *_: Failed("503", "http_503")
    for number in range(MIN_FAILURES):
        world.work(a_message(a_capped_timer(), f"f{number}"))
    world.clock.tick(timedelta(minutes=2))
    taken = world.limiter.take("acme", limit=1, lease_until=world.clock.now() + TIMEOUT)
    assert taken is not None
    world.work(a_message(a_capped_timer(), "no permit"))
    world.limiter.give_back(taken)
    world.targets.answer = lambda *_: Succeeded()

    world.work(a_message(a_capped_timer(), "probe"))

    assert world.breaker_store.rows == {}


def test_a_worker_that_dies_right_after_it_took_a_permit_gives_it_back_by_its_lease(world: World):
    timer, other = a_capped_timer(), a_capped_timer()
    fail_at(world, "permits.take", DeathError, after=True)
    with pytest.raises(DeathError):
        world.work(a_message(timer))

    world.work(a_message(other))
    assert world.calls == []
    world.clock.tick(OVER)
    world.work(a_message(timer, receive_count=2), a_message(world.ready.sent[-1], "again"))

    assert {world.row(job).state for job in (timer.job, other.job)} == {State.SUCCEEDED}
    assert world.permits.rows == {}


def test_a_worker_that_dies_in_its_call_gives_its_permit_back_by_its_lease(world: World):
    timer, other = a_capped_timer(), a_capped_timer()

    def die(*_: object) -> Outcome:
        raise DeathError

    world.targets.answer = die
    with pytest.raises(DeathError):
        world.work(a_message(timer))
    world.targets.answer = lambda *_: Succeeded()

    world.clock.tick(OVER - 2 * SECOND)
    world.work(a_message(other))
    assert len(world.calls) == 1  # its target may still be at it
    world.clock.tick(2 * SECOND)
    world.work(a_message(timer, receive_count=2))

    assert world.row(timer.job).state is State.SUCCEEDED
    assert world.permits.rows == {}


def test_a_release_that_is_lost_changes_nothing_for_its_job_and_the_lease_does_it(world: World):
    timer = a_capped_timer()
    fail_at(world, "permits.give_back", CrashError)

    assert world.work(a_message(timer)) == []
    assert world.row(timer.job).state is State.SUCCEEDED
    assert len(world.events("permit_not_given_back")) == 1

    world.work(a_message(a_capped_timer(), "too soon"))
    world.clock.tick(OVER)
    world.work(a_message(a_capped_timer(), "after"))

    assert len(world.calls) == 2


def test_a_store_of_permits_that_fails_returns_the_message_and_claims_nothing(world: World):
    timer = a_capped_timer()
    fail_at(world, "permits.take", CrashError)

    assert world.work(a_message(timer)) == ["m1"]
    assert (world.ledger.rows, world.calls, world.ready.sent) == ({}, [], [])

    assert world.work(a_message(timer, receive_count=2)) == []
    assert world.row(timer.job).state is State.SUCCEEDED


def test_a_store_of_permits_that_fails_leaves_the_probe_to_another(world: World):
    world.targets.answer = lambda *_: Failed("503", "http_503")
    for number in range(MIN_FAILURES):
        world.work(a_message(a_capped_timer(), f"f{number}"))
    world.clock.tick(timedelta(minutes=2))
    world.targets.answer = lambda *_: Succeeded()
    fail_at(world, "permits.take", CrashError)
    del world.limiter  # of another process
    world.work(a_message(a_capped_timer(), "fails"))

    world.work(a_message(a_capped_timer(), "probe"))

    assert world.breaker_store.rows == {}


def test_a_job_whose_permit_would_be_over_before_its_call_does_not_run(world: World):
    timer = a_capped_timer()
    world.permits = Watched(  # pyright: ignore[reportAttributeAccessIssue]
        world.permits,
        "permits",
        lambda _: None,
        lambda name: world.clock.tick(LEASE_MARGIN + SECOND * ("take" in name)),
    )

    assert world.work(a_message(timer)) == ["m1"]

    assert world.calls == []
    assert (world.row(timer.job).state, world.permits.rows) == (State.SCHEDULED, {})


def test_when_the_cap_shrinks_the_permits_above_it_are_not_taken_any_more(world: World):
    cap(world, 3)
    first, second, third = (a_capped_timer() for _ in range(3))

    def answer(*_: object) -> Outcome:
        if len(world.calls) == 1:
            cap(world, 1)
            world.work(a_message(second, "second"), a_message(third, "third"))
        return Succeeded()

    world.targets.answer = answer
    world.work(a_message(first))

    assert len(world.calls) == 1
    assert [timer.job for timer in world.ready.sent] == [second.job, third.job]


def test_a_cap_that_is_lifted_lets_everything_through(world: World):
    taken = world.limiter.take("acme", limit=1, lease_until=NOON + TIMEOUT)
    assert taken is not None
    cap(world, float("inf"))

    world.work(a_message(a_capped_timer()))

    assert len(world.calls) == 1


def test_waiting_for_a_permit_never_makes_a_dead_letter(world: World):
    timer = a_capped_timer(retry=RetryPolicy(max_age=SECOND))
    world.clock.tick(timedelta(days=20))
    taken = world.limiter.take("acme", limit=1, lease_until=world.clock.now() + TIMEOUT)
    assert taken is not None

    world.work(a_message(timer))

    assert world.buried == []
    assert world.row(timer.job).state is State.SCHEDULED


def test_a_job_that_has_ended_does_not_go_round_for_a_permit(world: World):
    timer = a_capped_timer()
    world.ledger.cancel(job_id_of(timer.job), owner="op", now=NOON)
    taken = world.limiter.take("acme", limit=1, lease_until=NOON + TIMEOUT)
    assert taken is not None

    assert world.work(a_message(timer)) == []
    assert world.ready.sent == []
    assert world.journal.counts == {"duplicates_dropped": 1}


def test_many_jobs_that_wait_for_a_permit_are_spread_over_both_comes_due(world: World):
    taken = world.limiter.take("acme", limit=1, lease_until=NOON + TIMEOUT)
    assert taken is not None
    for number in range(100):
        world.jitter = number / 100
        world.work(a_message(a_capped_timer(), f"w{number}"))

    near = [timer.due_at for timer in world.ready.sent]
    far = [timer.due_at for timers in world.timers.puts for timer in timers]
    assert 20 < len(near) < 40
    assert len(near) + len(far) == 100
    assert len({*near, *far}) == 100
    assert min(far) >= NOON + LOCAL_WHEEL.guard + 10 * SECOND - MILLISECOND


def test_all_jobs_of_a_capped_tenant_run_in_the_end(world: World):
    cap(world, 2)
    timers = [a_capped_timer() for _ in range(30)]
    depth, most = 0, 0

    def answer(*_: object) -> Outcome:
        nonlocal depth, most
        depth, most = depth + 1, max(most, depth + 1)
        if depth < 4:
            world.receive_and_work()
        depth -= 1
        return Succeeded()

    world.targets.answer = answer
    world.placer.place(timers)
    for number in range(2_000):
        world.jitter = number * 0.37 % 1
        world.clock.tick(SECOND)
        world.receive_and_work()
        if number % 60 == 0:
            world.scan(0)
            world.scan(1)

    assert {world.row(timer.job).state for timer in timers} == {State.SUCCEEDED}
    assert len(world.calls) == 30
    assert most == 2
    assert world.permits.rows == {}
