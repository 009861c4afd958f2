"""The same load on what an account has at first: `prod` with 64 shards, every quota the default one, every table new."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from simulation.orders import flow, tenants_of
from simulation.scenario import Goal, Scenario, Work
from simulation.scenarios import START_OF_LOAD, WARM_UP, Make, burst, executions, herd, herd_spread, spaced, steady
from simulation.size import PROD, StageSize, like
from simulation.stage import SimulatedStage

FRESH = StageSize(stage=like(PROD, shards=64))
_REDUCED = StageSize(stage=like(PROD, shards=512))
"""With more shards, so that one of them has less of the load: as small a sample as other scenarios have."""

HELD = 600.0
"""Jobs a second that it holds, at least."""


def fresh_account(*, is_full: bool) -> Scenario:
    """How much a new account holds."""
    top, seconds = 3_000.0, 600.0 if is_full else 240.0
    start = START_OF_LOAD
    end = start + WARM_UP + seconds

    def fill(stage: SimulatedStage) -> Work:
        tenants, share = tenants_of(stage.sample, stage.wheel, each=10).names, stage.sample.share

        def rate(at: float) -> float:
            return share * (100 + (top - 100) * max(0.0, at - start - WARM_UP) / seconds)

        return Work(orders=flow(stage.dice, tenants, start=start, end=end, rate=rate))

    return Scenario(
        name="fresh_account",
        title="A fresh account: how much it holds",
        story=f"The load grows from 100 to {top:,g} jobs a second within {seconds / 60:g} minutes, on `prod` with 64 shards in an account with default quotas.",
        size=FRESH,
        sampled=spaced(64, 1),
        until=end + 240,
        window=(start + WARM_UP, end),
        fill=fill,
        goals=(Goal("held_a_second", "jobs a second up to which p99 is below 2 s", at_least=HELD),),
        is_beyond=True,
    )


def _fresh(make: Make, *, is_full: bool) -> Scenario:
    given = make(is_full=is_full)
    return replace(
        given,
        name=f"{given.name}_fresh",
        title=f"{given.title}: a fresh account",
        size=FRESH if is_full else _REDUCED,
        sampled=spaced(64, 1) if is_full else spaced(512, 1),
        goals=(),
        is_beyond=True,
        notes=(*given.notes, "no target: how far a new account is from holding it"),
    )


def steady_fresh(*, is_full: bool) -> Scenario:
    """10,000 jobs a second."""
    return _fresh(steady, is_full=is_full)


def burst_fresh(*, is_full: bool) -> Scenario:
    """50,000 submissions a second."""
    return _fresh(burst, is_full=is_full)


def executions_fresh(*, is_full: bool) -> Scenario:
    """100,000 executions a second, within a minute: no time is long enough for a new account."""
    return _fresh(partial(executions, ramp=60.0), is_full=is_full)


def herd_fresh(*, is_full: bool) -> Scenario:
    """5 million schedules."""
    return _fresh(herd, is_full=is_full)


def herd_spread_fresh(*, is_full: bool) -> Scenario:
    """The same, spread."""
    return _fresh(herd_spread, is_full=is_full)
