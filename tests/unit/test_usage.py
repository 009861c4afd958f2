"""What a job writes, by the figures that the benchmark holds against DynamoDB's own; and where it is counted."""

from dataclasses import replace
from datetime import date, timedelta
from random import Random
from string import printable

import pytest

from bench.budgets import OCCURRENCES, UNITS, Path
from functions.domain.errors import InvalidInput
from functions.domain.far_ring.timer_record import encode_envelope
from functions.domain.far_ring.write_units import attempt_units, dead_letter_units, row_units, submission_units
from functions.domain.jobs.claims import MAX_RESCUES
from functions.domain.jobs.job import Delivery, Payload
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.tenants.usage import MAX_DAYS, USUAL_DAYS, Days, Usage, days_asked
from functions.domain.wheel import Ring
from functions.ports.targets import Failed, Pending
from testkit.builders import NOON, a_schedule, a_submission, a_timer, an_occurrence_timer
from testkit.scheduler import World

TODAY = date(2027, 3, 1)
SMALL = '"' + "x" * 510 + '"'


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_job_is_counted_as_the_budget_has_it(path: Path):
    timer = a_timer(delivery=path.delivery, payload=Payload(text=SMALL))

    counted = submission_units(timer, is_far=path.ring is Ring.FAR, is_keyed=path.keyed) + attempt_units(timer)

    assert counted == UNITS[path].writes


@pytest.mark.parametrize("overlap", OCCURRENCES)
def test_a_fire_is_counted_as_the_budget_has_it(overlap: Overlap):
    timer = an_occurrence_timer(a_schedule(overlap=overlap))

    assert attempt_units(timer) == OCCURRENCES[overlap].writes
    assert attempt_units(replace(timer, attempt=2)) == 2


def test_a_row_costs_a_unit_for_each_kilobyte():
    noise = "".join(Random(1).choices(printable[:62], k=4_096))
    rows = [a_timer(payload=Payload(text=f'"{noise[:size]}"')) for size in (0, 1_024, 4_000)]

    assert [row_units(timer) for timer in rows] == [1, 2, 4]


@pytest.mark.parametrize(
    ("delivery", "units"), [(Delivery.EXACTLY_ONCE, 3), (Delivery.AT_LEAST_ONCE, 1), (Delivery.AT_MOST_ONCE, 0)]
)
def test_a_dead_letter_costs_twice_in_a_transaction(delivery: Delivery, units: int):
    assert dead_letter_units(a_timer(delivery=delivery)) == units


def test_days_are_thirty_until_today_unless_it_is_said():
    month = timedelta(days=USUAL_DAYS - 1)
    past = date(2027, 1, 5)

    assert days_asked(None, None, today=TODAY) == Days(first=TODAY - month, last=TODAY)
    assert days_asked(past, None, today=TODAY) == Days(first=past, last=TODAY)
    assert days_asked(None, past, today=TODAY) == Days(first=past - month, last=past)


def test_days_are_in_order_and_not_too_many():
    assert Days(first=TODAY - timedelta(days=MAX_DAYS - 1), last=TODAY).count == MAX_DAYS
    with pytest.raises(InvalidInput, match="is 401 days"):
        Days(first=TODAY - timedelta(days=MAX_DAYS), last=TODAY)
    with pytest.raises(InvalidInput, match="which is after until"):
        Days(first=TODAY, last=TODAY - timedelta(days=1))


@pytest.mark.parametrize("asked", [(date.min, None), (None, date.min), (date.min, date.max), (None, date(1999, 1, 1))])
def test_days_before_there_was_anything_are_refused(asked: tuple[date | None, date | None]):
    with pytest.raises(InvalidInput):
        days_asked(*asked, today=TODAY)


def used(world: World, tenant: str = "acme") -> Usage:
    world.tally.flush()
    return sum((usage for (owner, _), usage in world.used.rows.items() if owner == tenant), Usage())


def test_a_job_that_succeeds_is_counted_at_each_of_its_steps():
    world = World()
    world.submit(a_submission(due_at=NOON, payload='"ü"'))
    assert used(world) == Usage(submitted=1, bytes=4)

    world.receive_and_work()

    assert used(world) == Usage(submitted=1, executed=1, succeeded=1, units=2, bytes=4)


def test_a_far_job_counts_its_row_and_a_key_its_registration_once():
    world = World()
    submission = a_submission(due_at=NOON + timedelta(hours=1), idempotency_key="k")
    world.submit(submission)

    world.submit(submission)

    assert used(world) == Usage(submitted=1, units=2, bytes=len((submission.payload or "").encode()))


def test_a_job_that_fails_for_good_counts_its_attempts_and_its_dead_letter():
    world = World()
    world.targets.answer = lambda _, __: Failed("no")
    world.submit(a_submission(due_at=NOON, retry=replace(a_submission().retry, attempts=2)))
    world.receive_and_work()
    world.clock.tick(timedelta(hours=1))
    world.receive_and_work()

    found = used(world)

    assert (found.executed, found.succeeded, found.failed, found.units) == (2, 0, 1, 2 * 2 + 3)


def test_nothing_is_counted_for_a_duplicate():
    world = World()
    world.submit(a_submission(due_at=NOON))
    world.receive_and_work()
    before = used(world)

    world.ready.send([world.ready.sent[0]])
    world.receive_and_work()

    assert used(world) == before


def test_an_attempt_that_goes_on_by_itself_counts_its_end_when_it_says_it():
    world = World()
    world.targets.answer = lambda _, __: Pending()
    accepted = world.submit(a_submission(due_at=NOON))
    world.receive_and_work()
    assert used(world).succeeded == 0

    world.outcome_reports().complete(parse_job_id(accepted.job_id), fence=1, result="")

    assert used(world).succeeded == 1


def test_what_crashed_its_workers_fails_for_its_tenant():
    world = World()
    timer = a_timer(delivery=Delivery.AT_LEAST_ONCE)
    for _ in range(MAX_RESCUES):
        world.ledger.note_start(timer, now=NOON)
    body = encode_envelope([timer])
    world.burier().bury(body, message_id="m", seen_at=NOON, receive_count=10)

    assert used(world) == Usage(failed=1, units=1)


def test_an_attempt_that_waits_in_the_far_ring_counts_its_row():
    world = World()
    world.targets.answer = lambda _, __: Failed("no")
    slow = RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=timedelta(hours=1), cap=timedelta(hours=1))
    world.submit(a_submission(due_at=NOON, retry=slow))

    world.receive_and_work()

    assert used(world).units == 2 + 1


def test_the_fires_of_a_schedule_are_not_submitted():
    world = World()
    world.store(a_schedule())
    timer = an_occurrence_timer()
    world.ready.send([timer])
    world.receive_and_work()

    assert used(world).submitted == 0
