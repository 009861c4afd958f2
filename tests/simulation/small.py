"""A scenario of a second: four shards, all of them simulated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulation.orders import flow, tenants_of
from simulation.scenario import WRITES, Scenario, Work, lag_goal
from simulation.size import PROD, StageSize, like
from simulation.stage import SimulatedStage


def a_scenario(
    *,
    rate: float = 20.0,
    seconds: float = 60.0,
    stage: dict[str, Any] | None = None,
    happens: Callable[[SimulatedStage], None] = lambda _: None,
    **overrides: Any,
) -> Scenario:
    """happens: what else is planned on the stage."""

    def fill(stage: SimulatedStage) -> Work:
        happens(stage)
        tenants = tenants_of(stage.sample, stage.wheel, each=2).names
        orders = flow(stage.dice, tenants, start=300.0, end=300.0 + seconds, rate=lambda _: rate)
        return Work(orders=orders, weights=dict.fromkeys(tenants, 1.0))

    fields: dict[str, Any] = {
        "name": "small",
        "title": "A small load",
        "story": "Some jobs a second.",
        "size": StageSize(stage=like(PROD, **{"shards": 4, "ready_capacity": 100_000, **(stage or {})})),
        "sampled": (0, 1, 2, 3),
        "until": 420.0,
        "window": (300.0, 300.0 + seconds),
        "fill": fill,
        "goals": (lag_goal(), WRITES),
        "contended": (300.0, 360.0),
    }
    return Scenario(**{**fields, **overrides})
