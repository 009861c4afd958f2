"""Textbook designs with the same jobs: each a small model, with the same workers, and with the best that it can do.

They have as many workers, which never go away again, behind one event source of the kind and growth of Tickwheel's (their
queue is one), timers that never fail, no cold starts, and stores without latency: what is shown is what the design itself
does to lag and to fairness.

- fifo: one queue for everybody. A perfect timer puts each job into it at its instant.
- cursor: rows in buckets of 30 minutes, each one partition, and one scanner with one cursor that looks each minute and
  sends what is due, oldest first, as fast as one process can.
- round_robin: a queue for each tenant, served in turns, one job each, whatever their weights. The same perfect timer.
- sorted_set: all jobs in one sorted set by their time, which one poller empties each second, as fast as it can.

A job whose target fails is tried again after 1, 2, 4 ... 60 s, without jitter, until it succeeds.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import chain
from math import inf
from typing import Protocol

from simulation.calls import CallColumns, CallTable
from simulation.limits import Limits
from simulation.measure import fairness, lag_by_class, lag_of, points_of, shares_between
from simulation.orders import Order
from simulation.outcome import Baseline
from simulation.scenario import Scenario
from simulation.stage import SimulatedStage

_HALF_HOUR = 1_800
_MINUTE = 60
_MOST_BACKOFF = 60.0
_POLLS_SAVED = 0.1
"""Seconds of polls that may come at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What all designs have. service: seconds that each job takes.

    start, growth, most: jobs that run at the same time, of the sample: at first, a second more, at most. is_polled: its
    pollers bring no more jobs a second than may run at the same time.
    """

    scenario: Scenario
    limits: Limits
    share: float
    start: float
    growth: float
    most: float
    service: float
    is_polled: bool = False


def conditions_of(scenario: Scenario, stage: SimulatedStage) -> Conditions:
    """The largest of the event sources that had something, as many workers as all of those, and as long as a batch took."""
    spent, limits = stage.worker.spent, stage.limits
    used = [source.source for source in stage.sources.values() if source.invocations]
    jobs = limits.batch_messages * stage.sample.share
    return Conditions(
        scenario=scenario,
        limits=limits,
        share=stage.sample.share,
        start=max(1.0, max((source.start for source in used), default=0.0) * jobs),
        growth=max((source.growth for source in used), default=0.0) * jobs,
        most=max(1.0, sum(source.most for source in used) * jobs),
        service=spent.seconds / max(1, spent.invocations),
        is_polled=any(source.polls is not None for source in used),
    )


class Waiting(Protocol):
    """Jobs that wait for a worker, in the order of a design."""

    def add(self, order: Order) -> None:
        """One more."""
        ...

    def take(self) -> Order | None:
        """Whose turn it is."""
        ...


class Fifo:
    """First come, first served."""

    def __init__(self) -> None:
        self._orders: deque[Order] = deque()

    def add(self, order: Order) -> None:
        """As `Waiting` promises."""
        self._orders.append(order)

    def take(self) -> Order | None:
        """As `Waiting` promises."""
        return self._orders.popleft() if self._orders else None


class RoundRobin:
    """One job of each tenant in turn."""

    def __init__(self) -> None:
        self._of_tenant: OrderedDict[str, deque[Order]] = OrderedDict()

    def add(self, order: Order) -> None:
        """As `Waiting` promises."""
        self._of_tenant.setdefault(order.tenant, deque()).append(order)

    def take(self) -> Order | None:
        """As `Waiting` promises."""
        if not self._of_tenant:
            return None
        tenant, orders = self._of_tenant.popitem(last=False)
        order = orders.popleft()
        if orders:
            self._of_tenant[tenant] = orders
        return order


Released = Iterable[tuple[float, Order]]
Release = Callable[[Sequence[Order], Conditions], Released]


@dataclass(frozen=True, slots=True)
class Design:
    """A textbook design: when it lets jobs out, and in which order they are served."""

    name: str
    words: str
    release: Release
    waiting: Callable[[], Waiting]
    note: Callable[[Sequence[Order], Conditions], str] = lambda _, __: ""


def run_baseline(
    design: Design, orders: Sequence[Order], weights: Mapping[str, float], conditions: Conditions
) -> Baseline:
    """Run a design with these jobs."""
    scenario = conditions.scenario
    by_due = sorted(orders, key=lambda order: order.due_at)
    calls = serve(design.release(by_due, conditions), design.waiting(), conditions)
    measured = scenario.measured(calls)
    found = shares_between(calls, orders, weights, between=scenario.contended) if scenario.contended and weights else []
    start, end = scenario.window
    asked = sum(1 for order in orders if start <= order.due_at < end and not scenario.excluded([order.host]))
    return Baseline(
        name=design.name,
        words=design.words,
        lag=lag_of(measured.lag),
        by_class=lag_by_class(measured),
        fairness=fairness(found) if any(share.served for share in found) else None,
        finished=len(measured.lag) / asked if asked else 1.0,
        points=points_of(calls, until=scenario.until, share=conditions.share),
        note=design.note(by_due, conditions),
    )


def serve(released: Released, waiting: Waiting, conditions: Conditions) -> CallTable:
    """The calls of jobs that are let out in the order of their instants."""
    scenario, delivery = conditions.scenario, conditions.limits.delivery_p50
    again: list[tuple[float, int, Order, int]] = []
    ends: list[float] = []
    seen = CallColumns()
    tries: dict[int, int] = {}
    releases = chain(released, [(inf, None)])
    released_at, order = next(releases)
    allowed, busy, now, before = conditions.start, 0, 0.0, 0.0
    is_behind, polls_at = False, -inf
    while True:
        polled_at = polls_at if polls_at > now else inf
        before, now = now, min(released_at, again[0][0] if again else inf, ends[0] if ends else inf, polled_at)
        if now > scenario.until:
            return seen.table()
        while order is not None and released_at <= now:
            waiting.add(order)
            released_at, order = next(releases)
        while again and again[0][0] <= now:
            _, _, retried, tried = heappop(again)
            tries[id(retried)] = tried
            waiting.add(retried)
        while ends and ends[0] <= now:
            heappop(ends)
            busy -= 1
        if is_behind:
            allowed = min(conditions.most, allowed + conditions.growth * (now - before))
        while busy < allowed and polls_at <= now and (taken := waiting.take()) is not None:
            busy += 1
            if conditions.is_polled:
                polls_at = max(polls_at, now - _POLLS_SAVED) + 1 / allowed
            tried = tries.pop(id(taken), 0)
            called_at, ended_at = now + delivery, now + conditions.service
            lag = called_at - taken.due_at
            seen.add(taken.tenant, taken.host, taken.priority, at=called_at, lag=lag, is_first=not tried)
            heappush(ends, ended_at)
            if scenario.outage is not None and scenario.outage.is_failing(taken.host, called_at):
                backoff = min(_MOST_BACKOFF, 2.0**tried)
                heappush(again, (ended_at + backoff, len(seen), taken, tried + 1))
        is_behind = busy >= allowed or polls_at > now


def _at_once(orders: Sequence[Order], conditions: Conditions) -> Released:
    """A perfect timer; but not while the scheduler is away."""
    down = conditions.scenario.down
    for order in orders:
        is_away = down is not None and down[0] <= order.due_at < down[1]
        yield (down[1] if is_away and down is not None else order.due_at), order


def _polled(period: float, a_second: Callable[[Limits], float]) -> Release:
    """One process that looks each period, and lets out what is due then, so many a second."""

    def release(orders: Sequence[Order], conditions: Conditions) -> Released:
        down, apart = conditions.scenario.down, 1 / (a_second(conditions.limits) * conditions.share)
        free_at = 0.0
        for order in orders:
            seen_at = -(-order.due_at // period) * period
            if down is not None and down[0] <= seen_at < down[1]:
                seen_at = down[1]
            free_at = max(free_at, seen_at) + apart
            yield free_at, order

    return release


def one_cursor(limits: Limits) -> float:
    """Jobs a second that one core reads and sends: the CPU of Tickwheel's own scanner."""
    return 1 / (limits.page_row_cpu + limits.send_call_cpu / limits.batch_messages)


def one_poller(limits: Limits) -> float:
    """Jobs a second that one poller moves out of a sorted set."""
    return limits.sorted_set_moves


def _note_of_cursor(orders: Sequence[Order], conditions: Conditions) -> str:
    """What its one partition a bucket would have refused."""
    seconds: dict[tuple[int, int], int] = {}
    for order in orders:
        if order.submitted_at >= 0:
            key = int(order.submitted_at), int(order.due_at // _HALF_HOUR)
            seconds[key] = seconds.get(key, 0) + 1
    most = conditions.limits.partition_write_units * conditions.share
    above = sum(max(0.0, count - most) for count in seconds.values())
    refused = above / max(1, sum(seconds.values()))
    if refused < _WORTH_TELLING:
        return ""
    return f"let in all the same: {refused:.0%} of its writes, which one partition a bucket would refuse"


_WORTH_TELLING = 0.005


def _note_of_set(orders: Sequence[Order], conditions: Conditions) -> str:
    """Nothing of its memory is modelled."""
    del orders, conditions
    return "500M waiting jobs of 600 bytes would be 300 GB of memory in one node"


BASELINES = (
    Design("fifo", "one FIFO queue", _at_once, Fifo),
    Design("cursor", "30-minute buckets, one cursor", _polled(_MINUTE, one_cursor), Fifo, _note_of_cursor),
    Design("round_robin", "round robin without weights", _at_once, RoundRobin),
    Design("sorted_set", "sorted set, polled each second", _polled(1.0, one_poller), Fifo, _note_of_set),
)
"""All of them, in the order in which they are shown."""
