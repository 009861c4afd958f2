"""Schedules that are put by way of the API: each has its alarm, its units, and its turn in the sum of its tenant."""

from collections.abc import Callable

import pytest

from functions.domain.tenants.plan import TenantPlan
from simulation.front_door import Gateway
from simulation.orders import flow, tenants_of
from simulation.outcome import Result
from simulation.run import simulate
from simulation.scenario import Work
from simulation.schedule_requests import Put
from simulation.schedule_store import Sums
from simulation.stage import SimulatedStage
from simulation.waiting import DEFINITION
from tests.simulation.small import a_scenario


def created(
    *,
    count: int = 100,
    apart: float = 1.0,
    body: dict[str, object] | None = None,
    happens: Callable[[SimulatedStage], None] = lambda _: None,
) -> Result:
    """Schedules of one tenant. apart: seconds from one request to the next."""

    def fill(stage: SimulatedStage) -> Work:
        happens(stage)
        tenants = tenants_of(stage.sample, stage.wheel, each=2).names
        puts = [(60 + number * apart, Put("t", f"daily-{number}", body or DEFINITION)) for number in range(count)]
        orders = flow(stage.dice, tenants, start=300.0, end=310.0, rate=lambda _: 5.0)
        return Work(orders=orders, puts=puts)

    return simulate(a_scenario(fill=fill, goals=()), seed=1)


def test_each_schedule_has_the_alarm_of_its_first_fire_and_costs_what_the_page_says() -> None:
    result = created()

    assert result.facts["created"] == 100
    assert result.facts["put_refused"] == result.facts["without_alarm"] == 0
    # Definition, state and sum in a transaction, the alarm, and the state once more.
    assert result.facts["put_writes"] == 2 * 3 + 1 + 1
    # Definition and state in a transaction, before and after.
    assert result.facts["put_reads"] == 2 * 2 * 2
    assert 5 < result.facts["put_usd"] < 20
    assert 159 < result.facts["created_until_s"] < 162


def test_requests_of_one_tenant_at_once_collide_and_are_tried_again() -> None:
    result = created(apart=0.02)

    assert result.facts["created"] == 100
    assert result.facts["collisions_a_put"] > 0.1
    assert result.facts["put_writes"] > 8


def test_more_than_the_sum_of_a_tenant_takes_are_refused_whole() -> None:
    result = created(count=600, apart=0.001)

    assert 0 < result.facts["put_refused"] < 600
    assert result.facts["created"] == 600 - result.facts["put_refused"]
    assert result.facts["without_alarm"] == 0


def test_a_tenant_gets_no_more_schedules_than_its_plan_allows() -> None:
    result = created(happens=lambda stage: stage.give_plan("t", TenantPlan(max_schedules=60)))

    assert (result.facts["created"], result.facts["put_refused"]) == (60, 40)


def test_a_definition_that_the_api_refuses_is_refused() -> None:
    result = created(body={**DEFINITION, "cron": "61 * * * *"})

    assert (result.facts["created"], result.facts["put_refused"]) == (0, 100)


def test_the_gateway_refuses_requests_of_schedules_too() -> None:
    def behind_a_slow_gateway(stage: SimulatedStage) -> None:
        stage.front_door.gateway = Gateway(rate=0.5, burst=1.0)

    result = created(happens=behind_a_slow_gateway)

    assert result.facts["put_refused"] == result.facts["requests_throttled"] == 50


@pytest.mark.parametrize(
    ("start", "end", "is_free"), [(0.5, 1.0, True), (1.5, 2.5, False), (0.5, 3.5, False), (2.0, 2.5, True)]
)
def test_a_sum_is_held_by_one_transaction_at_a_time(start: float, end: float, *, is_free: bool) -> None:
    sums = Sums()
    assert sums.take("t", start=1.0, end=2.0)

    assert sums.take("other", start=start, end=end)
    assert sums.take("t", start=start, end=end) is is_free
    assert sums.collisions == (not is_free)
