"""What `make bench` tells of money: an idle month, small and large months, what a million executions add, and where it gets
cheaper than EventBridge Scheduler. All of it from measured units and bytes, so that a change of either is seen here.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from rich.console import Console

from bench.cost import Model
from bench.cost_eventbridge import crossover, eventbridge
from bench.cost_inputs import model_of
from bench.cost_terms import Assumed, Bill, Workload
from bench.results import print_table
from infra.stage import Stage

BUSY = 1e8
"""Jobs a day, of which a million more cost what they add: whatever has a bound has reached it."""

STAGES = ("small", "dev", "prod")
SMALLEST = STAGES[0]

SMALL = Workload(jobs_a_day=10_000, schedules=100)
LARGE = Workload(jobs_a_day=1e6, schedules=10_000)
"""Whose proportions a crossing is looked for in."""

USED = 0.7
"""Of provisioned capacity, on average."""

FILLS = (5, 10)

_NO_INGRESS = Assumed(fill=10, target_s=0, submission_s=0)
_ALONE = Workload(jobs_a_day=BUSY, far_share=0, retries=0, look_ups=0, batch=math.inf, tenants=1)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure: USD, or jobs a day. beside: the same of EventBridge Scheduler."""

    name: str
    value: float | None
    is_money: bool = True
    beside: float | None = None


def run(console: Console) -> list[str]:
    """Compute and print; nothing is held to a budget, and there is nothing to keep: docs/cost.md has the figures."""
    rows = {each.name: shown(each) for each in figures()}
    print_table(console, "Cost", of="of", figure="USD, or jobs a day", rows=rows)
    return []


def figures() -> list[Figure]:
    """All of them."""
    model = cache(lambda stage: model_of(Stage.named(stage), Assumed()))
    idle = [
        Figure(name=f"an idle month, `{name}`", value=model(name).bill(Workload(jobs_a_day=0)).usd) for name in STAGES
    ]
    small = Figure(
        name=f"a month of 10,000 jobs a day and 100 schedules, `{SMALLEST}`",
        value=model(SMALLEST).bill(SMALL).usd,
        beside=eventbridge(model(SMALLEST), SMALL).usd,
    )
    return [*idle, small, *_millions(), *_crossings()]


def shown(figure: Figure) -> str:
    """As a table has it."""
    if figure.value is None:
        return "never"
    text = f"{figure.value:,.2f}" if figure.is_money else f"{figure.value:,.0f}"
    return text if figure.beside is None else f"{text} (EventBridge Scheduler {figure.beside:,.2f})"


def added(model: Model, work: Workload, *, bill: Callable[[Model, Workload], Bill] = Model.bill) -> float:
    """USD that a million more executions cost, of a stage that is busy already."""
    twice = replace(work, jobs_a_day=2 * work.jobs_a_day, schedules=2 * work.schedules)
    once, both = bill(model, work), bill(model, twice)
    return (both.usd - once.usd) / (both.executions - once.executions) * 1e6


def _millions() -> list[Figure]:
    """Of a million executions in full batches, without their submission, and without what targets take."""
    prod = Stage.named("prod")
    model = model_of(prod, _NO_INGRESS)
    far = replace(_ALONE, far_share=1)
    at_least_once = {"delivery": "at_least_once"}
    together = replace(model.measured, paths={**model.measured.paths, "far, exactly_once": model.measured.together})
    paths: Mapping[str, tuple[Model, Workload]] = {
        "far, exactly_once": (model, far),
        f"far, exactly_once, provisioned capacity at {USED:.0%}": (
            model_of(prod, replace(_NO_INGRESS, provisioned=USED)),
            far,
        ),
        "far, exactly_once, submitted 25 JSON jobs a request": (replace(model, measured=together), far),
        "near, exactly_once": (model, _ALONE),
        "far, at_least_once": (model, replace(far, **at_least_once)),
        "near, at_least_once": (model, replace(_ALONE, **at_least_once)),
        "a fire of a schedule of each hour": (
            model,
            replace(_ALONE, jobs_a_day=0, schedules=BUSY / 24, fires_a_schedule_day=24),
        ),
    }
    return [
        Figure(
            name=f"a million more in batches of ten: {name}",
            value=added(each, work),
            beside=added(each, work, bill=eventbridge),
        )
        for name, (each, work) in paths.items()
    ]


def _crossings() -> list[Figure]:
    prod, assumptions = Stage.named("prod"), {f"batches of {fill}": Assumed(fill=fill) for fill in FILLS}
    return [
        Figure(
            name=f"jobs a day from which on `prod` is cheaper than EventBridge Scheduler, {name}",
            value=crossover(model_of(prod, assumed), LARGE),
            is_money=False,
        )
        for name, assumed in {**assumptions, "likely batches": Assumed()}.items()
    ]
