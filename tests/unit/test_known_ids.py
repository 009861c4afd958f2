"""Which ids are answered: those that Tickwheel gave."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.errors import InvalidJobId, JobNotFound
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from functions.domain.schedules.state import Status
from functions.domain.tenants.plan import TenantPlan
from testkit.builders import (
    NOON,
    a_job,
    a_link,
    a_schedule,
    a_submission,
    a_template,
    a_timer,
    an_occurrence_timer,
    every,
)
from tests.unit.test_rescheduler import a_placed, change
from tests.unit.test_schedule_routes import Api

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NEAR, FAR = NOON + MINUTE, NOON + HOUR
OTHERS = "0123456789abcdefghijklmnopqrstuvwxyzELM.-_:"


@pytest.fixture
def world() -> Api:
    return Api()


def submitted(due_at: datetime, **overrides: Any) -> Callable[[Api], JobId]:
    return lambda world: parse_job_id(world.submit(a_submission(due_at=due_at, **overrides)).job_id)


def moved(world: Api) -> JobId:
    return change(world, a_placed(world), delay=7_200).job_id


def moved_before_there_were_checks(world: Api) -> JobId:
    return change(world, a_placed(world, identity="old"), delay=7_200).job_id


def a_fire(world: Api) -> JobId:
    world.put("nightly")
    found = [timer for timer in world.ready.sent if timer.job.occurrence]
    assert not found
    world.clock.tick(HOUR - MINUTE)
    world.scan(0)
    world.scan(1)
    (timer,) = world.ready.sent
    return job_id_of(timer.job)


def a_trigger(world: Api) -> JobId:
    world.put()
    return parse_job_id(world.call("POST", "/v1/schedules/nightly:trigger")[1]["job"])


def a_backfilled_fire(world: Api) -> JobId:
    world.put()
    asked = {"start": "2027-03-01T08:30:00Z", "end": "2027-03-01T11:30:00Z", "per_minute": 60}
    return parse_job_id(world.call("POST", "/v1/schedules/nightly:backfill", asked)[1]["jobs"][1])


def an_old_far_job(world: Api) -> JobId:
    return job_id_of(a_placed(world, identity="old").job)


def an_old_claimed_job(world: Api) -> JobId:
    timer = a_timer(due_at=NOON, identity="old")
    world.ledger.claim(timer, owner="w", lease_until=NOON + MINUTE, now=NOON)
    return job_id_of(timer.job)


GIVEN = {
    **{f"near {delivery}": submitted(NEAR, delivery=delivery) for delivery in Delivery},
    **{f"far {delivery}": submitted(FAR, delivery=delivery) for delivery in Delivery},
    **{f"near keyed {each}": submitted(NEAR, delivery=each, idempotency_key="order-7") for each in Delivery},
    **{f"far keyed {each}": submitted(FAR, delivery=each, idempotency_key="order-7") for each in Delivery},
    "moved": moved,
    "moved, given before": moved_before_there_were_checks,
    "fire": a_fire,
    "trigger": a_trigger,
    "backfill": a_backfilled_fire,
    "given before, far": an_old_far_job,
    "given before, claimed": an_old_claimed_job,
}


@pytest.mark.parametrize("make", GIVEN.values(), ids=GIVEN)
def test_an_id_that_was_given_is_answered_and_no_other_like_it(world: Api, make: Callable[[Api], JobId]):
    given = make(world)
    known, rows = world.known_ids(), dict(world.ledger.rows)

    assert known.check(given) == given
    assert world.finder().find(given).job_id.tenant == "acme"
    others = invented(given)
    assert len(others) > 100
    for other in others:
        with pytest.raises(JobNotFound):
            known.check(other)
        with pytest.raises(JobNotFound):
            world.finder().find(other)
    assert world.ledger.rows == rows


def invented(given: JobId) -> list[JobId]:
    """Every id that differs in one character, that is taken away, put between or another."""
    text, found = str(given), dict[str, JobId]()
    for at in range(len(text)):
        for part in ("", *OTHERS, *(text[at] + other for other in "0a")):
            try:
                other = parse_job_id(text[:at] + part + text[at + 1 :])
            except InvalidJobId:
                continue
            found[str(other)] = other
    found.pop(text, None)
    return list(found.values())


@pytest.mark.parametrize("delivery", Delivery)
def test_an_id_of_before_that_has_no_row_is_not_found(world: Api, delivery: Delivery):
    for due_at in (NOON - MINUTE, NEAR, FAR):
        with pytest.raises(JobNotFound):
            world.known_ids().check(job_id_of(a_job(identity="0123456789abcdef" * 2, due_at=due_at, delivery=delivery)))


def test_an_id_that_has_a_check_is_answered_without_a_read(world: Api):
    given = submitted(NEAR)(world)
    calls: list[str] = []

    world.watched(before=calls.append).known_ids().check(given)

    assert calls == []


def test_an_id_that_was_given_before_the_secret_was_lost_is_answered_from_its_row(world: Api):
    near, far = submitted(NEAR)(world), submitted(FAR)(world)
    known = replace(world.known_ids(), id_secret=lambda: b"another secret of thirty-two by.")

    assert known.check(far) == far
    with pytest.raises(JobNotFound):
        known.check(near)


def test_the_id_of_a_key_that_was_used_again_is_not_that_of_its_first_job(world: Api):
    first = submitted(NEAR, idempotency_key="order-7")(world)
    world.ledger.rows.clear()  # it has expired
    second = submitted(NEAR + MINUTE, idempotency_key="order-7")(world)

    assert world.known_ids().check(second) == second
    with pytest.raises(JobNotFound):
        world.known_ids().check(first)


class TestTriggers:
    def test_a_repeated_trigger_is_answered_with_the_id_of_the_first(self, world: Api):
        world.put()
        first = triggered(world)
        world.clock.tick(MINUTE)

        assert triggered(world) == first
        assert {job_id_of(timer.job) for timer in world.ready.sent} == {first}
        # What came in later was promised no sooner.
        assert [timer.wakes_at - first.due_at for timer in world.ready.sent] == [timedelta(0), MINUTE]
        assert world.known_ids().check(first) == first

    def test_a_repeated_trigger_whose_run_has_begun_is_not_placed_again(self, world: Api):
        world.put()
        first = triggered(world)
        world.receive_and_work()
        sent = len(world.ready.sent)

        assert triggered(world) == first
        assert len(world.ready.sent) == sent

    def test_a_repeated_backfill_is_answered_with_the_ids_of_the_first(self, world: Api):
        world.put()
        asked = {"start": "2027-03-01T08:30:00Z", "end": "2027-03-01T11:30:00Z", "per_minute": 60}
        key = {"idempotency-key": "march"}
        first = world.call("POST", "/v1/schedules/nightly:backfill", asked, headers=key)[1]["jobs"]
        world.clock.tick(MINUTE)

        assert world.call("POST", "/v1/schedules/nightly:backfill", asked, headers=key)[1]["jobs"] == first
        assert len(first) == 3

    def test_a_fire_that_was_asked_for_is_reported_after_its_schedule_is_deleted(self, world: Api):
        world.put()
        job_id = triggered(world)
        world.call("DELETE", "/v1/schedules/nightly")

        assert world.finder().find(job_id).job_id == job_id


class TestFires:
    """Of a schedule that fires each minute, and was changed at noon."""

    def test_the_next_fire_is_known_before_it_is_placed(self, world: Api):
        assert self.is_known(world, FAR, link=a_link(FAR))

    def test_no_fire_behind_the_next_one_is(self, world: Api):
        assert not self.is_known(world, FAR + MINUTE, link=a_link(FAR))

    def test_a_fire_that_is_near_may_have_been_placed_already(self, world: Api):
        assert self.is_known(world, NOON + 2 * MINUTE, link=a_link(NOON + MINUTE))

    def test_what_is_no_fire_of_the_rule_is_not_known(self, world: Api):
        assert not self.is_known(world, NOON + MINUTE + timedelta(seconds=1), link=a_link(NOON + 2 * MINUTE))

    def test_a_fire_that_was_passed_over_is_not_known(self, world: Api):
        recent = (NOON + MINUTE, NOON + 3 * MINUTE)

        assert self.is_known(world, NOON + MINUTE, link=a_link(FAR), recent=recent)
        assert not self.is_known(world, NOON + 2 * MINUTE, link=a_link(FAR), recent=recent)

    def test_a_fire_longer_ago_than_is_remembered_is_known_by_its_rule(self, world: Api):
        assert self.is_known(world, NOON + MINUTE, link=a_link(FAR), recent=(NOON + 9 * MINUTE,))

    def test_of_the_version_before_only_the_last_fires_are_known(self, world: Api):
        assert self.is_known(world, NOON - MINUTE, recent=(NOON - MINUTE,))
        assert not self.is_known(world, NOON - 2 * MINUTE, recent=(NOON - MINUTE,))

    def test_a_paused_schedule_has_fires_that_it_had_placed(self, world: Api):
        assert self.is_known(world, NOON + MINUTE, status=Status.PAUSED)
        assert not self.is_known(world, NOON + 5 * MINUTE, status=Status.PAUSED)

    def test_a_schedule_that_has_come_to_its_end_has_no_further_fire(self, world: Api):
        assert self.is_known(world, NOON + MINUTE, recent=(NOON + MINUTE,))
        assert not self.is_known(world, NOON + 2 * MINUTE, recent=(NOON + MINUTE,))

    def test_from_end_to_start_only_what_is_noted_is_known(self, world: Api):
        rule = every(minutes=1, from_end=True)

        assert self.is_known(world, NOON + MINUTE, rule=rule, link=a_link(NOON + MINUTE, is_awaited=True))
        assert not self.is_known(world, NOON + 2 * MINUTE, rule=rule, link=a_link(NOON + MINUTE, is_awaited=True))

    def test_a_fire_of_a_class_or_delivery_that_the_schedule_does_not_have_is_not_known(self, world: Api):
        other = a_schedule(job=a_template(delivery=Delivery.AT_LEAST_ONCE))
        world.store(a_schedule(rule=every(minutes=1)), changed_at=NOON, link=a_link(FAR))

        with pytest.raises(JobNotFound):
            world.known_ids().check(job_id_of(an_occurrence_timer(other, fire_at=FAR).job))

    def test_a_fire_of_a_schedule_that_there_never_was_is_not_known(self, world: Api):
        with pytest.raises(JobNotFound):
            world.known_ids().check(job_id_of(an_occurrence_timer(fire_at=NEAR).job))

    def test_the_fires_of_a_tenant_on_many_shards_are_known_on_their_own(self, world: Api):
        world.plans.plans["acme"] = TenantPlan(subshards=2)
        schedule = a_schedule(schedule_id="b", rule=every(minutes=1))
        assert world.wheel.shard_of("acme", "b", subshards=2) != world.wheel.shard_of("acme", "b")
        world.store(schedule, link=a_link(FAR))
        shards = {
            shard: replace(job_id_of(an_occurrence_timer(schedule, fire_at=FAR).job), shard=shard)
            for shard in (0, 1, 2)
        }
        right = world.wheel.shard_of("acme", "b", subshards=2)

        assert world.known_ids().check(shards[right]) == shards[right]
        with pytest.raises(JobNotFound):
            world.known_ids().check(shards[2])

    def test_a_fire_is_known_after_its_tenant_was_spread_and_after_it_was_gathered_again(self, world: Api):
        for number in range(8):
            world.put(f"s{number}", every=60)
        near = [job_id_of(timer.job) for timer in world.ready.sent]
        world.plans.plans["acme"] = TenantPlan(subshards=8)

        assert len({each.shard for each in near}) == 1
        assert [world.known_ids().check(each) for each in near] == near

    def is_known(self, world: Api, at: datetime, *, rule: Any = None, **state: Any) -> bool:
        schedule = a_schedule(rule=rule or every(minutes=1))
        if world.schedules.state(schedule.uid) is None:
            world.store(schedule, **{"changed_at": NOON, **state})
        timer: Timer = an_occurrence_timer(schedule, fire_at=at)
        try:
            world.known_ids().check(job_id_of(timer.job))
        except JobNotFound:
            return False
        return True


def triggered(world: Api) -> JobId:
    asked = world.call("POST", "/v1/schedules/nightly:trigger", headers={"idempotency-key": "deploy 7"})
    return parse_job_id(asked[1]["job"])
