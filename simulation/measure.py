"""What a run is judged by: percentiles of lag, and how fairly tenants were served."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from functions.domain.jobs.job import Priority
from simulation.calls import CallTable, Column
from simulation.orders import Order


@dataclass(frozen=True, slots=True)
class Lag:
    """Lags of some calls, in seconds."""

    count: int
    p50: float
    p95: float
    p99: float
    p999: float
    longest: float


@dataclass(frozen=True, slots=True)
class Point:
    """Some seconds of a run, as of the whole stage: jobs a second that came due and that were called, and their lag.

    lag: at the 99th percentile of those that came due then.
    """

    at: float
    due: float
    called: float
    lag: float


NO_LAG = Lag(0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Share:
    """What a tenant was served in a contended time. entitled: what it had a right to; both in jobs of the sample."""

    tenant: str
    weight: float
    served: float
    entitled: float


def percentile(ordered: Column, quantile: float) -> float:
    """The smallest value that at least this share of the values does not exceed (nearest rank); 0 of none."""
    if not len(ordered):
        return 0.0
    return float(ordered[max(0, math.ceil(quantile * len(ordered)) - 1)])


def lag_of(lags: Column) -> Lag:
    """The distribution of lags."""
    if not len(lags):
        return NO_LAG
    ordered = np.sort(lags)
    p50, p95, p99, p999 = (percentile(ordered, quantile) for quantile in (0.5, 0.95, 0.99, 0.999))
    return Lag(len(ordered), p50, p95, p99, p999, float(ordered[-1]))


def lag_by_class(calls: CallTable) -> dict[str, Lag]:
    """The lags of each class that has any."""
    found = {priority.name.lower(): lag_of(calls.lag[calls.priority == priority.value]) for priority in Priority}
    return {name: lag for name, lag in found.items() if lag.count}


def jain(values: Sequence[float]) -> float:
    """Jain's index: 1 when all are equal, 1/n when one has everything (Jain, Chiu and Hawe, 1984). 1 of none."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def entitlements(demands: Mapping[str, float], weights: Mapping[str, float], *, capacity: float) -> dict[str, float]:
    """Max-min fair shares by weight: nobody gets more than it asks for, and what it leaves is the others'."""
    entitled: dict[str, float] = {}
    open_demands, left = dict(demands), capacity
    while open_demands:
        each = left / sum(weights[tenant] for tenant in open_demands)
        modest = [tenant for tenant, demand in open_demands.items() if demand <= each * weights[tenant]]
        if not modest:
            return entitled | {tenant: each * weights[tenant] for tenant in open_demands}
        for tenant in modest:
            entitled[tenant] = open_demands.pop(tenant)
            left -= entitled[tenant]
    return entitled


def _shares(calls: CallTable, demands: Mapping[str, float], weights: Mapping[str, float]) -> list[Share]:
    """What each tenant was served by these calls, beside what it was entitled to of all of them.

    demands: jobs that could have been served meanwhile.
    """
    served = {tenant: float(np.sum(calls.tenant == calls.number_of(tenant))) for tenant in demands}
    entitled = entitlements(demands, weights, capacity=sum(served.values()))
    return [Share(tenant, weights[tenant], served[tenant], entitled[tenant]) for tenant in demands]


def shares_between(
    calls: CallTable, orders: Sequence[Order], weights: Mapping[str, float], *, between: tuple[float, float]
) -> list[Share]:
    """What tenants were served in a time, and what they were entitled to: of those with a weight."""
    start, end = between
    demands = dict.fromkeys(weights, 0.0)
    for order in orders:
        if order.tenant in demands and order.due_at < end:
            demands[order.tenant] += 1
    before = calls.where(calls.at < start)
    for tenant in demands:
        demands[tenant] -= float(np.sum(before.tenant == before.number_of(tenant)))
    return _shares(calls.where((calls.at >= start) & (calls.at < end)), demands, weights)


def points_of(calls: CallTable, *, until: float, share: float) -> list[Point]:
    """A run in pieces of some seconds."""
    width = max(1.0, round(until / _POINTS))
    places = int(until / width) + 1
    due_in = ((calls.at - calls.lag) / width).astype(int)
    called_in = np.bincount((calls.at / width).astype(int), minlength=places)
    order = np.argsort(due_in, kind="stable")
    edges = np.searchsorted(due_in[order], np.arange(places + 1))
    lags = calls.lag[order]
    return [
        Point(
            at=place * width,
            due=float(edges[place + 1] - edges[place]) / width / share,
            called=float(called_in[place]) / width / share,
            lag=percentile(np.sort(lags[edges[place] : edges[place + 1]]), 0.99),
        )
        for place in range(places)
    ]


_POINTS = 150
"""Of a series, about."""


def fairness(found: Sequence[Share]) -> float:
    """Jain's index over what each was served of what it was entitled to."""
    return jain([share.served / share.entitled for share in found if share.entitled])
