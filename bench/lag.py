"""How late jobs fire on the local stack: arrival at an HTTP target, less the instant that was asked for."""

import math
import os
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from rich.box import SIMPLE
from rich.console import Console
from rich.padding import Padding
from rich.progress import Progress, TaskID
from rich.table import Table

from bench.budgets import LAG_P99
from bench.results import write_result
from functions.domain.instants import MILLISECOND
from functions.domain.jobs.job import Precision
from functions.domain.wheel import Ring
from testkit.builders import LOCAL_WHEEL
from tickwheel.client import Client
from tickwheel.client.jobs import NewJob, Submitted
from tickwheel.demo.sink import Arrival, Sink
from tickwheel.demo.workload import Fate
from tickwheel.local import local_stack

NEAR_JOBS = 300
FAR_JOBS = 50
"""Of each precision."""

_NEAR_FROM, _NEAR_SPAN = timedelta(seconds=20), timedelta(seconds=40)
_FAR_BEHIND_GUARD, _FAR_SPAN = timedelta(seconds=15), timedelta(seconds=12)
"""So long may the submission of the far jobs take: what takes longer is due within GUARD by then, and is near."""

_WARM_UP = [f"warm-up-{number}" for number in range(40)]
_PATIENCE = timedelta(seconds=30)
_TENANTS = 5
_RINGS = (Ring.FAR, Ring.NEAR)


class Group(NamedTuple):
    """Jobs whose lag is looked at together."""

    ring: Ring
    precision: Precision

    @property
    def name(self) -> str:
        """As tables and files have it."""
        return f"{self.ring}-{self.precision}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How late the jobs of a group were; an early one counts as 0 and is reported separately. again: arrivals after the first."""

    jobs: int
    p50: timedelta
    p95: timedelta
    p99: timedelta
    worst: timedelta
    early: int
    missing: int
    again: int


@dataclass(frozen=True, slots=True)
class Planned:
    """A job of the benchmark, due so long after its submission."""

    name: str
    group: Group
    delay: timedelta


@dataclass(frozen=True, slots=True)
class Placed:
    """Jobs of one ring by plan, each in the group of the ring to which it went. submitted_in: how long that took."""

    jobs: Sequence[Planned]
    submitted_in: timedelta
    last_due_at: datetime


@dataclass(frozen=True, slots=True)
class Measured:
    """What was placed, and what arrived."""

    far: Placed
    near: Placed
    arrivals: Sequence[Arrival]

    def names(self, group: Group) -> list[str]:
        """The jobs of a group."""
        return [job.name for job in (*self.far.jobs, *self.near.jobs) if job.group == group]


def run(console: Console) -> list[str]:
    """Deploy, submit, wait, print, write lag.json; a sentence for each group with early or missing jobs."""
    # Other load on this machine makes jobs late, so it is reported beside their lag.
    load = os.getloadavg()[0]
    planned = plan(guard=LOCAL_WHEEL.guard)
    measured = _measure(planned, console)
    groups = dict.fromkeys(job.group for job in planned)
    lags = {group: lag_of(measured.names(group), measured.arrivals) for group in groups}
    _print(console, lags, load)
    if slow := too_slow(measured):
        # What was measured says little of the rings: the figures of before are kept.
        return [*broken_promises(lags), slow]
    write_result("lag.json", _as_json(lags, load))
    return broken_promises(lags)


def too_slow(measured: Measured) -> str:
    """A sentence where jobs were submitted so slowly that they went into the other ring, or were late by then; else nothing."""
    moved = sum(job.group.ring is Ring.NEAR for job in measured.far.jobs)
    if measured.near.submitted_in > _NEAR_FROM:
        problem, taken, allowed = "near jobs were due when they were submitted", measured.near.submitted_in, _NEAR_FROM
    elif moved:
        problem = f"{moved} of {len(measured.far.jobs)} far jobs were near when they were submitted, and count as near"
        taken, allowed = measured.far.submitted_in, _FAR_BEHIND_GUARD
    else:
        return ""
    return (
        f"lag: {problem}: submitting took {taken.total_seconds():.0f} s, and {allowed.total_seconds():.0f} s are allowed for it. Something else "
        "keeps this machine busy: end it, and measure again. lag.json is as it was"
    )


def broken_promises(lags: Mapping[Group, Lag]) -> list[str]:
    """A sentence for each group with early or missing jobs. A late one is in the table, and breaks nothing here."""
    found: list[str] = []
    for group, lag in lags.items():
        if lag.early:
            found.append(f"lag, {group.name}: {lag.early} of {lag.jobs} jobs fired early, the budget is 0")
        if lag.missing:
            found.append(
                f"lag, {group.name}: {lag.missing} of {lag.jobs} jobs had not fired {_PATIENCE} after the last"
            )
    return found


def lag_of(names: Sequence[str], arrivals: Sequence[Arrival]) -> Lag:
    """The lag of jobs by their first arrivals."""
    wanted = set(names)
    first: dict[str, timedelta] = {}
    again = 0
    for arrival in arrivals:
        if arrival.name in first:
            again += 1
        elif arrival.name in wanted:
            first[arrival.name] = arrival.arrived_at - arrival.scheduled_at
    late = sorted(max(lag, timedelta(0)) for lag in first.values())
    return Lag(
        jobs=len(wanted),
        p50=percentile(late, 50),
        p95=percentile(late, 95),
        p99=percentile(late, 99),
        worst=percentile(late, 100),
        early=sum(lag < timedelta(0) for lag in first.values()),
        missing=len(wanted) - len(first),
        again=again,
    )


def percentile(ordered: Sequence[timedelta], percent: int) -> timedelta:
    """The smallest value that so many percent do not exceed (nearest rank); 0 of none."""
    if not ordered:
        return timedelta(0)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def plan(*, guard: timedelta) -> list[Planned]:
    """As many jobs of either precision, due evenly over each ring's span."""
    spans = {
        Ring.NEAR: (NEAR_JOBS, _NEAR_FROM, _NEAR_SPAN),
        Ring.FAR: (FAR_JOBS, guard + _FAR_BEHIND_GUARD, _FAR_SPAN),
    }
    return [
        Planned(f"{ring}-{precision}-{number}", Group(ring, precision), start + span * number / count)
        for ring, (count, start, span) in spans.items()
        for number in range(count)
        for precision in Precision
    ]


def _measure(planned: Sequence[Planned], console: Console) -> Measured:
    fates = dict.fromkeys([*_WARM_UP, *(job.name for job in planned)], Fate.SUCCEEDS)
    with Progress(console=console, transient=True) as progress, Sink(fates) as sink:
        task = progress.add_task("lag", total=len(fates))
        with local_stack(progress=lambda line: progress.update(task, description=line[:60])) as stack:
            with Client(stack.api_endpoint) as client:
                now = datetime.now(UTC)
                _submit(client, [_job(sink, name, run_at=now) for name in _WARM_UP])
                progress.update(task, description="warming up")
                _wait(sink, progress, task, count=len(_WARM_UP), until=now + _PATIENCE)
                # Far jobs first: how long the others take must not make them near.
                far, near = (
                    _place(client, sink, [job for job in planned if job.group.ring is ring]) for ring in _RINGS
                )
            last = max(far.last_due_at, near.last_due_at)
            progress.update(task, description=f"jobs fire until {last:%H:%M:%S} UTC")
            _wait(sink, progress, task, count=len(fates), until=last + _PATIENCE)
            return Measured(far, near, sink.arrivals)


def _place(client: Client, sink: Sink, planned: Sequence[Planned]) -> Placed:
    began = datetime.now(UTC)
    jobs = [_job(sink, job.name, job.group.precision, run_at=began + job.delay) for job in planned]
    rings = _submit(client, jobs)
    last = began + max(job.delay for job in planned)
    return Placed(as_placed(planned, rings), submitted_in=datetime.now(UTC) - began, last_due_at=last)


def as_placed(planned: Sequence[Planned], rings: Sequence[str]) -> list[Planned]:
    """Each in the group of the ring to which it went: a far job that was placed too late is a near one."""
    return [replace(job, group=job.group._replace(ring=Ring(ring))) for job, ring in zip(planned, rings, strict=True)]


def _job(sink: Sink, name: str, precision: Precision = Precision.DEFAULT, *, run_at: datetime) -> NewJob:
    tenant = f"tenant-{zlib.crc32(name.encode()) % _TENANTS}"
    return NewJob(f"{sink.url}/{name}", tenant=tenant, run_at=run_at, precision=precision.value)


def _submit(client: Client, jobs: Sequence[NewJob]) -> list[str]:
    """The rings that the jobs went to."""
    outcomes = client.submit_many(jobs)
    for outcome in outcomes:
        assert isinstance(outcome, Submitted), f"not taken: {outcome}"
    return [str(outcome.ring) for outcome in outcomes if isinstance(outcome, Submitted)]


def _wait(sink: Sink, progress: Progress, task: TaskID, *, count: int, until: datetime) -> None:
    """Until so many jobs have arrived, or that instant."""
    while (delivered := sink.tally.delivered) < count and datetime.now(UTC) < until:
        progress.update(task, completed=delivered)
        time.sleep(0.5)


def _print(console: Console, lags: Mapping[Group, Lag], load: float) -> None:
    title = f"Lag in milliseconds on the local stack ({NEAR_JOBS} near and {FAR_JOBS} far jobs of either precision)"
    table = Table(title=title, box=SIMPLE)
    table.add_column("jobs", no_wrap=True)
    for heading in ("p50", "p95", "p99 / target", "worst", "early", "missing", "twice"):
        table.add_column(heading, justify="right")
    for group, lag in lags.items():
        target = LAG_P99[group.precision]
        colour = "green" if lag.p99 < target else "yellow"
        table.add_row(
            f"{group.ring}, {group.precision}",
            *(f"{_ms(value):,.0f}" for value in (lag.p50, lag.p95)),
            f"[{colour}]{_ms(lag.p99):,.0f} / {_ms(target):,.0f}[/{colour}]",
            f"{_ms(lag.worst):,.0f}",
            f"[red]{lag.early}[/red]" if lag.early else "0",
            f"[red]{lag.missing}[/red]" if lag.missing else "0",
            str(lag.again),
        )
    console.print(table)
    note = f"{_NOTE} Load average before: {load:.1f}."
    console.print(Padding(note, (0, 0, 1, 2)), highlight=False)


_NOTE = (
    f"Everything runs on this machine with its {os.cpu_count()} cores: the emulator of AWS, up to 14 workers, the target. "
    f"A p99 above its target is told, not enforced; an early or missing job breaks the run. {len(_WARM_UP)} jobs came before, to start the workers."
)


def _ms(value: timedelta) -> float:
    return value / MILLISECOND


def _as_json(lags: Mapping[Group, Lag], load: float) -> dict[str, Any]:
    def described(group: Group, lag: Lag) -> dict[str, Any]:
        times = {name: round(_ms(getattr(lag, name)), 1) for name in ("p50", "p95", "p99", "worst")}
        counts = {name: getattr(lag, name) for name in ("jobs", "early", "missing", "again")}
        return {**counts, "lag_ms": times, "target_p99_ms": _ms(LAG_P99[group.precision])}

    groups = {group.name: described(group, lag) for group, lag in lags.items()}
    return {"groups": groups, "load_average_before": round(load, 1), "note": _NOTE}
