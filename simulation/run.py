"""Run a scenario, and measure it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from math import inf

import numpy as np

from bench.prices import read_prices
from simulation.baselines import BASELINES, conditions_of, run_baseline
from simulation.calls import CallTable
from simulation.collecting import facts_of_collections
from simulation.facts import facts_of_audit, facts_of_puts
from simulation.limits import Limits
from simulation.measure import (
    Point,
    Share,
    entitlements,
    fairness,
    lag_by_class,
    lag_of,
    percentile,
    points_of,
    shares_between,
)
from simulation.network import TABLES
from simulation.orders import Order, Submissions, put_schedules
from simulation.outcome import Result, Verdict
from simulation.partitions import Sample
from simulation.scenario import ALWAYS, SAFE, STEADY_LAG, Scenario
from simulation.stage import MINUTE, SimulatedStage, totals

_A_MOMENT = 1.0
"""Seconds: a fire at the very beginning of the window is the first one."""


def simulate(
    scenario: Scenario, *, seed: int, limits: Limits | None = None, advance: Callable[[float], None] = lambda _: None
) -> Result:
    """Run it. advance: called with the share that is done."""
    began_at = time.process_time()
    limits = limits or Limits()
    sample = Sample(scenario.size.shards, scenario.sampled)
    stage = SimulatedStage(
        scenario.size,
        sample,
        seed=seed,
        target=scenario.target(),
        limits=limits,
        slowness=scenario.slowness,
    )
    stage.is_down = scenario.is_down
    work = scenario.fill(stage)
    submissions = Submissions(stage, scenario.requests_of)
    submissions.plan(work.orders)
    for at, put in work.puts:
        stage.world.at(at, partial(stage.front_door.put, put))
    fires = put_schedules(stage, work.schedules, after=scenario.window[0] - _A_MOMENT)
    stage.run(until=scenario.until, advance=lambda at: advance(0.9 * at / scenario.until))
    submissions.collect()
    accepted = submissions.keys | {key: order.due_at for key, order in fires.items()}
    due = {key: due_at for key, due_at in accepted.items() if due_at < scenario.until}
    orders = [order for order in (*work.orders, *fires.values()) if order.due_at < scenario.until]
    result = _measured(scenario, stage, submissions, orders=orders, weights=work.weights, due=due, seed=seed)
    conditions = conditions_of(scenario, stage)
    baselines = [run_baseline(baseline, orders, work.weights, conditions) for baseline in BASELINES]
    return replace(result, baselines=baselines, seconds=time.process_time() - began_at)


def _measured(
    scenario: Scenario,
    stage: SimulatedStage,
    submissions: Submissions,
    *,
    orders: Sequence[Order],
    weights: Mapping[str, float],
    due: Mapping[str, float],
    seed: int,
) -> Result:
    calls = stage.calls.table()
    measured = scenario.measured(calls)
    found = _shares(scenario, calls, orders, weights)
    lag = lag_of(measured.lag)
    even = fairness(found) if any(share.served for share in found) else None
    promoted = _promoted_shares(scenario, stage, orders, weights)
    facts = _facts(scenario, stage, submissions, due)
    facts |= {"lag_p99_s": lag.p99, "lag_p999_s": lag.p999, "lag_longest_s": lag.longest}
    facts |= {f"lag_p99_s_{name}": each.p99 for name, each in lag_by_class(measured).items()}
    facts["called_a_second"] = _called_a_second(calls, scenario.window, share=stage.sample.share)
    points = points_of(calls, until=scenario.until, share=stage.sample.share)
    facts["held_a_second"] = _held_a_second(points, scenario.window)
    facts["run_share"] = len(measured.at) / max(1, sum(1 for at in due.values() if _is_within(at, scenario.window)))
    facts["last_measured_s"] = float(measured.at.max(initial=scenario.window[0])) - scenario.window[0]
    facts["both_sides"] = min(stage.sent_of[shard] for shard in scenario.sampled)
    facts |= facts_of_audit(stage) | facts_of_puts(stage)
    facts |= _facts_of_caps(stage, calls) | _facts_of_flows(stage, calls)
    facts |= facts_of_collections(stage, calls, orders)
    facts |= _facts_of_outage(scenario, calls, orders)
    facts |= {"fairness": even} if even is not None else {}
    facts |= {"promoted_fairness": fairness(promoted)} if promoted else {}
    share = stage.sample.share
    return Result(
        name=scenario.name,
        title=scenario.title,
        story=scenario.story,
        seed=seed,
        sample=(
            f"{len(scenario.sampled):,} of {scenario.size.shards:,} shards"
            if share < 1
            else f"all {scenario.size.shards:,} shards"
        ),
        share=share,
        notes=scenario.notes,
        stage=list(scenario.size.words(stage.limits, TABLES)),
        jobs=len(due),
        calls=len(calls.at),
        facts=facts,
        lag=lag,
        by_class=lag_by_class(measured),
        shares=promoted,
        fairness=even,
        cost=_cost(totals(stage), jobs=len(due) / share, earlier=_written_before(submissions, due) / share),
        points=points,
        minutes=[asdict(minute) for minute in stage.minutes],
        verdicts=[
            Verdict(goal, facts[goal.fact], goal.holds(facts))
            for goal in (*scenario.goals, *(SAFE if scenario.is_beyond else ALWAYS))
        ],
        counts=dict(stage.counts.counts),
    )


def _shares(scenario: Scenario, calls: CallTable, orders: Sequence[Order], weights: Mapping[str, float]) -> list[Share]:
    if scenario.contended is None or not weights:
        return []
    return shares_between(calls, orders, weights, between=scenario.contended)


def _promoted_shares(
    scenario: Scenario, stage: SimulatedStage, orders: Sequence[Order], weights: Mapping[str, float]
) -> list[Share]:
    """What the scanners let out of each tenant in the contended minutes, of what waited for them."""
    if scenario.contended is None:
        return []
    start, end = (int(second // MINUTE) for second in scenario.contended)
    served = {
        tenant: float(sum(stage.promoted_of[minute, tenant] for minute in range(start, end))) for tenant in weights
    }
    horizon = scenario.contended[1] + stage.wheel.lookahead.total_seconds()
    guard = stage.wheel.guard.total_seconds()
    far = Counter(
        order.tenant for order in orders if order.due_at < horizon and order.due_at - order.submitted_at >= guard
    )
    before = {tenant: sum(stage.promoted_of[minute, tenant] for minute in range(start)) for tenant in weights}
    waiting = {tenant: max(served[tenant], far[tenant] - before[tenant]) for tenant in weights}
    entitled = entitlements(waiting, weights, capacity=sum(served.values()))
    return [Share(tenant, weight, served[tenant], entitled[tenant]) for tenant, weight in weights.items()]


def _facts(
    scenario: Scenario, stage: SimulatedStage, submissions: Submissions, due: Mapping[str, float]
) -> dict[str, float]:
    effects, tables = stage.calls.effects, stage.tables
    letters = {f"{letter.tenant}#{letter.identity}" for letter in stage.kept.letters.letters.values()}
    lost = [key for key in due if key not in effects and key not in letters]
    share = stage.sample.share
    return {
        "lost": len(lost),
        "doubled": sum(count > 1 for count in effects.values()),
        "early": stage.calls.early,
        "refused": submissions.refused,
        "refused_share": submissions.refused / max(1, submissions.refused + len(due)),
        "requests_throttled": stage.front_door.throttled,
        "api_concurrency_peak": stage.front_door.function.most_busy / share,
        "answer_p99_s": percentile(np.sort(np.array(stage.front_door.answers)), 0.99),
        "dead_letters": len(letters) + sum(len(queue.dead) for queue in stage.queues.values()),
        "dead_letter_share": len(letters) / max(1, len(due)),
        "timers_write_peak": tables.timers.writes.peak,
        "timers_read_peak": tables.timers.reads.peak,
        "timers_table_write_peak": tables.timers.writes.peak_of_table,
        "timers_throttled": tables.timers.writes.throttled + tables.timers.reads.throttled,
        "ledger_write_peak": tables.ledger.writes.peak,
        "ledger_table_write_peak": tables.ledger.writes.peak_of_table,
        "ledger_throttled": tables.ledger.writes.throttled,
        "failed_ticks": stage.failed_scans,
        "over_quota": sum(use.over_quota for table in tables.by_name().values() for use in (table.reads, table.writes)),
        "queue_depth_peak": max(minute.visible + minute.delayed + minute.in_flight for minute in stage.minutes),
        "visible_peak": max(minute.visible for minute in stage.minutes),
        "in_flight_peak": max(minute.in_flight for minute in stage.minutes),
        "concurrency_peak": stage.worker.most_busy / share,
        "oldest_bucket_age_peak_s": max(minute.oldest_bucket_age for minute in stage.minutes[1:]),
        "sweep_pass_s": max(stage.sweep.passes.values(), default=inf if stage.sweeps else 0.0),
        "healed": stage.sweep.healed,
        "caught_up_after_s": _caught_up(scenario, stage),
        "last_effect_s": float(stage.calls.table().at.max(initial=0.0)),
    }


def _is_within(at: float, window: tuple[float, float]) -> bool:
    return window[0] <= at < window[1]


def _held_a_second(points: Sequence[Point], window: tuple[float, float]) -> float:
    """The most that came due a second before any was late."""
    most = 0.0
    for point in points:
        if _is_within(point.at, window):
            if point.lag > STEADY_LAG:
                break
            most = max(most, point.due)
    return most


def _called_a_second(calls: CallTable, window: tuple[float, float], *, share: float) -> float:
    start, end = window
    return float(np.sum((calls.at >= start) & (calls.at < end))) / (end - start) / share


def _caught_up(scenario: Scenario, stage: SimulatedStage) -> float:
    """Seconds from the return of the scanners until no bucket was old any more; 0 where they were never away."""
    if scenario.down is None:
        return 0.0
    end = scenario.down[1]
    return max((minute.at - end for minute in stage.minutes if minute.oldest_bucket_age > 0), default=0.0)


def _facts_of_outage(scenario: Scenario, calls: CallTable, orders: Sequence[Order]) -> dict[str, float]:
    outage = scenario.outage
    if outage is None:
        return {}
    numbers = [calls.number_of(host) for host in scenario.excluded(calls.names)]
    called = calls.where(np.isin(calls.host, numbers))
    during = (called.at >= outage.start) & (called.at < outage.end)
    asked = sum(1 for order in orders if outage.is_failing(order.host, order.due_at))
    return {
        "calls_a_job_in_outage": float(np.sum(during)) / max(1, asked),
        "recovered_after_s": max(0.0, float(called.at.max(initial=0.0)) - outage.end),
    }


def _facts_of_caps(stage: SimulatedStage, calls: CallTable) -> dict[str, float]:
    """The most that was called of a capped tenant in any ten seconds, of its rate."""
    found: dict[str, float] = {}
    for tenant, plan in stage.plans.plans.items():
        if plan.has_rate:
            at = calls.at[calls.tenant == calls.number_of(tenant)]
            most = np.bincount((at / _CAP_SECONDS).astype(int)).max(initial=0) / _CAP_SECONDS
            found["most_of_cap"] = max(found.get("most_of_cap", 0.0), float(most) / plan.execution_rate)
            found["capped_done_after_s"] = float(at.max(initial=0.0) - at.min(initial=stage.world.now))
    return found


_CAP_SECONDS = 10


def _facts_of_flows(stage: SimulatedStage, calls: CallTable) -> dict[str, float]:
    """The most that was called in any minute, where every job names a flow of the stage; until when the last was."""
    if not stage.kept.flows.set:
        return {}
    at = np.sort(calls.at)
    most = np.arange(1, len(at) + 1) - np.searchsorted(at, at - MINUTE, side="left")
    return {"most_in_a_minute": float(most.max(initial=0)), "flow_done_after_s": float(at[-1] - at[0])}


def _written_before(submissions: Submissions, due: Mapping[str, float]) -> float:
    """Rows of the jobs of a run that were written before it, less those that were written in it for jobs after it."""
    return submissions.earlier - sum(key not in due for key in submissions.keys)


def _cost(used: Mapping[str, float], *, jobs: float, earlier: float) -> dict[str, float]:
    """USD for a million jobs, by unit. earlier: write units from before the run."""
    prices = read_prices()
    units = {**used, "dynamodb_write_unit": used["dynamodb_write_unit"] + earlier}
    return {unit: count * prices[unit] / jobs for unit, count in units.items()}
