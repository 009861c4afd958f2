"""Whether a tenant may hand something in."""

from datetime import timedelta
from typing import Any

import pytest

from functions.api.http.problems import problem_of
from functions.domain.errors import InvalidJob, PriorityNotAllowed, RateExceeded, Shed, TenantClosed
from functions.domain.instants import SECOND
from functions.domain.jobs.job import Priority
from functions.domain.stage.conditions import Conditions
from functions.domain.targets.flows import THE_STAGE, FlowId, FlowLimits, FlowScope, NamedFlow
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from testkit.builders import NOON, a_submission
from testkit.scheduler import World

FIVE_A_SECOND = {"acme": TenantPlan(submission_rate=5, submission_burst=10)}


@pytest.fixture
def world() -> World:
    return World()


def taken(world: World, count: int, *, tenant: str = "acme") -> int:
    refusals = world.admission.take([a_submission(tenant=tenant) for _ in range(count)])
    admitted = sum(refusal is None for refusal in refusals)
    assert refusals[:admitted] == [None] * admitted
    return admitted


def test_a_tenant_without_a_rate_hands_in_what_it_likes_and_that_costs_nothing(world: World):
    assert taken(world, 500) == 500
    assert world.rates.writes == 0


def test_a_burst_comes_in_at_once_and_then_what_the_rate_says(world: World):
    world.plans.plans = FIVE_A_SECOND

    assert taken(world, 30) == 10
    assert taken(world, 1) == 0
    world.clock.tick(SECOND)
    assert taken(world, 30) == 5
    world.clock.tick(60 * SECOND)
    assert taken(world, 30) == 10


def test_of_a_batch_each_tenant_has_its_own_rate_and_the_first_jobs_come_in(world: World):
    world.plans.plans = FIVE_A_SECOND | {"globex": TenantPlan(submission_rate=1, submission_burst=1)}
    tenants = ["globex", "acme", "globex", "umbrella"]

    refusals = world.admission.take([a_submission(tenant=tenant) for tenant in tenants])

    assert [type(refusal) for refusal in refusals] == [type(None), type(None), RateExceeded, type(None)]
    assert world.journal.counts["submissions_throttled"] == 1


@pytest.mark.parametrize(("rate", "burst", "seconds"), [(5, 10, 1), (0.1, 1, 10), (0.01, 3, 100)])
def test_a_refusal_says_when_there_is_room_again_and_there_is(world: World, rate: float, burst: int, seconds: int):
    world.plans.plans = {"acme": TenantPlan(submission_rate=rate, submission_burst=burst)}
    taken(world, burst)

    (refusal,) = world.admission.take([a_submission()])

    assert isinstance(refusal, RateExceeded)
    problem = problem_of(refusal)
    assert (problem["status"], problem["code"], problem["retry_after"]) == (429, "rate_exceeded", seconds)
    assert f"may submit {rate:g} jobs a second, and {burst} at once" in problem["detail"]
    world.clock.tick(seconds * SECOND)
    assert taken(world, 1) == 1


def test_what_was_used_up_at_a_slow_rate_is_not_served_out_at_a_faster_one(world: World):
    world.plans.plans = {"acme": TenantPlan(submission_rate=0.1, submission_burst=1_000)}
    assert taken(world, 1_000) == 1_000
    assert taken(world, 1) == 0

    world.plans.plans = {"acme": TenantPlan(submission_rate=100)}

    assert taken(world, 500) == 500


def test_two_processes_share_one_rate(world: World):
    other = World()
    other.rates = world.rates
    world.plans.plans = other.plans.plans = FIVE_A_SECOND

    assert (taken(world, 6), taken(other, 6), taken(world, 6)) == (6, 4, 0)


def test_a_rate_that_cannot_be_looked_up_keeps_nobody_out(world: World, monkeypatch: pytest.MonkeyPatch):
    world.plans.plans = FIVE_A_SECOND

    def broken(*_: Any, **__: Any) -> Any:
        raise ConnectionError("no answer")

    monkeypatch.setattr(world.rates, "spend", broken)

    assert taken(world, 30) == 30
    assert world.events("rate_unknown")


def test_what_is_shed_is_refused_and_the_rest_is_taken(world: World):
    shed = frozenset({Priority.LOW, Priority.NORMAL})
    world.shards.publish(Conditions(published_at=NOON, lags={Priority.HIGH: 700}, shed=shed))

    world.admission.check_shed(Priority.HIGH)
    with pytest.raises(Shed) as refused:
        world.admission.check_shed(Priority.LOW)

    problem = problem_of(refused.value)
    assert (problem["status"], problem["code"], problem["retry_after"]) == (503, "shed", 60)
    assert "is 700 s behind and takes no low jobs in" in problem["detail"]
    assert world.journal.counts["submissions_shed"] == 1


def test_nothing_is_shed_while_nobody_has_looked_for_minutes(world: World):
    world.shards.publish(Conditions(published_at=NOON - timedelta(minutes=6), shed=frozenset({Priority.LOW})))

    world.admission.check_shed(Priority.LOW)


def test_a_closed_tenant_and_a_class_above_its_own_are_refused(world: World):
    world.plans.plans = {
        "closed": TenantPlan(status=TenantStatus.DRAINING),
        "acme": TenantPlan(top_priority=Priority.NORMAL),
    }

    with pytest.raises(TenantClosed):
        world.admission.check("closed", Priority.LOW)
    with pytest.raises(PriorityNotAllowed):
        world.admission.check("acme", Priority.HIGH)
    world.admission.check("acme", Priority.NORMAL)


A_FLOW_OF_THE_STAGE = NamedFlow(key="smtp", scope=FlowScope.STAGE)


def test_a_tenant_may_name_its_own_flow_before_that_has_limits_and_nothing_is_read_for_it(world: World):
    world.admission.check_flows("acme", [NamedFlow(key="stripe")])

    assert world.flows.reads == 0


def test_a_flow_of_the_stage_that_has_no_limits_is_refused_and_says_who_sets_them(world: World):
    with pytest.raises(InvalidJob) as refused:
        world.admission.check_flows("acme", [NamedFlow(key="stripe"), A_FLOW_OF_THE_STAGE])

    problem = problem_of(refused.value)
    assert (problem["status"], problem["errors"][0]["field"]) == (422, "flow.1.key")
    assert "an operator sets them with PUT /v1/flows/smtp" in problem["detail"]


def test_a_flow_of_the_stage_may_be_named_once_an_operator_has_set_its_limits(world: World):
    world.flows.set_limits(FlowId(THE_STAGE, "smtp"), FlowLimits(concurrency=2))

    admission = world.admission

    for _ in range(50):
        admission.check_flows("acme", [A_FLOW_OF_THE_STAGE])

    assert world.flows.reads == 1


def test_limits_that_a_tenant_has_set_are_not_those_of_the_stage(world: World):
    world.flows.set_limits(FlowId("acme", "smtp"), FlowLimits(concurrency=2))

    with pytest.raises(InvalidJob):
        world.admission.check_flows("acme", [A_FLOW_OF_THE_STAGE])
