"""What a process counts of what goes on, and when it adds that to the stage's pulse."""

from datetime import timedelta
from typing import Any

import pytest

from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.job import Priority
from functions.domain.stage.pulse import PERIOD, Figure, Pulse, sum_of
from functions.services.telemetry.pulse import NAMED_EVERY, WRITTEN_EVERY, PulseTally
from testkit.builders import NOON, a_job
from testkit.fakes import FakeClock, InMemoryPulseStore, RecordingJournal
from testkit.observed import Unreliable


class Process:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store: Any = Unreliable(InMemoryPulseStore())
        self.journal = RecordingJournal()
        self.tally = PulseTally(clock=self.clock, pulses=self.store, journal=self.journal)

    def run(
        self, jobs: int = 1, tenant: str = "acme", *, lag: timedelta = SECOND, priority: Priority = Priority.NORMAL
    ):
        for _ in range(jobs):
            self.tally.began(a_job(tenant=tenant, priority=priority), lag)

    def written(self) -> Pulse:
        return sum_of(self.store.rows.values())


@pytest.fixture
def process() -> Process:
    return Process()


def test_the_first_counts_are_written_at_once(process: Process):
    process.tally.count(Figure.SUBMITTED, "acme", amount=2)
    process.tally.count(Figure.PROMOTED, amount=3)
    process.run(lag=timedelta(seconds=2), priority=Priority.HIGH)

    process.tally.flush()

    assert process.store.rows == {
        NOON: Pulse(counts={Figure.SUBMITTED: 2, Figure.PROMOTED: 3, Figure.STARTED: 1}, lags={Priority.HIGH: {38: 1}})
    }


def test_a_process_without_jobs_writes_nothing(process: Process):
    process.tally.count(Figure.PROMOTED, amount=0)
    for _ in range(100):
        process.tally.flush()
        process.clock.tick(MINUTE)

    assert process.store.writes == 0


def test_a_busy_process_writes_once_in_a_while_and_loses_nothing(process: Process):
    process.run()
    process.tally.flush()
    process.run(5)
    process.clock.tick(WRITTEN_EVERY - SECOND)
    process.tally.flush()
    assert process.written().of(Figure.STARTED) == 1

    process.clock.tick(SECOND)
    process.tally.flush()

    assert process.written().of(Figure.STARTED) == 6


def test_what_is_counted_belongs_to_its_own_minute_however_late_it_is_written(process: Process):
    process.run()
    process.tally.flush()
    process.run(2)
    process.clock.tick(3 * MINUTE)
    process.run(4)

    process.tally.flush()

    assert {at: pulse.of(Figure.STARTED) for at, pulse in process.store.rows.items()} == {NOON: 3, NOON + 3 * MINUTE: 4}


def test_what_nobody_is_reported_any_more_is_forgotten(process: Process):
    process.run()
    process.tally.flush()
    process.run(2)
    process.clock.tick((PERIOD + 1) * MINUTE)

    process.tally.flush()

    assert process.written().of(Figure.STARTED) == 1


def test_what_could_not_be_written_is_written_with_the_next_and_nobody_fails(process: Process):
    process.store.fails = "before"
    process.run(2)
    process.tally.flush()
    process.run(3)

    process.store.fails = ""
    process.clock.tick(WRITTEN_EVERY)
    process.tally.flush()

    assert process.written().of(Figure.STARTED) == 5
    assert sum(process.written().all_lags.values()) == 5
    ((name, keys),) = process.journal.events
    assert (name, list(keys)) == ("pulse_not_written", ["error"])
    assert str(keys["error"]).startswith("TimeoutError at functions.services.telemetry.pulse:")


def test_a_store_that_fails_is_not_asked_by_every_invocation(process: Process):
    process.store.fails = "before"
    for _ in range(10):
        process.run()
        process.tally.flush()

    assert len(process.journal.events) == 1


def test_tenants_that_stand_out_are_named_once_a_minute(process: Process):
    process.run(3, "whale")
    process.tally.count(Figure.FAILED, "whale")
    process.tally.count(Figure.SUBMITTED, "shy")
    process.tally.flush()
    process.run(5, "whale")
    process.clock.tick(NAMED_EVERY - SECOND)
    process.tally.flush()
    assert process.store.names == {(NOON, "whale"): {Figure.STARTED: 3, Figure.FAILED: 1}}

    process.clock.tick(SECOND)
    process.tally.flush()

    assert process.store.names == {(NOON, "whale"): {Figure.STARTED: 8, Figure.FAILED: 1}}


def test_a_busy_process_spends_a_two_hundredth_of_a_unit_a_job_at_most(process: Process):
    """Of 50 jobs a second, in batches of ten, of three tenants, for ten minutes."""
    jobs = 0
    for _ in range(10 * 60 * 5):
        for tenant in ("a", "b", "c", "a", "b", "c", "a", "b", "c", "a"):
            process.run(tenant=tenant)
            process.tally.count(Figure.SUCCEEDED, tenant)
            jobs += 1
        process.tally.flush()
        process.clock.tick(timedelta(milliseconds=200))

    assert process.store.writes / jobs < 0.005
    process.clock.tick(WRITTEN_EVERY)
    process.tally.flush()
    assert process.written().of(Figure.STARTED) == jobs
