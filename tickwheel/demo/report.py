"""The verdicts as tables for people and as one JSON object for scripts."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Column, Table

from tickwheel.demo.fires import FiresVerdict, JudgedSchedule
from tickwheel.demo.judge import JobEnd, JudgedJob, Verdict, percentile
from tickwheel.demo.schedules import OWN_TENANT

_LAGS = ("lag p50", "p99 ms")
_TENANTS_SHOWN = 15
_MILLISECOND = timedelta(milliseconds=1)
_LAG_PERCENTS = (50, 95, 99)


def tables(verdict: Verdict, fires: FiresVerdict) -> Group:
    """Jobs by tenant, ring and precision, then by outcome; the largest tenants are named, the others are one line.

    Then the schedules: those of the demo's own are named, those of the example are one line.
    """
    return Group("", _by_tenant_and_ring(verdict.jobs), _by_outcome(verdict.jobs), _by_schedule(fires.schedules))


def as_json(verdict: Verdict, fires: FiresVerdict, *, wall: timedelta) -> str:
    """One line; lags in milliseconds, null when nothing arrived."""
    return json.dumps(
        {
            "submitted": verdict.submitted,
            "delivered": verdict.delivered,
            "lost": verdict.lost,
            "duplicated": verdict.duplicated,
            "early": verdict.early,
            "retried": verdict.retried,
            "dead_lettered": verdict.dead_lettered,
            "lag_ms": _lags_json(verdict.lags),
            "schedules": _fires_json(fires),
            "wall_s": round(wall.total_seconds(), 1),
        }
    )


def _table(first: str, *counts: str, lags: Sequence[str] = ()) -> Table:
    """The first column is the one that gives way on a narrow terminal."""
    numbers = [Column(heading, justify="right", no_wrap=True) for heading in counts]
    numbers += [Column(heading, justify="right", no_wrap=True, style="cyan") for heading in lags]
    return Table(Column(first, overflow="ellipsis"), *numbers, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _by_tenant_and_ring(jobs: Sequence[JudgedJob]) -> Table:
    table = _table("tenant", "jobs", "delivered", "retries", "dead", "lost", lags=_LAGS)
    groups: dict[str, list[JudgedJob]] = {}
    for each in jobs:
        groups.setdefault(each.job.tenant, []).append(each)
    largest = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    for tenant, group in largest[:_TENANTS_SHOWN]:
        _add(table, tenant, group)
    others = [each for _, group in largest[_TENANTS_SHOWN:] for each in group]
    if others:
        _add(table, f"{len(largest) - _TENANTS_SHOWN} smaller ones", others)
    table.add_section()
    _add(table, f"all {len(groups)} tenants", jobs, style="bold")
    table.add_section()
    _add(table, "near ring", [each for each in jobs if each.ring == "near"])
    _add(table, "far ring", [each for each in jobs if each.ring == "far"])
    table.add_section()
    _add(table, "default precision", [each for each in jobs if each.job.precision == "default"])
    _add(table, "exact precision", [each for each in jobs if each.job.precision == "exact"])
    return table


def _by_outcome(jobs: Sequence[JudgedJob]) -> Table:
    table = _table("outcome", "jobs", "to the sink", "to the handler")
    for outcome in JobEnd:
        those = [each for each in jobs if each.outcome is outcome]
        if those:
            by_target = Counter(each.job.calls_sink for each in those)
            table.add_row(outcome, _count(len(those)), _count(by_target[True]), _count(by_target[False]))
    return table


def _by_schedule(schedules: Sequence[JudgedSchedule]) -> Table:
    table = _table("schedules", "imported", "fires due", "arrived", "lost", lags=_LAGS)
    own = [each for each in schedules if each.schedule.tenant == OWN_TENANT]
    _add_schedules(table, "of the example", [each for each in schedules if each not in own])
    for each in own:
        _add_schedules(table, each.schedule.id, [each])
    table.add_section()
    _add_schedules(table, "all", schedules, style="bold")
    return table


def _add_schedules(table: Table, label: str, schedules: Sequence[JudgedSchedule], *, style: str = "") -> None:
    table.add_row(
        label,
        _count(len(schedules)),
        _count(sum(each.expected or 0 for each in schedules)),
        _count(sum(each.fires for each in schedules)),
        _lost(sum(len(each.lost) for each in schedules)),
        *_lags(sorted(lag for each in schedules for lag in each.lags)),
        style=style,
    )


def _fires_json(fires: FiresVerdict) -> dict[str, Any]:
    judged = fires.schedules
    return {
        "imported": len(judged),
        "refused": fires.refused,
        "fires_expected": sum(each.expected or 0 for each in judged),
        "fires": sum(each.fires for each in judged),
        "lost": sum(len(each.lost) for each in judged),
        "extra": sum(len(each.extra) for each in judged),
        "duplicated": sum(len(each.duplicated) for each in judged),
        "early": sum(len(each.early) for each in judged),
        "lag_ms": _lags_json(sorted(lag for each in judged for lag in each.lags)),
    }


def _add(table: Table, label: str, jobs: Sequence[JudgedJob], *, style: str = "") -> None:
    outcomes = Counter(each.outcome for each in jobs)
    lags = sorted(each.lag for each in jobs if each.lag is not None)
    table.add_row(
        label,
        _count(len(jobs)),
        _count(outcomes[JobEnd.DELIVERED] + outcomes[JobEnd.RETRIED]),
        _count(sum(each.retried for each in jobs)),
        _count(outcomes[JobEnd.DEAD_LETTERED]),
        _lost(outcomes[JobEnd.LOST] + outcomes[JobEnd.NOT_TAKEN]),
        *_lags(lags),
        style=style,
    )


def _count(count: int) -> str:
    return f"{count:,}" if count else "·"


def _lost(count: int) -> str:
    return f"[red]{count:,}[/red]" if count else "·"


def _lags(lags: Sequence[timedelta]) -> Sequence[str]:
    return ["·" if (lag := _lag_ms(lags, percent)) is None else f"{lag:,}" for percent in (50, 99)]


def _lags_json(lags: Sequence[timedelta]) -> dict[str, int | None]:
    return {f"p{percent}": _lag_ms(lags, percent) for percent in _LAG_PERCENTS}


def _lag_ms(lags: Sequence[timedelta], percent: float) -> int | None:
    lag = percentile(lags, percent)
    return None if lag is None else round(lag / _MILLISECOND)
