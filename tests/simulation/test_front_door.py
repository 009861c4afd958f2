"""The front door: what the gateway takes, and what becomes of the jobs of a request."""

import pytest

from simulation.front_door import Gateway
from simulation.orders import flow, tenants_of
from simulation.run import simulate
from simulation.scenario import Work
from simulation.stage import SimulatedStage
from tests.simulation.small import a_scenario


def test_the_gateway_takes_its_rate_and_a_burst_beside_it() -> None:
    gateway = Gateway(rate=100.0, burst=50.0)

    taken = sum(gateway.takes(at=number / 1_000) for number in range(2_000))

    assert taken == pytest.approx(50 + 200, abs=1)


def in_requests(stage: SimulatedStage) -> Work:
    tenants = tenants_of(stage.sample, stage.wheel, each=2).names
    return Work(orders=flow(stage.dice, tenants, start=300.0, end=360.0, rate=lambda _: 20.0, lead=lambda _: 290.0))


def test_jobs_come_in_by_requests_and_run_once() -> None:
    result = simulate(a_scenario(fill=in_requests, requests_of=lambda _: 5), seed=1)

    assert result.is_held
    assert result.jobs == result.calls > 1_000
    assert 0.03 < result.facts["answer_p99_s"] < 2
    assert result.facts["requests_throttled"] == 0
    assert 0.2 < result.cost["http_api_request"] < 0.3  # a fifth of a request a job, and the last of a second


def test_what_the_gateway_refuses_is_refused_and_not_lost() -> None:
    def behind_a_slow_gateway(stage: SimulatedStage) -> Work:
        stage.front_door.gateway = Gateway(rate=1.0, burst=1.0)
        return in_requests(stage)

    result = simulate(a_scenario(fill=behind_a_slow_gateway, requests_of=lambda _: 5), seed=1)

    assert result.facts["requests_throttled"] > 100
    assert result.facts["refused"] > 500
    assert result.facts["lost"] == 0
    assert not result.is_held
