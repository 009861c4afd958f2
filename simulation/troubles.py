"""The scenarios of trouble: tenants that hog, destinations and schedulers that fail."""

from __future__ import annotations

from typing import NamedTuple

from functions.domain.jobs.job import Priority
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.targets.flows import THE_STAGE, FlowId, FlowLimits, FlowScope, NamedFlow, parse_rate
from functions.domain.tenants.plan import TenantPlan
from infra.throughput import WarmThroughput
from simulation.orders import Order, flow, tenants_of
from simulation.scenario import SLA, WRITES, Goal, Outage, Scenario, Work, lag_goal
from simulation.scenarios import START_OF_LOAD, WARM_UP, spaced
from simulation.size import PROD, SCALE, WAITING, StageSize, like
from simulation.stage import SimulatedStage
from simulation.virtual_time import Dice

_WEIGHTS = (1.0, 2.0, 4.0)

_WARM_LEDGER = {"ledger": WarmThroughput(reads=12_000, writes=8_000)}
"""For a hundred workers of one class that have nothing else to wait for."""

_SIXTEEN = like(
    PROD,
    shards=16,
    ready_capacity=400_000,
    # 3,000 submissions a second into eight keys of one bucket, two of which may meet on a partition.
    warm_throughput={"timers": WarmThroughput(reads=12_000, writes=16_000)},
)
"""The stage of the whale."""


def noisy_neighbour(*, is_full: bool) -> Scenario:
    """One tenant with 100,000 jobs, others with 10."""
    noise = 100_000 if is_full else 20_000
    capacity = noise
    due_at = 900.0

    def fill(stage: SimulatedStage) -> Work:
        noisy, *quiet = tenants_of(stage.sample, stage.wheel, each=11).by_shard[0]
        random = stage.dice.random
        orders = [Order(-1.0, due_at, noisy, Priority.NORMAL, f"{noisy}.example.com") for _ in range(noise)]
        orders += [
            Order(-1.0, due_at + 60 * random.random(), tenant, Priority.NORMAL, f"{tenant}.example.com")
            for tenant in quiet
            for _ in range(10)
        ]
        return Work(orders=orders, weights=dict.fromkeys((noisy, *quiet), 1.0))

    return Scenario(
        name="noisy_neighbour",
        title="One tenant with 100,000 jobs, ten with 10",
        story=f"A tenant has {noise:,} jobs at one instant; ten tenants of the same shard have 10 each in the minute after it.",
        size=StageSize(stage=like(PROD, shards=4, ready_capacity=capacity, max_concurrency=(20, 20, 20, 20))),
        sampled=(0, 1, 2, 3),
        until=due_at + 900,
        window=(due_at + 1e-3, due_at + 60),
        fill=fill,
        goals=(
            lag_goal(),
            Goal("fairness", "Jain's index of what tenants were served of what they were entitled to", at_least=0.95),
        ),
        contended=(due_at, due_at + 62),
        notes=("measured is the lag of the ten; nothing is sampled",),
    )


def dependency_down(*, is_full: bool) -> Scenario:
    """A destination is down for an hour."""
    start = START_OF_LOAD + WARM_UP + 180
    length = 3_600.0 if is_full else 420.0
    end = start + length + 1_500

    def host_of(dice: Dice, tenant: str) -> str:
        return "down.example.com" if dice.random.random() < _DEPENDENT else f"{tenant}.example.com"

    def fill(stage: SimulatedStage) -> Work:
        tenants = tenants_of(stage.sample, stage.wheel, each=5).names
        rate = (5_000 if is_full else 2_000) * stage.sample.share
        orders = flow(
            stage.dice, tenants, start=START_OF_LOAD, end=start + length + 300, rate=lambda _: rate, host_of=host_of
        )
        return Work(orders=orders)

    return Scenario(
        name="dependency_down",
        title="A dependency is down for an hour",
        story=f"One call in five goes to a destination that answers 503 for {length / 60:g} minutes. Breakers park its jobs.",
        size=StageSize(past=WAITING),
        sampled=spaced(512, 2),
        until=end,
        window=(START_OF_LOAD + WARM_UP, start + length + 300),
        fill=fill,
        goals=(
            lag_goal(),
            Goal("calls_a_job_in_outage", "calls of the failing destination for each of its jobs", at_most=0.5),
            Goal("recovered_after_s", "seconds after its return until the last job of it has run", at_most=1_300),
            Goal("dead_letter_share", "dead letters, of all jobs", at_most=0.01),
        ),
        outage=Outage(start, start + length, lambda host: host == "down.example.com"),
        notes=(
            "measured is the lag of the jobs that go elsewhere",
            "each process finds out by itself: a whole stage has more processes, and more failed calls, than the sample",
        ),
    )


_DEPENDENT = 0.2


def scheduler_down(*, is_full: bool) -> Scenario:
    """Nothing is scanned for three hours."""
    start = START_OF_LOAD + WARM_UP
    length = 10_800.0 if is_full else 960.0
    back_at = start + length
    end = back_at + (3_000 if is_full else 600)

    def fill(stage: SimulatedStage) -> Work:
        tenants = tenants_of(stage.sample, stage.wheel, each=6).names
        weights = {tenant: _WEIGHTS[number % 3] for number, tenant in enumerate(tenants)}
        for tenant, weight in weights.items():
            stage.give_plan(tenant, TenantPlan(weight=weight))
        rate = 10_000 * stage.sample.share
        orders = flow(
            stage.dice,
            tenants,
            start=START_OF_LOAD,
            end=end - 60,
            rate=lambda _: rate,
            priority_of=lambda _: Priority.NORMAL,
        )
        return Work(orders=orders, weights=weights)

    return Scenario(
        name="scheduler_down",
        title="The scheduler is down for three hours",
        story=f"10,000 jobs a second; scanners and sweeper stop for {length / 3_600:g} hours, while submissions and workers go on.",
        size=StageSize(past=WAITING),
        sampled=spaced(512, 1),
        until=end,
        window=(back_at + (2_400 if is_full else 420), end - 60),
        fill=fill,
        goals=(
            lag_goal(),
            Goal("caught_up_after_s", "seconds after its return until no bucket is old", at_most=2_400),
            Goal("queue_depth_peak", "messages in the ready queues", at_most=1.3 * SCALE.ready_capacity),
        ),
        down=(start, back_at),
        contended=(back_at, back_at + (600 if is_full else 120)),
        notes=("measured is the lag once it has caught up",),
    )


def weights(*, is_full: bool) -> Scenario:
    """Tenants of different weights, each with more than may go out."""
    each = 30_000 if is_full else 8_000
    due_at = 900.0

    def fill(stage: SimulatedStage) -> Work:
        tenants = tenants_of(stage.sample, stage.wheel, each=3).by_shard[0]
        shares = dict(zip(tenants, _WEIGHTS, strict=True))
        for tenant, weight in shares.items():
            stage.give_plan(tenant, TenantPlan(weight=weight))
        orders = [
            Order(-1.0, due_at, tenant, Priority.NORMAL, f"{tenant}.example.com")
            for tenant in tenants
            for _ in range(each)
        ]
        return Work(orders=orders, weights=shares)

    return Scenario(
        name="weights",
        title="Three tenants of weights 1, 2 and 4",
        story=f"Three tenants of one shard have {each:,} jobs each at one instant; a tick may promote a sixth of them.",
        size=StageSize(
            stage=like(
                PROD,
                shards=4,
                ready_capacity=2 * each,
                max_concurrency=(100, 100, 100, 100),
                warm_throughput=_WARM_LEDGER,
            )
        ),
        sampled=(0, 1, 2, 3),
        until=due_at + 900,
        window=(due_at, due_at + 60),
        fill=fill,
        goals=(
            Goal(
                "promoted_fairness", "Jain's index of what is promoted of tenants, against their weights", at_least=0.95
            ),
            Goal("lag_longest_s", "seconds until the last of them runs", at_most=3 * SLA),
        ),
        contended=(due_at - 120, due_at),
        notes=("shares are those of the first two ticks; nothing is sampled",),
    )


def whale(*, is_full: bool) -> Scenario:
    """One tenant on many shards, with a cap."""
    jobs, cap = (90_000, 400.0) if is_full else (18_000, 200.0)
    submitted_at, due_at = 300.0, 900.0
    end = due_at + jobs / cap + 120

    def fill(stage: SimulatedStage) -> Work:
        dice = stage.dice
        others = tenants_of(stage.sample, stage.wheel, each=5, prefix="other").names
        stage.give_plan("whale", TenantPlan(subshards=8, execution_rate=cap))
        orders = [
            Order(submitted_at + 30 * dice.random.random(), due_at + 60 * dice.random.random(), "whale", *_WHALE)
            for _ in range(jobs)
        ]
        orders += flow(dice, others, start=START_OF_LOAD, end=end, rate=lambda _: 50.0 if is_full else 10.0)
        return Work(orders=orders)

    return Scenario(
        name="whale",
        title="A whale on eight shards, with a cap",
        story=(
            f"One tenant submits {jobs:,} jobs within 30 s that come due within a minute; it has 8 sub-shards and may have "
            f"{cap:g} executions a second. Others have jobs too, on the same shards."
        ),
        size=StageSize(stage=_SIXTEEN),
        sampled=tuple(range(16)),
        until=end + 60,
        window=(START_OF_LOAD + WARM_UP, end),
        fill=fill,
        goals=(
            lag_goal(),
            WRITES,
            Goal("most_of_cap", "executions of the whale in any ten seconds, of its cap", at_most=1.1),
            Goal("capped_done_after_s", "seconds until the last of the whale has run", at_most=1.1 * jobs / cap + 60),
        ),
        is_unmeasured=lambda host: host == _WHALE[1],
        notes=("measured is the lag of the others",),
    )


_WHALE = (Priority.NORMAL, "whale.example.com")


def whale_below_cap(*, is_full: bool) -> Scenario:
    """A capped tenant on many shards that has less than it may have."""
    end = START_OF_LOAD + WARM_UP + (600.0 if is_full else 180.0)

    def fill(stage: SimulatedStage) -> Work:
        stage.give_plan("whale", TenantPlan(subshards=8, execution_rate=100.0))
        return Work(orders=flow(stage.dice, ["whale"], start=START_OF_LOAD, end=end, rate=lambda _: 50.0))

    return Scenario(
        name="whale_below_cap",
        title="A whale on eight shards, below its cap",
        story="One tenant has 50 jobs a second, and may have 100: its cap is no reason to wait.",
        size=StageSize(stage=_SIXTEEN),
        sampled=tuple(range(16)),
        until=end + 240,
        window=(START_OF_LOAD + WARM_UP, end),
        fill=fill,
        goals=(lag_goal(), WRITES, Goal("most_of_cap", "executions in any ten seconds, of its cap", at_most=1.1)),
    )


def shared_flow(*, is_full: bool) -> Scenario:
    """Twenty tenants and one slow downstream."""
    each = 100 if is_full else 24
    due_at = 120.0
    jobs = 20 * each
    done = jobs / _DOWNSTREAM.calls_a_second

    def fill(stage: SimulatedStage) -> Work:
        stage.kept.flows.set_limits(FlowId(THE_STAGE, _DOWNSTREAM.key), _DOWNSTREAM.limits)
        named = (NamedFlow(key=_DOWNSTREAM.key, scope=FlowScope.STAGE),)
        tenants = [f"tenant-{number}" for number in range(20)]
        shares = {tenant: float(1 + number % 2) for number, tenant in enumerate(tenants)}
        for tenant, weight in shares.items():
            stage.give_plan(tenant, TenantPlan(weight=weight))
        orders = [
            Order(0.0, due_at, tenant, Priority.NORMAL, "downstream.example.com", flows=named)
            for tenant in tenants
            for _ in range(each)
        ]
        return Work(orders=orders, weights=shares)

    return Scenario(
        name="shared_flow",
        title="Twenty tenants on one flow of the stage",
        story=(
            f"Twenty tenants, of weights 1 and 2 in turns, have {each} jobs each at one instant, and all of them name a flow that "
            "lets 60 start in a minute, with a burst of 10."
        ),
        size=StageSize(stage=like(PROD, shards=4)),
        sampled=(0, 1, 2, 3),
        until=due_at + 1.2 * done + 300,
        window=(due_at, due_at + 1.2 * done),
        fill=fill,
        goals=(
            Goal("most_in_a_minute", "calls in any minute: no more than the rate and the burst", at_most=70),
            Goal("fairness", "Jain's index of what tenants were served of what they were entitled to", at_least=0.95),
            Goal("flow_done_after_s", "seconds until the last has run: the rate is used", at_most=1.1 * done + 30),
        ),
        # Until those of weight 2 are nearly done.
        contended=(due_at, due_at + 0.7 * done),
        notes=("nothing is sampled",),
    )


class _Downstream(NamedTuple):
    key: str
    limits: FlowLimits
    calls_a_second: float


_DOWNSTREAM = _Downstream("downstream", FlowLimits(rate=parse_rate("60/min"), burst=10), 1.0)


def retry_storm(*, is_full: bool) -> Scenario:
    """Many destinations fail at once."""
    start = START_OF_LOAD + WARM_UP + 60
    length = 300.0 if is_full else 120.0
    end = start + length + 900
    retry = RetryPolicy(strategy=Strategy.DECORRELATED_JITTER, attempts=40)

    def host_of(dice: Dice, tenant: str) -> str:
        if dice.random.random() < _FAILING:
            return f"region-{dice.random.randrange(5_000)}.example.com"
        return f"{tenant}.example.com"

    def fill(stage: SimulatedStage) -> Work:
        tenants, rate = tenants_of(stage.sample, stage.wheel, each=10).names, 10_000 * stage.sample.share
        orders = flow(
            stage.dice,
            tenants,
            start=START_OF_LOAD,
            end=start + length + 300,
            rate=lambda _: rate,
            host_of=host_of,
            retry=retry,
        )
        return Work(orders=orders)

    return Scenario(
        name="retry_storm",
        title="Retry storm",
        story=(
            f"10,000 jobs a second; for {length / 60:g} minutes 60 % of the calls fail, on 5,000 hosts, "
            "so that no breaker sees enough failures of one."
        ),
        size=StageSize(past=WAITING),
        sampled=spaced(512, 2 if is_full else 1),
        until=end,
        window=(START_OF_LOAD + WARM_UP, start + length + 300),
        fill=fill,
        goals=(
            lag_goal(SLA),
            Goal("dead_letter_share", "dead letters, of all jobs", at_most=0.01),
            Goal("recovered_after_s", "seconds after the end until the last job of it has run", at_most=900),
        ),
        outage=Outage(start, start + length, lambda host: host.startswith("region-")),
        notes=("measured is the lag of the jobs that go elsewhere",),
    )


_FAILING = 0.6
