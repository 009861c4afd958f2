from dataclasses import replace
from datetime import UTC, datetime

import pytest

from functions.domain.instants import HOUR, SECOND
from functions.domain.jobs.job import Delivery
from functions.domain.lifecycle import State
from soak.record import LATENESS, Record, Rhythm
from testkit.builders import LOCAL_WHEEL, NOON
from verification.checker import Invariant, judge
from verification.history import History, Job, Row


def a_job(key: str = "acme#1", *, due_at: datetime = NOON) -> Job:
    return Job(key=key, tenant="acme", delivery=Delivery.EXACTLY_ONCE, due_at=due_at, payload=None)


def history(record: Record, *rows: Row, fires_until: datetime = NOON, jobs_until: datetime | None = None) -> History:
    found = {row.key: row for row in rows}
    return record.history([], found, [], fires_until=fires_until, jobs_until=jobs_until, now=NOON + HOUR)


def test_a_rhythm_fires_from_its_start_up_to_its_end() -> None:
    start = datetime(2026, 3, 1, 12, 0, 7, tzinfo=UTC)
    assert Rhythm(30, 7).between(start, start + 60 * SECOND) == [start, start + 30 * SECOND]
    assert Rhythm(60).between(start, start + 60 * SECOND) == [start + 53 * SECOND]
    assert Rhythm(60).between(start, start + 53 * SECOND) == []


def test_a_schedule_owes_what_it_fires_once_it_was_reported() -> None:
    record = Record()
    life = record.begin_life("acme#often", Rhythm(20), "often", now=NOON)
    assert history(record, fires_until=NOON + 65 * SECOND).fires[0].due == frozenset()
    life.acknowledged_at = NOON + 1 * SECOND
    (fires,) = history(record, fires_until=NOON + 65 * SECOND).fires
    assert sorted(fires.due) == [NOON + 20 * SECOND, NOON + 40 * SECOND, NOON + 60 * SECOND]
    assert NOON in fires.possible


def test_what_comes_due_shortly_before_a_schedule_is_stopped_may_run_and_need_not() -> None:
    record = Record()
    life = record.begin_life("acme#often", Rhythm(20), "often", now=NOON)
    life.acknowledged_at = NOON
    life.stopped_at = NOON + LATENESS + 50 * SECOND
    life.is_over_at = life.stopped_at + 1 * SECOND
    (fires,) = history(record, fires_until=NOON + HOUR).fires
    assert sorted(fires.due) == [NOON + 20 * SECOND, NOON + 40 * SECOND]
    assert max(fires.possible) <= life.is_over_at + LOCAL_WHEEL.skew


def test_a_job_that_is_lost_is_found_and_one_that_was_under_way_at_the_end_is_not_missed() -> None:
    record = Record()
    record.add_job(a_job(due_at=NOON))
    lost = judge(history(record)).violations
    assert [each.invariant for each in lost] == [Invariant.NOTHING_LOST]
    assert judge(history(record, jobs_until=NOON - 1 * SECOND)).violations == []


@pytest.mark.parametrize(("seconds", "is_disturbed"), [(-9, False), (-7, True), (0, True), (14, True), (16, False)])
def test_what_was_due_when_a_worker_died_may_have_been_with_it(seconds: int, is_disturbed: bool) -> None:
    record = Record()
    record.add_job(a_job(due_at=NOON))
    record.disturb(NOON + seconds * SECOND, NOON + seconds * SECOND)
    assert history(record).disturbed == (frozenset({"acme#1"}) if is_disturbed else frozenset())


def test_so_may_the_fire_of_a_schedule() -> None:
    record = Record()
    record.disturb(NOON, NOON)
    row = Row(key=f"acme#often:{NOON:%Y-%m-%dT%H:%M:%S}Z", state=State.RUNNING, attempt=1, fence=1, settled_at=None)
    assert history(record, row).disturbed == {row.key}


@pytest.mark.parametrize(("seconds", "is_disturbed"), [(0, True), (60, False)])
def test_a_job_that_was_started_when_a_worker_died_may_have_no_call(seconds: int, is_disturbed: bool) -> None:
    record = Record()
    job = replace(a_job(due_at=NOON - HOUR), delivery=Delivery.AT_MOST_ONCE)
    record.add_job(job)
    record.disturb(NOON, NOON)
    started_at = NOON + seconds * SECOND
    row = Row(key=job.key, state=State.ATTEMPTED, attempt=1, fence=0, settled_at=started_at)
    violations = judge(history(record, row)).violations
    assert [each.invariant for each in violations] == ([] if is_disturbed else [Invariant.ENDS_AGREE])
