"""Permits are found cheaply, never given twice, and cannot leak."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.targets.concurrency import Permit
from functions.services.targets.concurrency_limiter import MOST_CROWDS, ConcurrencyLimiter
from testkit.builders import LOCAL_WHEEL
from testkit.fakes import FakeClock, InMemoryPermitStore, RecordingJournal

LEASE = timedelta(seconds=30)


class Office:
    """A store of permits, and the limiters of any number of processes. chances: what is random, in order."""

    def __init__(self, *chances: float) -> None:
        self.clock = FakeClock()
        self.store = InMemoryPermitStore()
        self.journal = RecordingJournal()
        self._chances: Iterator[float] = iter(chances)
        self._tokens = iter(range(1_000_000))
        self.limiter = self.another()

    def another(self) -> ConcurrencyLimiter:
        return ConcurrencyLimiter(
            wheel=LOCAL_WHEEL,
            clock=self.clock,
            permits=self.store,
            journal=self.journal,
            token=lambda: f"token-{next(self._tokens)}",
            jitter=lambda: next(self._chances, 0.0),
        )

    def take(self, *, limit: int, limiter: ConcurrencyLimiter | None = None) -> Permit | None:
        return (limiter or self.limiter).take("acme", limit=limit, lease_until=self.clock.now() + LEASE)


@pytest.fixture
def office() -> Office:
    return Office()


def test_the_first_permit_costs_one_write(office: Office):
    assert office.take(limit=2) is not None
    assert (office.store.writes, office.store.reads) == (1, 0)


def test_there_are_as_many_permits_as_the_limit_says(office: Office):
    permits = [office.take(limit=3) for _ in range(4)]

    assert sorted(permit.number for permit in permits if permit) == [0, 1, 2]
    assert permits[3] is None


def test_no_permit_costs_one_write_and_one_query(office: Office):
    office.take(limit=1)
    before = office.store.writes

    assert office.take(limit=1) is None
    assert (office.store.writes - before, office.store.reads) == (1, 1)


def test_a_permit_whose_lease_may_still_hold_is_not_tried(office: Office):
    for _ in range(3):
        office.take(limit=3)
    office.clock.tick(LEASE + LOCAL_WHEEL.skew)
    before = office.store.writes

    assert office.take(limit=3) is None
    assert office.store.writes - before == 1


def test_a_permit_that_was_refused_is_not_tried_again_though_it_is_reported_to_be_free(office: Office):
    office.take(limit=1)
    office.store.leases = lambda *_, **__: {}  # pyright: ignore[reportAttributeAccessIssue]
    before = office.store.writes

    assert office.take(limit=1) is None
    assert office.store.writes - before == 1


def test_a_free_permit_among_many_is_found_with_one_query(office: Office):
    for _ in range(999):
        office.take(limit=1_000)
    writes, reads = office.store.writes, office.store.reads

    assert office.take(limit=1_000) is not None
    assert (office.store.writes - writes, office.store.reads - reads) == (2, 1)


def test_each_permit_has_an_owner_of_its_own(office: Office):
    permits = [office.take(limit=2) for _ in range(2)]

    assert len({permit.owner for permit in permits if permit}) == 2


def test_two_processes_that_see_the_same_free_permit_do_not_both_get_it():
    office = Office(0.0, 0.0, 0.0, 0.0)
    other = office.another()
    office.take(limit=2)
    leases = office.store.leases("acme", limit=2)
    assert office.take(limit=2, limiter=other) is not None
    office.store.leases = lambda *_, **__: leases  # pyright: ignore[reportAttributeAccessIssue]

    assert office.take(limit=2) is None


def test_a_permit_whose_process_died_is_free_when_its_lease_is_over(office: Office):
    assert office.take(limit=1) is not None
    office.clock.tick(LEASE + LOCAL_WHEEL.skew)
    assert office.take(limit=1) is None

    office.clock.tick(MILLISECOND)

    assert office.take(limit=1, limiter=office.another()) is not None


def test_a_permit_that_is_given_back_is_free_at_once(office: Office):
    permit = office.take(limit=1)
    assert permit is not None

    office.limiter.give_back(permit)

    assert office.take(limit=1) is not None


def test_a_release_that_comes_late_leaves_the_next_holder_his_permit(office: Office):
    permit = office.take(limit=1)
    assert permit is not None
    office.clock.tick(LEASE + LOCAL_WHEEL.skew + MILLISECOND)
    assert office.take(limit=1) is not None

    office.limiter.give_back(permit)

    assert office.take(limit=1) is None


def test_permits_above_a_cap_that_has_shrunk_are_not_taken_any_more(office: Office):
    permits = [office.take(limit=3) for _ in range(3)]
    for permit in permits:
        assert permit is not None
        if permit.number > 0:
            office.limiter.give_back(permit)

    assert office.take(limit=1) is None
    assert office.take(limit=2) is not None


def test_a_release_that_fails_is_reported_and_raises_nothing(office: Office):
    permit = office.take(limit=1)
    assert permit is not None

    def fail(_: Permit) -> None:
        raise TimeoutError

    office.store.give_back = fail  # pyright: ignore[reportAttributeAccessIssue]
    office.limiter.give_back(permit)

    assert office.journal.events == [("permit_not_given_back", {"tenant": "acme", "error": "TimeoutError"})]


def test_waits_grow_while_jobs_are_turned_away_and_shrink_again_later():
    office = Office(*[0.5] * 1_000)
    waits = [office.limiter.wait("acme", limit=1) for _ in range(100)]
    office.clock.tick(timedelta(hours=1))

    assert waits == sorted(waits)
    assert waits[-1] > LOCAL_WHEEL.guard > waits[0]
    assert office.limiter.wait("acme", limit=1) == waits[0]


def test_each_tenant_has_a_crowd_of_its_own(office: Office):
    for _ in range(100):
        office.limiter.wait("acme", limit=1)

    assert office.limiter.wait("globex", limit=1) < 6 * SECOND


def test_a_process_remembers_the_crowds_of_so_many_tenants_and_no_more(office: Office):
    for _ in range(100):
        office.limiter.wait("acme", limit=1)
    for number in range(MOST_CROWDS):
        office.limiter.wait(f"tenant-{number}", limit=1)

    assert office.limiter.wait("acme", limit=1) < 6 * SECOND
