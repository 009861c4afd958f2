"""Which curves of a soak have to be flat, and by which budget; which are only reported, and why."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from soak.flat import Budget, Piece, Verdict, judge_flat, phases_of
from soak.troubles import CYCLE
from testkit.deployment import FUNCTIONS
from verification.history import Call

Curve = Sequence[tuple[float, float]]

WINDOW = 30.0
"""Seconds of due times whose lag is one point, and of whose dead letters are counted for one."""

PROCESS_WARM_UP = 45.0
"""Seconds of a process's life that are left out: it imports, connects, and fills its pools."""

SHORTEST_WARM_UP = 270.0
"""Seconds until as many far jobs come due as are submitted, and the first cycle of faults is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """A curve by its name; `budget` is None where it is only reported. why: what it shows, or why it may grow."""

    name: str
    unit: str
    why: str
    budget: Budget | None = None
    digits: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """A gauge, and what was found of it."""

    gauge: Gauge
    verdict: Verdict

    @property
    def is_wrong(self) -> bool:
        """Whether it had to be flat, and is not."""
        return self.gauge.budget is not None and self.verdict.is_flat is False


_MEMORY = tuple(
    Gauge(
        name=f"memory {function}",
        unit="MiB",
        why="a process of the function, within its life",
        budget=Budget(0.05, 4.0),
        digits=1,
    )
    for function in FUNCTIONS
)

GAUGES = (
    *_MEMORY,
    Gauge(name="processes", unit="", why="of all functions", budget=Budget(0.25, 3)),
    Gauge(name="lag p50", unit="ms", why="of steady jobs, by when they were due", budget=Budget(0.25, 100)),
    Gauge(name="lag p95", unit="ms", why="the same; deaths of workers are in it", budget=Budget(0.5, 1_000)),
    Gauge(name="depth", unit="", why="messages on the ready queues", budget=Budget(0.2, 20)),
    Gauge(name="waiting", unit="", why="those that are due", budget=Budget(0.2, 10)),
    Gauge(name="dead-letter queues", unit="", why="messages on them", budget=Budget(0, 0.5)),
    Gauge(name="timers", unit="rows", why="without those that wait for their ttl alone", budget=Budget(0.2, 20)),
    Gauge(name="ledger, open", unit="rows", why="without those that wait for their ttl alone", budget=Budget(0.2, 20)),
    Gauge(name="leases", unit="", why="of jobs that run", budget=Budget(0.2, 5)),
    Gauge(name="leases that are over", unit="", why="of workers that died", budget=Budget(0.2, 5)),
    Gauge(name="rows of schedules", unit="rows", why="as many as there are schedules", budget=Budget(0, 0.5)),
    Gauge(name="rows of schedule_state", unit="rows", why="the same", budget=Budget(0, 0.5)),
    Gauge(name="rows of shards", unit="rows", why="one a shard, and four", budget=Budget(0, 0.5)),
    Gauge(name="rows of tenants", unit="rows", why="a tenant, day, class and shard; breakers", budget=Budget(0.1, 6)),
    Gauge(name="oldest bucket", unit="s", why="since its first job was due", budget=Budget(0.2, 20)),
    Gauge(name="cursors behind", unit="", why="tenants with a cursor of their own", budget=Budget(0.2, 2)),
    Gauge(name="breakers", unit="", why="that are not closed", budget=Budget(0.2, 1)),
    Gauge(name="late", unit="%", why="steady jobs more than 2 s late", budget=Budget(0.25, 3), digits=1),
    Gauge(name="dead letters", unit="", why=f"new ones in {WINDOW:g} s", budget=Budget(0.25, 1), digits=1),
    Gauge(name="timers, all rows", unit="rows", why="deleted by their ttl after 14 days", digits=0),
    Gauge(name="ledger, all rows", unit="rows", why="deleted by their ttl after 22 days", digits=0),
    Gauge(name="rows of minutes", unit="rows", why="of status and top; deleted by their ttl after an hour", digits=0),
    Gauge(name="memory emulator", unit="MiB", why="the emulator keeps every row, message and log line", digits=0),
)

_LATE_MS = 2_000


def warm_up_of(seconds: float) -> float:
    """How much of a run is left out of the judgement: a third, and no less than it takes to be steady."""
    return max(seconds / 3, SHORTEST_WARM_UP)


def judge_curves(
    curves: Mapping[str, Curve], lives: Mapping[str, Iterable[Curve]], *, start: float, end: float
) -> list[Judged]:
    """Every gauge from `start` to `end`, in seconds since the run began; lives: the memory of processes, by function."""
    return [
        Judged(
            gauge,
            judge_flat(_pieces(gauge, curves, lives, start, end), gauge.budget or _TOLD, span=max(0, end - start)),
        )
        for gauge in GAUGES
    ]


def lags_of(
    calls: Iterable[Call], *, steady: Collection[str], begun_at: datetime
) -> dict[str, list[tuple[float, float]]]:
    """Lag by when jobs were due: of the first calls of first attempts, in windows of 30 s."""
    windows: dict[int, list[float]] = defaultdict(list)
    seen: set[str] = set()
    for call in calls:
        if call.attempt == 1 and call.key in steady and call.key not in seen:
            seen.add(call.key)
            at = (call.scheduled_at - begun_at).total_seconds()
            lag = (call.called_at - call.scheduled_at).total_seconds() * 1000
            windows[math.floor(at / WINDOW)].append(max(0.0, lag))
    found: dict[str, list[tuple[float, float]]] = {"lag p50": [], "lag p95": [], "late": []}
    for number, lags in sorted(windows.items()):
        at, ordered = (number + 0.5) * WINDOW, sorted(lags)
        found["lag p50"].append((at, percentile(ordered, 50)))
        found["lag p95"].append((at, percentile(ordered, 95)))
        found["late"].append((at, 100 * sum(lag > _LATE_MS for lag in lags) / len(lags)))
    return found


def growth_of(counts: Curve) -> list[tuple[float, float]]:
    """A count that only grows, as what came to it from each reading to the next."""
    return [(at, count - before) for (_, before), (at, count) in itertools.pairwise(counts)]


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest value that so many percent do not exceed (nearest rank)."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


_TOLD = Budget(0, math.inf)


def _pieces(
    gauge: Gauge, curves: Mapping[str, Curve], lives: Mapping[str, Iterable[Curve]], start: float, end: float
) -> list[Piece]:
    kind, _, function = gauge.name.partition(" ")
    if kind == "memory" and function in lives:
        return [_between(life, max(start, life[0][0] + PROCESS_WARM_UP), end) for life in lives[function] if life]
    return phases_of(_between(curves.get(gauge.name, ()), start, end), cycle=CYCLE)


def _between(curve: Curve, start: float, end: float) -> list[tuple[float, float]]:
    return [point for point in curve if start <= point[0] <= end]
