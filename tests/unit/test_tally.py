"""What a process counts of its tenants, and when it writes it down."""

from datetime import timedelta
from typing import Any

from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.domain.tenants.usage import Usage
from functions.services.telemetry.usage import ENOUGH_JOBS, MOST_WRITES, OLD, QUIET_JOBS
from testkit.fakes import FakeClock, InMemoryUsageStore
from testkit.observed import Unreliable
from testkit.scheduler import World

TODAY = FakeClock().now().date()
JOB = Usage(submitted=1)


class Process(World):
    def __init__(self) -> None:
        super().__init__()
        self.used: Any = Unreliable(InMemoryUsageStore())
        self.tally = self.a_tally()

    def add(self, jobs: int, tenant: str = "acme") -> None:
        for _ in range(jobs):
            self.tally.add(tenant, JOB)

    def written(self, tenant: str = "acme") -> int:
        return sum(usage.submitted for (owner, _), usage in self.used.rows.items() if owner == tenant)

    def make_busy(self) -> None:
        self.add(QUIET_JOBS, "umbrella")


def test_a_quiet_process_writes_at_once():
    process = Process()
    process.add(QUIET_JOBS - 1)

    process.tally.flush()

    assert process.written() == QUIET_JOBS - 1


def test_a_busy_process_waits_until_a_count_is_worth_a_write():
    process = Process()
    process.add(ENOUGH_JOBS - 1)
    process.tally.flush()
    assert process.used.writes == 0

    process.add(1)
    process.tally.flush()

    assert (process.written(), process.used.writes) == (ENOUGH_JOBS, 1)


def test_a_busy_process_writes_what_is_old():
    process = Process()
    process.add(3)
    process.clock.tick(OLD - timedelta(seconds=1))
    process.make_busy()
    process.tally.flush()
    assert process.written() == 0

    process.clock.tick(timedelta(seconds=1))
    process.tally.flush()

    assert (process.written(), process.written("umbrella")) == (3, 0)


def test_a_process_is_quiet_again_after_a_minute():
    process = Process()
    process.make_busy()
    process.tally.flush()
    process.clock.tick(OLD)
    process.add(1)

    process.tally.flush()

    assert process.written() == 1


def test_what_is_written_is_not_written_again():
    process = Process()
    process.add(1)
    process.tally.flush()

    process.tally.flush()

    assert (process.written(), process.used.writes) == (1, 1)


def test_a_day_has_what_was_counted_on_it():
    process = Process()
    process.add(2)
    process.clock.tick(timedelta(days=1))
    process.add(3)

    process.tally.flush()

    assert {day: usage.submitted for (_, day), usage in process.used.rows.items()} == {
        TODAY: 2,
        TODAY + timedelta(days=1): 3,
    }


def test_what_could_not_be_written_is_written_with_the_next_and_nobody_fails():
    process = Process()
    process.add(1)
    process.add(2, "umbrella")
    process.used.fails = "before"
    process.tally.flush()
    process.add(4)

    process.used.fails = ""
    process.tally.flush()

    assert (process.written(), process.written("umbrella")) == (5, 2)
    ((name, keys),) = process.journal.events
    assert (name, keys["tenant"]) == ("usage_not_written", "acme")
    assert str(keys["error"]).startswith("TimeoutError at functions.services.telemetry.usage:")


def test_a_flush_makes_a_bounded_number_of_writes_and_the_oldest_go_first():
    process = Process()
    for number in range(MOST_WRITES + 1):
        process.add(1, f"t{number}")
        process.clock.tick(timedelta(seconds=1))
    process.clock.tick(OLD)

    process.tally.flush()
    assert process.used.writes == MOST_WRITES
    assert process.written(f"t{MOST_WRITES}") == 0

    process.tally.flush()
    assert process.written(f"t{MOST_WRITES}") == 1


def test_what_is_only_units_is_written_too():
    process = Process()
    process.tally.add("acme", Usage(units=2))

    process.tally.flush()

    assert process.used.rows["acme", TODAY] == Usage(units=2)


def test_what_was_counted_of_a_tenant_does_not_come_back_behind_its_deletion():
    process = Process()
    process.add(3)
    process.add(2, "umbrella")
    process.plans.plans["acme"] = TenantPlan(status=TenantStatus.DELETED)

    process.tally.flush()
    process.plans.plans.clear()
    process.tally.flush()

    assert (process.written(), process.written("umbrella")) == (0, 2)


def test_a_slow_store_is_not_asked_for_all_that_is_due():
    process = Process()
    for tenant in ("acme", "globex", "umbrella"):
        process.add(1, tenant)
    add = process.used.add

    def slowly(*given: Any) -> None:
        process.clock.tick(timedelta(seconds=1))
        add(*given)

    process.used.add = slowly
    process.tally.flush()
    assert process.written("acme") + process.written("globex") + process.written("umbrella") == 1

    process.tally.flush()
    process.tally.flush()
    assert process.written("acme") + process.written("globex") + process.written("umbrella") == 3
