"""The hourly export and the hourly digest of many tenants, collected and singly, beside other jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import numpy as np

from functions.domain.jobs.collect import Collect
from functions.domain.jobs.job import Priority
from functions.domain.schedules.collect_times import closes_at
from simulation.calls import CallTable
from simulation.collections import Given
from simulation.measure import percentile
from simulation.orders import Order, flow, tenants_of
from simulation.scenario import Goal, Scenario, Work, lag_goal
from simulation.scenarios import FULL_HOUR, START_OF_LOAD, WARM_UP, spaced
from simulation.size import WAITING, StageSize
from simulation.stage import SimulatedStage
from simulation.virtual_time import instant_of, seconds_of

EXPORTS, DIGESTS = 250, 150
"""Jobs of each tenant."""

TENANTS = 4
"""Of each shard."""

RELEASED = 10.0
"""Seconds after its window at the 99th percentile: a release that is due is a job like any other, with more to read before its call."""

_HOST = ".collected.example.com"


def exports(hour: float) -> Collect:
    """More come in than one release takes; the last ones wait for their window."""
    return Collect(key="export", window=timedelta(seconds=hour))


def digests(hour: float, minute: int) -> Collect:
    """At a minute of each tenant's own."""
    length = int(hour // 60)
    minutes = ",".join(str(each) for each in range(minute % length, 60, length))
    return Collect(key="digest", at=f"{minutes} * * * *", most=500)


def collect(*, is_full: bool) -> Scenario:
    """Exports and digests, given together."""
    return _scenario(
        "collect",
        "Hourly exports and digests, collected",
        "Each is given to its tenant's target with others: exports by the hundred or after an hour, digests at a minute of the tenant's own.",
        is_full=is_full,
        is_collected=True,
        goals=(
            Goal("calls_a_collected_job", "calls of a target for each job that is collected", at_most=0.03),
            Goal("release_lag_p99_s", "seconds after its window closed, at the 99th percentile", at_most=RELEASED),
            Goal("collection_write_peak", "write units a second of the hottest collection", at_most=1_000),
        ),
    )


def collect_singly(*, is_full: bool) -> Scenario:
    """The same jobs, called one by one."""
    return _scenario(
        "collect_singly",
        "The same exports and digests, one by one",
        "Each has a call of its own, as soon as it is due.",
        is_full=is_full,
        is_collected=False,
        goals=(Goal("calls_a_collected_job", "calls of a target for each of these jobs", at_most=1),),
    )


def _scenario(
    name: str, title: str, story: str, *, is_full: bool, is_collected: bool, goals: tuple[Goal, ...]
) -> Scenario:
    hour = FULL_HOUR if is_full else FULL_HOUR / 3
    end = START_OF_LOAD + 2 * hour

    def fill(stage: SimulatedStage) -> Work:
        random, sample = stage.dice.random, stage.sample
        others = tenants_of(sample, stage.wheel, each=4, prefix="other").names
        orders = flow(stage.dice, others, start=START_OF_LOAD, end=end, rate=lambda _: _OTHERS * sample.share)
        for number, tenant in enumerate(tenants_of(sample, stage.wheel, each=TENANTS).names):
            for terms, count in ((exports(hour), EXPORTS), (digests(hour, number), DIGESTS)):
                host = f"{tenant}-{terms.key}{_HOST}"
                for _ in range(count):
                    at = START_OF_LOAD + hour * random.random()
                    collects = terms if is_collected else None
                    orders.append(Order(at, at, tenant, Priority.NORMAL, host, collect=collects))
        return Work(orders=orders)

    return Scenario(
        name=name,
        title=title,
        story=(
            f"{TENANTS * 512:,} tenants have {EXPORTS} exports and {DIGESTS} digests each within {hour / 60:g} minutes, which come one by one, "
            f"beside {_OTHERS:g} other jobs a second. {story}"
        ),
        size=StageSize(past=WAITING),
        sampled=spaced(512, 32 if is_full else 8),
        until=end + 60,
        window=(START_OF_LOAD + WARM_UP, end),
        fill=fill,
        goals=(lag_goal(), *goals),
        is_unmeasured=lambda host: host.endswith(_HOST),
        notes=(
            "measured is the lag of the other jobs",
            "the sweep of collections, which finds nothing here, is left out",
        ),
    )


_OTHERS = 100.0


def facts_of_collections(stage: SimulatedStage, calls: CallTable, orders: Sequence[Order]) -> dict[str, float]:
    """Of the jobs of a scenario of this module, collected or not; as of the whole stage."""
    hosts = [number for number, name in enumerate(calls.names) if name.endswith(_HOST)]
    jobs = sum(order.host.endswith(_HOST) for order in orders)
    if not jobs:
        return {}
    terms = {order.host: order.collect for order in orders if order.collect is not None}
    lates = [_lateness(given, terms[given.host]) for given in stage.calls.given]
    late = np.sort(np.array([each for each in lates if each is not None]))
    return {
        "collected_jobs": jobs / stage.sample.share,
        "calls_a_collected_job": float(np.isin(calls.host, hosts).sum()) / jobs,
        "release_lag_p50_s": percentile(late, 0.5),
        "release_lag_p99_s": percentile(late, 0.99),
        "release_longest_s": float(late.max(initial=0.0)),
        "collection_write_peak": stage.kept.collections.write_peak,
        "tenants_write_peak": stage.tables.tenants.writes.peak,
    }


def _lateness(given: Given, terms: Collect) -> float | None:
    """Seconds from when the window of the first of its jobs closed; None where it was made because as many waited as it takes."""
    if len(given.due) >= terms.most:
        return None
    return given.at - min(seconds_of(closes_at(terms, instant_of(due))) for due in given.due)
