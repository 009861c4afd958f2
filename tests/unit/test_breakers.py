"""What workers make of a failing destination: each test has workers of its own over one store."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.job import Timer
from functions.domain.targets.breaker import MAX_OPEN_FOR, MIN_SMEAR, OPEN_FOR, Breaker, BreakerState
from functions.ports.targets import Failed, Outcome, Pending, Succeeded
from functions.services.targets.breakers import MOST_KNOWN, REFRESH_SECONDS, Breakers, Go, Park
from testkit.builders import LOCAL_WHEEL, NOON, a_breaker, a_timer
from testkit.fakes import FakeClock, InMemoryBreakerStore, RecordingJournal
from testkit.observed import Unreliable, Watched

HOST = "https://example.com"
SKEW = LOCAL_WHEEL.skew
LEASE = timedelta(seconds=15)
DOWN = Failed("503", "http_503")
FINE = Succeeded()
REFRESH = timedelta(seconds=REFRESH_SECONDS)

_tokens = itertools.count(1)


class World:
    """Workers that share a store and a clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store: Any = Unreliable(InMemoryBreakerStore())
        self.journal = RecordingJournal()
        self.chance = 0.0

    def worker(self) -> "Worker":
        return Worker(self)

    @property
    def row(self) -> Breaker | None:
        return self.store.rows.get(("acme", HOST))

    @property
    def events(self) -> list[str]:
        return [name for name, _ in self.journal.events]


class Worker:
    def __init__(self, world: World) -> None:
        self.world = world
        self.breakers = Breakers(
            clock=world.clock,
            breaker_store=world.store,
            journal=world.journal,
            token=lambda: f"token-{next(_tokens)}",
            jitter=lambda: world.chance,
            skew=SKEW,
        )

    def decide(self, timer: Timer | None = None) -> Go | Park:
        return self.breakers.decide(timer or a_timer(), lease_until=self.world.clock.now() + LEASE)

    def call(self, *outcomes: Outcome, **overrides: Any) -> None:
        """Calls that are admitted, with these outcomes."""
        for outcome in outcomes:
            timer = a_timer(**overrides)
            self.breakers.note(timer, self.go(timer), outcome)

    def go(self, timer: Timer | None = None) -> Go:
        decision = self.decide(timer)
        assert isinstance(decision, Go), decision
        return decision

    def probe(self) -> Go:
        decision = self.go()
        assert decision.probe is not None
        return decision

    def park(self) -> datetime:
        decision = self.decide()
        assert isinstance(decision, Park), decision
        return decision.until

    def answer(self, go: Go, outcome: Outcome) -> None:
        self.breakers.note(a_timer(), go, outcome)

    def release(self, go: Go) -> None:
        self.breakers.release(a_timer(), go)


def opened_by(worker: Worker, *, failure: Failed = DOWN) -> None:
    worker.call(*[failure] * 5)
    assert worker.world.row is not None


def one_that_waits(world: World) -> Worker:
    """It has opened the breaker, and the time of a probe has come."""
    worker = world.worker()
    opened_by(worker)
    world.clock.tick(OPEN_FOR)
    return worker


def two_that_wait(world: World) -> tuple[Worker, Worker]:
    """The first has opened the breaker, both know it, and the time of a probe has come."""
    first, second = world.worker(), world.worker()
    opened_by(first)
    second.call(DOWN)
    world.clock.tick(OPEN_FOR)
    return first, second


def test_a_healthy_destination_costs_neither_reads_nor_writes_nor_memory():
    world = World()
    worker = world.worker()

    worker.call(*[FINE] * 100, Pending(), Failed("404", "http_404", is_permanent=True, is_its_own=True))

    assert (world.store.reads, world.store.writes, world.journal.events) == (0, 0, [])
    assert len(worker.breakers._known) == 0


def test_five_failures_in_a_row_open_the_breaker():
    world = World()
    worker = world.worker()

    worker.call(*[DOWN] * 4)
    assert world.row is None
    worker.call(DOWN)

    assert world.row is not None
    assert (world.row.state, world.row.until) == (BreakerState.OPEN, NOON + OPEN_FOR)
    assert (world.row.opened_at, world.row.error_class) == (NOON, "http_503")
    assert world.journal.counts == {"breakers_opened": 1}


def test_an_open_breaker_parks_until_its_time():
    world = World()
    worker = world.worker()
    opened_by(worker)
    world.chance = 0.5
    timer = a_timer(tenant="acme", identity="bill-7")

    decision = worker.decide(timer)

    assert decision == Park(NOON + OPEN_FOR + MIN_SMEAR / 2, f"the breaker of {HOST} is open")


def test_what_the_destination_asked_for_is_waited():
    world = World()
    worker = world.worker()
    opened_by(worker, failure=replace(DOWN, retry_after=timedelta(minutes=2)))

    assert worker.park() == NOON + timedelta(minutes=2)


def test_successes_among_the_failures_keep_it_closed():
    world = World()

    world.worker().call(*[DOWN, FINE, FINE] * 20)

    assert world.row is None


@pytest.mark.parametrize(
    "outcome",
    [
        FINE,
        Pending(),
        Failed("422", "http_422", is_permanent=True, is_its_own=True),
        Failed("no", "not_allowed", is_permanent=True),
        Failed("no", "refused_address", is_permanent=True),
        Failed("gone", "payload_gone", is_permanent=True),
    ],
)
def test_what_says_nothing_against_the_destination_never_opens(outcome: Outcome):
    world = World()

    world.worker().call(*[outcome] * 20)

    assert (world.row, world.store.reads) == (None, 0)


def test_what_says_nothing_about_the_destination_breaks_no_row_of_failures():
    world = World()

    world.worker().call(*[DOWN] * 4, *[Failed("no", "not_allowed", is_permanent=True)] * 9, DOWN)

    assert world.row is not None


def test_a_permanent_failure_of_the_destination_counts():
    world = World()

    opened_by(world.worker(), failure=Failed("redirected", "redirect", is_permanent=True))


def test_tenants_and_destinations_fail_apart():
    world = World()
    worker = world.worker()
    opened_by(worker)

    others: list[dict[str, Any]] = [
        {"tenant": "globex"},
        {"target": f"{HOST}:8443/hook"},
        {"target": "handler:echo"},
    ]
    for other in others:
        assert worker.go(a_timer(**other)).probe is None
    assert isinstance(worker.decide(a_timer(target="https://EXAMPLE.com:443/other")), Park)


def test_a_target_that_cannot_be_called_is_not_for_the_breaker_to_judge():
    world = World()
    worker = world.worker()

    worker.call(*[DOWN] * 9, target="gopher://example.com")

    assert worker.go(a_timer(target="gopher://example.com")) == Go("")
    assert (world.store.reads, world.store.writes) == (0, 0)


def test_another_worker_learns_of_it_at_the_price_of_one_failed_call():
    world = World()
    opened_by(world.worker())
    other = world.worker()

    other.call(DOWN)

    assert other.park() == NOON + OPEN_FOR
    assert (world.store.writes, world.journal.counts["breakers_opened"]) == (1, 1)


def test_the_row_is_read_at_most_once_in_five_seconds():
    world = World()
    worker = world.worker()

    worker.call(*[DOWN, FINE, FINE] * 10)
    assert world.store.reads == 1
    world.clock.tick(REFRESH)
    worker.call(*[DOWN, FINE, FINE] * 10)

    assert world.store.reads == 2


def test_of_two_workers_that_trip_at_once_one_opens_and_both_know():
    world = World()
    first, second = world.worker(), world.worker()
    first.call(*[DOWN] * 4)
    second.call(*[DOWN] * 4)

    first.call(DOWN)
    row = world.row
    second.call(DOWN)

    assert world.row == row
    assert first.park() == second.park() == NOON + OPEN_FOR
    assert world.journal.counts["breakers_opened"] == 1


def test_calls_that_were_under_way_when_it_opened_do_not_open_it_again():
    world = World()
    worker = world.worker()
    late = [worker.go() for _ in range(9)]
    opened_by(worker)
    row = world.row

    for go in late:
        worker.answer(go, DOWN)

    assert (world.row, world.store.writes) == (row, 1)


def test_from_its_time_on_one_worker_becomes_the_probe_and_the_others_wait_for_its_lease():
    world = World()
    first, second = two_that_wait(world)

    probe = first.probe()

    assert world.row is not None
    assert (world.row.state, world.row) == (BreakerState.HALF_OPEN, probe.probe)
    assert first.park() == second.park() == world.clock.now() + LEASE


def test_a_probe_that_succeeds_closes_it_for_all():
    world = World()
    first, second = two_that_wait(world)

    first.answer(first.probe(), FINE)

    assert world.row is None
    assert first.go() == second.go() == Go(HOST)
    assert world.journal.counts["breakers_closed"] == 1


@pytest.mark.parametrize("outcome", [Pending(), Failed("422", "http_422", is_its_own=True)])
def test_a_probe_that_was_heard_closes_it_too(outcome: Outcome):
    world = World()
    worker = one_that_waits(world)

    worker.answer(worker.probe(), outcome)

    assert world.row is None


def test_what_failed_before_it_was_closed_counts_no_more():
    world = World()
    worker = one_that_waits(world)
    worker.answer(worker.probe(), FINE)

    worker.call(*[DOWN] * 4)

    assert world.row is None


def test_a_probe_that_fails_opens_it_for_twice_as_long():
    world = World()
    worker = world.worker()
    opened_by(worker)
    waits = []
    for _ in range(6):
        world.clock.tick(worker.park() - world.clock.now())
        worker.answer(worker.probe(), DOWN)
        waits.append((worker.park() - world.clock.now()) / OPEN_FOR)

    assert waits == [2, 4, 8, 16, MAX_OPEN_FOR / OPEN_FOR, MAX_OPEN_FOR / OPEN_FOR]
    assert world.journal.counts["breakers_opened"] == 1
    assert world.events.count("breaker_reopened") == 6


def test_a_probe_that_was_not_used_is_given_back_at_once():
    world = World()
    first, second = two_that_wait(world)

    first.release(first.probe())

    assert second.probe()


def test_a_probe_that_says_nothing_about_the_destination_is_given_back():
    world = World()
    worker = one_that_waits(world)

    worker.answer(worker.probe(), Failed("no", "not_allowed", is_permanent=True))

    assert world.row is not None
    assert world.row.open_for == OPEN_FOR
    assert worker.probe()


def test_giving_back_what_is_no_probe_asks_no_store():
    world = World()
    worker = world.worker()

    worker.release(worker.go())

    assert (world.store.reads, world.store.writes) == (0, 0)


def test_giving_a_probe_back_after_it_has_answered_changes_nothing():
    world = World()
    worker = one_that_waits(world)
    probe = worker.probe()
    worker.answer(probe, DOWN)
    row = world.row

    worker.release(probe)

    assert world.row == row
    assert worker.park() == world.clock.now() + 2 * OPEN_FOR


def test_a_probe_that_died_is_taken_over_when_its_lease_is_over_by_more_than_the_skew():
    world = World()
    dead, other = two_that_wait(world)
    dead.probe()

    world.clock.tick(LEASE)
    assert other.park() == world.clock.now() + SKEW + MILLISECOND
    world.clock.tick(SKEW)
    assert other.park() == world.clock.now() + MILLISECOND
    world.clock.tick(MILLISECOND)

    other.answer(other.probe(), FINE)
    assert world.row is None


@pytest.mark.parametrize("outcome", [FINE, DOWN])
def test_a_zombie_probe_that_reports_after_it_was_taken_over_changes_nothing(outcome: Outcome):
    world = World()
    zombie, other = two_that_wait(world)
    late = zombie.probe()
    world.clock.tick(LEASE + SKEW + MILLISECOND)
    probe = other.probe()

    zombie.answer(late, outcome)

    assert world.row is not None
    assert world.row == probe.probe
    assert "breakers_closed" not in world.journal.counts
    writes = world.store.writes
    assert zombie.park() == world.clock.now() + LEASE
    assert world.store.writes == writes


def test_a_zombie_that_failed_after_another_closed_it_does_not_open_it():
    world = World()
    zombie, other = two_that_wait(world)
    late = zombie.probe()
    world.clock.tick(LEASE + SKEW + MILLISECOND)
    other.answer(other.probe(), FINE)

    zombie.answer(late, DOWN)

    assert world.row is None
    assert zombie.go() == Go(HOST)


def test_a_reset_lets_calls_go_within_five_seconds():
    world = World()
    worker = world.worker()
    opened_by(worker, failure=replace(DOWN, retry_after=MAX_OPEN_FOR))
    worker.park()

    world.store.reset("acme", HOST)
    world.clock.tick(REFRESH)

    assert worker.go() == Go(HOST)


def test_a_reset_under_a_probe_stands_whatever_the_probe_finds():
    world = World()
    worker = one_that_waits(world)
    probe = worker.probe()
    world.store.reset("acme", HOST)

    worker.answer(probe, DOWN)

    assert world.row is None
    assert worker.go() == Go(HOST)


def test_an_open_breaker_is_read_at_most_once_in_five_seconds_however_many_jobs_it_parks():
    world = World()
    worker = world.worker()
    opened_by(worker)
    for _ in range(50):
        worker.park()
        world.clock.tick(SECOND / 5)

    # Once for the first failure, and once in the ten seconds after.
    assert world.store.reads == 2


def test_a_row_that_somebody_gave_back_meanwhile_is_probed_at_once():
    world = World()
    first, second = two_that_wait(world)
    first.release(first.probe())
    world.clock.tick(SECOND)

    # What the second has seen is the row from before the first probe.
    assert second.probe()


def test_a_row_of_yesterday_that_was_not_removed_yet_is_probed_like_any_other():
    world = World()
    world.store.rows["acme", HOST] = a_breaker(until=NOON - timedelta(days=1))
    worker = world.worker()

    worker.call(DOWN)

    worker.answer(worker.probe(), FINE)
    assert world.row is None


@pytest.mark.parametrize("fails", ["before", "after"])
def test_a_store_that_fails_leaves_a_breaker_closed_that_is_not_known_to_be_open(fails: str):
    world = World()
    worker = world.worker()
    world.store.fails = fails

    worker.call(*[DOWN] * 20)

    assert worker.go() == Go(HOST)
    assert set(world.events) == {"breaker_unknown"}


def test_a_store_that_fails_is_left_alone_for_five_seconds():
    world = World()
    worker = world.worker()
    world.store.fails = "before"

    worker.call(*[DOWN] * 50)
    assert world.events.count("breaker_unknown") == 1
    world.clock.tick(REFRESH)
    worker.call(*[DOWN] * 50)

    assert world.events.count("breaker_unknown") == 2


def test_an_open_breaker_stays_open_until_its_time_though_the_store_fails_and_then_counts_as_closed():
    world = World()
    worker = world.worker()
    opened_by(worker)
    world.store.fails = "before"

    world.clock.tick(OPEN_FOR - SECOND)
    assert worker.park() == NOON + OPEN_FOR
    world.clock.tick(SECOND)

    assert worker.go() == worker.go() == Go(HOST)
    assert world.events.count("breaker_unknown") == 1
    world.clock.tick(REFRESH)
    assert worker.go() == worker.go() == Go(HOST)
    assert world.events.count("breaker_unknown") == 2


def test_a_trip_whose_answer_was_lost_is_found_by_the_next():
    world = World()
    worker = world.worker()
    worker.call(*[DOWN] * 4)
    world.store.fails = "after"
    worker.call(DOWN)
    row = world.row
    world.store.fails = ""
    world.clock.tick(REFRESH)

    worker.call(DOWN)

    assert row is not None
    assert world.row == row
    assert worker.park() == row.until


def test_a_probe_whose_grant_was_lost_keeps_its_lease_and_calls_as_if_the_breaker_were_closed():
    world = World()
    worker, other = two_that_wait(world)
    world.store.fails = "after"

    assert worker.go() == Go(HOST)
    world.store.fails = ""

    assert other.park() == world.clock.now() + LEASE
    world.clock.tick(LEASE + SKEW + MILLISECOND)
    assert other.probe()


@pytest.mark.parametrize("fails", ["before", "after"])
@pytest.mark.parametrize("outcome", [FINE, DOWN])
def test_a_probe_whose_report_was_lost_is_followed_by_another(fails: str, outcome: Outcome):
    world = World()
    worker, other = two_that_wait(world)
    probe = worker.probe()
    world.store.fails = fails
    worker.answer(probe, outcome)
    world.store.fails = ""

    world.clock.tick(LEASE + SKEW + 2 * OPEN_FOR)

    other.answer(other.go(), FINE)
    assert world.row is None


def test_a_probe_that_saw_the_destination_work_lets_its_own_worker_go_though_the_store_fails():
    world = World()
    worker = one_that_waits(world)
    probe = worker.probe()
    world.store.fails = "before"

    worker.answer(probe, FINE)

    assert worker.go() == Go(HOST)


def test_the_threads_of_a_batch_give_one_probe():
    world, never = World(), threading.Event()

    def stall(_: str) -> None:
        """The others arrive while the first of them is answered."""
        never.wait(0.05)

    world.store = Watched(world.store, "breakers", stall, lambda _: None)
    worker = one_that_waits(world)
    ready = threading.Barrier(8)

    def decide(_: int) -> Go | Park:
        ready.wait()
        return worker.decide()

    with ThreadPoolExecutor(8) as pool:
        admissions = list(pool.map(decide, range(8)))

    assert [isinstance(decision, Go) for decision in admissions].count(True) == 1
    # One write opened it, and one made the probe: the other threads knew of it without asking.
    assert world.store.writes == 2


def test_of_many_failing_destinations_those_that_were_used_last_are_remembered():
    world = World()
    worker = world.worker()
    opened_by(worker)

    for number in range(MOST_KNOWN - 1):
        worker.call(DOWN, target=f"https://host-{number}.example.com")
    worker.park()
    worker.call(DOWN, target="https://one-more.example.com")
    assert worker.park() == NOON + OPEN_FOR
    for number in range(MOST_KNOWN):
        worker.call(DOWN, target=f"https://other-{number}.example.com")

    assert worker.go() == Go(HOST)
    assert len(worker.breakers._known) == MOST_KNOWN
