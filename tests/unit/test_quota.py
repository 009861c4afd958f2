"""How many jobs of a tenant may wait: what is refused, what a count costs, and how it goes down again."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from functions.api.admission.quota import KNOWN_FOR, Quota
from functions.api.http.problems import problem_of
from functions.api.jobs.intake import Intake
from functions.api.jobs.submit import Accepted
from functions.domain.errors import QuotaExceeded, TickwheelError
from functions.domain.instants import DAY, HOUR
from functions.domain.jobs.job import Delivery
from functions.domain.jobs.job_id import job_id_of, parse_job_id
from functions.domain.jobs.submission import Submission
from functions.domain.stage.pulse import Figure
from functions.domain.tenants.backlog import backlog_on, backlogs_on
from functions.domain.tenants.plan import TenantPlan
from functions.ports.targets import Failed
from functions.services.telemetry.pulse import PulseTally
from testkit.builders import NOON, a_submission, an_occurrence_timer
from testkit.fakes import InMemoryPendingStore, InMemoryPulseStore
from testkit.observed import Unreliable
from testkit.scheduler import World

LIMIT = 3


class Limited(World):
    """A world in which three jobs of acme may wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: Any = Unreliable(InMemoryPendingStore())
        self.tally = self.a_tally()
        self.plans.plans["acme"] = TenantPlan(max_pending=LIMIT)
        self.quota = self.a_process()

    def a_process(self) -> Intake:
        quota = Quota(clock=self.clock, plans=self.plans, pending_store=self.waiting, journal=self.journal)
        return Intake(admission=self.admission, quota=quota, submitter=self.submitter(), pulse=self.pulse)

    def hand_in(self, *submissions: Submission, by: Intake | None = None) -> list[Accepted | TickwheelError]:
        return (by or self.quota).submit(submissions)

    def known(self) -> int:
        """What the store says once everything has been written."""
        self.tally.flush()
        return sum(self.waiting.counts("acme", since=self.clock.now().date()).values())


def far(**options: Any) -> Submission:
    return a_submission(**{"due_at": NOON + HOUR, **options})


def taken(answers: list[Accepted | TickwheelError]) -> list[bool]:
    return [isinstance(answer, Accepted) for answer in answers]


def test_the_first_jobs_of_a_batch_that_fit_are_taken():
    world = Limited()

    answers = world.hand_in(far(), far(tenant="umbrella"), far(), far(), far(), far(tenant="umbrella"))

    assert taken(answers) == [True, True, True, True, False, True]


def test_who_has_too_many_is_reported_how_many_and_when_to_ask_again():
    world = Limited()

    *_, refused = world.hand_in(far(), far(), far(), far())

    assert isinstance(refused, QuotaExceeded)
    answer = problem_of(refused)
    assert (answer["status"], answer["code"]) == (429, "quota_exceeded")
    assert (answer["count"], answer["limit"], answer["retry_after"]) == (3, LIMIT, 60)


def test_a_tenant_without_a_limit_costs_nothing():
    world = Limited()

    answers = world.hand_in(*[far(tenant="umbrella") for _ in range(9)])
    world.clock.tick(2 * HOUR)
    world.tally.flush()

    assert all(taken(answers))
    assert (world.waiting.reads, world.waiting.writes) == (0, 0)


def test_a_batch_is_one_write_for_each_day_and_one_read_for_ten_seconds():
    world = Limited()
    world.plans.plans["acme"] = TenantPlan(max_pending=100)

    world.hand_in(far(), far(), far(due_at=NOON + DAY))
    world.clock.tick(KNOWN_FOR - timedelta(seconds=1))
    world.hand_in(far())
    assert (world.waiting.reads, world.waiting.writes) == (1, 3)

    world.clock.tick(timedelta(seconds=1))
    world.hand_in(far())
    assert world.waiting.reads == 2


def test_a_process_knows_at_once_what_it_has_taken_in_itself():
    world = Limited()
    world.hand_in(far(), far())

    assert taken(world.hand_in(far(), far())) == [True, False]


def test_a_process_learns_what_others_have_taken_in_after_ten_seconds():
    world = Limited()
    other = world.a_process()
    assert taken(world.hand_in(far(), far(), far())) == [True] * 3

    assert taken(world.hand_in(far(), by=other)) == [False]
    world.clock.tick(KNOWN_FOR)
    assert taken(world.hand_in(far(), by=other)) == [False]


def test_what_has_run_makes_room():
    world = Limited()
    world.hand_in(*[a_submission(due_at=NOON) for _ in range(LIMIT)])
    assert world.known() == LIMIT

    world.receive_and_work()

    assert world.known() == 0
    world.clock.tick(KNOWN_FOR)
    assert taken(world.hand_in(far())) == [True]


def test_what_is_retried_waits_on_and_what_has_failed_for_good_does_not():
    world = Limited()
    world.targets.answer = lambda _, __: Failed("no")
    world.hand_in(a_submission(due_at=NOON))
    world.receive_and_work()
    assert world.known() == 1

    for _ in range(3):
        world.clock.tick(timedelta(seconds=30))
        world.receive_and_work()

    assert world.journal.counts["dead_lettered"] == 1
    assert world.known() == 0


@pytest.mark.parametrize("delivery", [Delivery.EXACTLY_ONCE, Delivery.AT_LEAST_ONCE])
def test_what_is_cancelled_makes_room_once_however_often_that_is_asked_for(delivery: Delivery):
    world = Limited()
    kept, dropped = world.hand_in(far(delivery=delivery), far(delivery=delivery))
    assert isinstance(kept, Accepted)
    assert isinstance(dropped, Accepted)
    world.clock.tick(timedelta(minutes=10))

    world.canceller().cancel(parse_job_id(dropped.job_id))
    if delivery is Delivery.AT_LEAST_ONCE:
        world.canceller().cancel(parse_job_id(dropped.job_id))

    assert world.known() == 1


def test_a_job_that_is_moved_waits_for_its_new_day():
    world = Limited()
    (accepted,) = world.hand_in(far())
    assert isinstance(accepted, Accepted)

    world.rescheduler().change(
        parse_job_id(accepted.job_id), lambda _, text: replace(far(due_at=NOON + DAY), payload=text)
    )

    assert world.known() == 1
    assert world.waiting.counts("acme", since=(NOON + DAY).date()) == {(NOON + DAY).date(): 1}


def test_what_was_lost_heals_when_its_day_is_over():
    world = Limited()
    world.hand_in(far(), far(), far())
    world.tally = world.a_tally()  # a process that dies with what it has not written

    world.clock.tick(DAY)

    assert taken(world.hand_in(far(due_at=NOON + 2 * DAY))) == [True]


def test_a_day_never_counts_fewer_than_none():
    world = Limited()
    world.hand_in(far(due_at=NOON + DAY))
    for _ in range(5):
        world.tally.leave(job_id_of(world.timers.puts[0][0].job))

    assert world.known() == 0
    world.clock.tick(KNOWN_FOR)
    assert taken(world.hand_in(*[far(due_at=NOON + 2 * DAY) for _ in range(LIMIT + 1)])) == [True] * LIMIT + [False]


def test_a_limit_that_cannot_be_looked_up_keeps_no_job_out():
    world = Limited()
    world.waiting.fails = "before"

    assert all(taken(world.hand_in(*[far() for _ in range(LIMIT + 2)])))
    assert [name for name, _ in world.journal.events][:1] == ["quota_unknown"]
    assert "pending_not_counted" in [name for name, _ in world.journal.events]


def test_a_repeat_under_its_key_counts_once():
    world = Limited()
    submission = far(idempotency_key="k")

    world.hand_in(submission)
    world.hand_in(submission)

    assert world.known() == 1


def test_the_fires_of_a_schedule_do_not_count():
    world = Limited()
    timer = an_occurrence_timer(fire_at=NOON + HOUR)

    world.tally.leave(job_id_of(timer.job))

    world.tally.flush()
    assert world.waiting.rows == {}


class Walked(dict[date, int]):
    """Counts how often it is walked over."""

    walks = 0

    def __iter__(self) -> Iterator[date]:
        type(self).walks += 1
        return super().__iter__()

    def items(self) -> Any:
        type(self).walks += 1
        return super().items()


class TestACapThatCannotServeWhatWaits:
    """A hundredth of a job a second: 864 a day, 6,048 in seven days."""

    A_WEEK = 6_048

    @pytest.fixture
    def world(self) -> Limited:
        world = Limited()
        world.plans.plans["acme"] = TenantPlan(execution_rate=0.01)
        return world

    def test_a_job_that_would_wait_for_more_than_a_week_is_refused_with_the_reason(self, world: Limited):
        world.waiting.add("acme", NOON.date(), self.A_WEEK - 1)

        accepted, refused = world.hand_in(far(), far())

        assert isinstance(accepted, Accepted)
        assert isinstance(refused, TickwheelError)
        problem = problem_of(refused)
        assert (problem["status"], problem["code"], problem["retry_after"]) == (429, "backlog_exceeded", 60)
        assert (problem["count"], problem["limit"]) == (self.A_WEEK, self.A_WEEK)
        assert "take 7.0 days at the 0.01 a second of its execution_rate" in problem["detail"]

    def test_what_is_overdue_waits_too(self, world: Limited):
        for day in range(14):
            world.waiting.add("acme", (NOON - day * DAY).date(), self.A_WEEK // 14)

        assert taken(world.hand_in(far())) == [False]

    def test_by_a_later_day_the_rate_has_served_some_of_it(self, world: Limited):
        world.waiting.add("acme", NOON.date(), self.A_WEEK)
        # What is due on far days loads no day before them.
        world.waiting.add("acme", (NOON + 30 * DAY).date(), 3 * self.A_WEEK)

        later = [far(due_at=NOON + days * DAY) for days in (0, 1, 29, 30, 36, 60)]

        assert taken(world.hand_in(*later)) == [False, True, True, False, False, True]

    def test_many_days_are_looked_at_in_one_walk(self, world: Limited):
        days = {NOON.date() + number * DAY: number % 40 for number in range(-14, 400, 3)}
        asked = [NOON.date() + number * DAY for number in range(0, 300, 7)]

        found = backlogs_on(asked, Walked(days), rate=0.0001, now=NOON)

        assert {day: backlog_on(day, days, rate=0.0001, now=NOON) for day in asked} == found
        assert Walked.walks == 2
        assert len({backlog.count for backlog in found.values()}) > 20

    def test_an_ended_job_makes_room_also_when_its_day_is_over(self, world: Limited):
        (accepted,) = world.hand_in(far())
        assert isinstance(accepted, Accepted)
        timer = world.timers.puts[0][0]
        world.clock.tick(6 * DAY)

        world.tally.leave(job_id_of(timer.job))
        world.tally.flush()

        assert world.waiting.rows == {("acme", NOON.date()): 0}

    def test_a_batch_of_many_days_counts_what_it_takes_in_itself(self, world: Limited):
        world.waiting.add("acme", NOON.date(), self.A_WEEK - 2)

        answers = world.hand_in(far(), far(due_at=NOON + DAY), far(), far())

        assert taken(answers) == [True, True, True, False]

    def test_it_is_known_how_long_what_waits_takes(self, world: Limited):
        world.waiting.add("acme", NOON.date(), 1_728)

        backlog = world.quota.quota.backlog("acme")

        assert backlog is not None
        assert (backlog.count, backlog.takes) == (1_728, 2 * DAY)
        assert world.quota.quota.backlog("umbrella") is None


def test_a_job_that_its_owner_runs_now_waits_on_this_day():
    world = Limited()
    (accepted,) = world.hand_in(far(due_at=NOON + 9 * DAY))
    assert isinstance(accepted, Accepted)

    world.rescheduler().run_now(parse_job_id(accepted.job_id))
    assert world.known() == 1
    assert world.waiting.rows == {("acme", (NOON + 9 * DAY).date()): 0, ("acme", NOON.date()): 1}

    world.receive_and_work()
    assert world.known() == 0


def test_what_comes_in_and_what_is_refused_is_in_the_pulse():
    world = Limited()
    store = InMemoryPulseStore()
    pulse = PulseTally(clock=world.clock, pulses=store, journal=world.journal)

    world.hand_in(*(far() for _ in range(LIMIT + 2)), by=replace(world.quota, pulse=pulse))
    pulse.flush()

    assert store.rows[NOON].counts == {Figure.SUBMITTED: LIMIT, Figure.REFUSED: 2}
    assert store.names == {(NOON, "acme"): {Figure.REFUSED: 2}}
