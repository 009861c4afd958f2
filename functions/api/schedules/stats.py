"""The figures of a schedule: what its state has counted, what its definition expects, and what the rows of its last runs say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from functions.api.schedules.standing import Run, Standing
from functions.domain.jobs.claims import lease_of
from functions.domain.schedules.asked_runs import Origin
from functions.domain.schedules.expected_gaps import ExpectedGaps, expected_gaps
from functions.domain.schedules.schedule import JobTemplate
from functions.domain.schedules.state import ScheduleState
from functions.domain.schedules.step_budget import Budget

_ZERO = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A schedule with its figures. known: the gaps whose length is known, of this version.

    lags: from a fire to the beginning of its run, of the last runs that can tell; ended_after: from a fire to its run's end.
    """

    standing: Standing
    now: datetime
    known: Sequence[timedelta]
    expected: ExpectedGaps | None
    lags: Sequence[timedelta]
    ended_after: Sequence[timedelta]


def stats_of(found: Standing, *, now: datetime, budget: Budget) -> Stats:
    """The figures of a schedule that stands there with its last runs."""
    schedule, state = found.stored.schedule, found.state
    since = state.changed_at
    runs = [run for run in found.runs if run.origin is Origin.SCHEDULED and run.fire_at > since]
    lags = (_lag_of(run, schedule.job) for run in runs)
    return Stats(
        standing=found,
        now=now,
        known=_known_gaps(state, since=since),
        expected=expected_gaps(schedule, since=since, budget=budget),
        lags=sorted(lag for lag in lags if lag is not None),
        ended_after=sorted(
            max(_ZERO, run.row.updated_at - run.fire_at)
            for run in runs
            if run.row is not None and run.row.is_settled and run.row.updated_at is not None
        ),
    )


def nearest_rank(ordered: Sequence[timedelta], percent: int) -> timedelta | None:
    """The smallest of them that so many of a hundred do not exceed; None of none."""
    return ordered[max(1, -(-len(ordered) * percent // 100)) - 1] if ordered else None


def _known_gaps(state: ScheduleState, *, since: datetime) -> list[timedelta]:
    """Those between the last fires, and the one up to the next: a schedule that remembers one fire knows it too."""
    link = state.link
    recent = [fire_at for fire_at in state.recent if fire_at > since]
    follows = link is not None and not link.is_awaited and link.previous_at in recent
    known = [*recent, link.at] if link is not None and follows else recent
    return [later - earlier for earlier, later in pairwise(known)]


def _lag_of(run: Run, job: JobTemplate) -> timedelta | None:
    """How long after its fire a run began. Its lease tells, as long as nothing has replaced or prolonged the first one."""
    row = run.row
    if row is None or row.lease_until is None or row.attempt != 1 or row.rescue_count or job.options.is_async:
        return None
    return max(_ZERO, row.lease_until - (lease_of(job.timeout, now=run.fire_at) - run.fire_at) - run.fire_at)
