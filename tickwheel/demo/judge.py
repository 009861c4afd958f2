"""The judgement over a run: what became of each job, and everything that must not have happened.

delivered
    A job whose state is `succeeded` and that, if it calls the sink, the sink answered with success.
dead-lettered
    A job that is in the table of dead letters. The doomed jobs must be there, and no other.
lost
    A job that was taken but is neither delivered nor dead-lettered when the time is over.
duplicated
    A job that had a second effect at the sink: one more request answered with success after the first.
early
    A request at the sink before the instant that its job was due, or before the instant that it names as its own. Sink
    and scheduler are on one machine and share its clock. A job of the handler is early when it settled before it was due.
retried
    Requests at the sink that were a second attempt or a later one.
lag
    From the instant a job was due to the arrival of its first attempt at the sink.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tickwheel.client.jobs import Job, Submission, Submitted
from tickwheel.demo.sink import Arrival
from tickwheel.demo.workload import Fate, PlannedJob

SETTLED = frozenset({"succeeded", "failed", "cancelled", "expired"})
"""States that a job leaves only when somebody changes it."""

_MOST_NAMED = 10


class JobEnd(StrEnum):
    """What became of a job."""

    DELIVERED = "delivered"
    RETRIED = "delivered after a retry"
    DEAD_LETTERED = "dead letter"
    LOST = "lost"
    NOT_TAKEN = "not taken"


@dataclass(frozen=True, kw_only=True)
class JudgedJob:
    """A job and what became of it. ring: None for a job that was not taken. lag: None without a first arrival."""

    job: PlannedJob
    ring: str | None
    outcome: JobEnd
    retried: int = 0
    lag: timedelta | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The judgement. faults: a sentence for each thing that must not have happened, naming the jobs; empty is good."""

    jobs: Sequence[JudgedJob]
    submitted: int
    delivered: int
    lost: int
    duplicated: int
    early: int
    retried: int
    dead_lettered: int
    lags: Sequence[timedelta]
    faults: Sequence[str]


def judge(
    plan: Sequence[PlannedJob],
    *,
    submissions: Mapping[str, Submission],
    arrivals: Iterable[Arrival],
    states: Mapping[str, Job],
    dead_letters: Collection[str],
) -> Verdict:
    """Judges a run that is over.

    submissions, states: by the name of the job; a state that could not be found out is left out. dead_letters: the
    ids of the jobs that became one.
    """
    by_name: dict[str, list[Arrival]] = {job.name: [] for job in plan}
    for arrival in sorted(arrivals, key=lambda arrival: arrival.arrived_at):
        by_name[arrival.name].append(arrival)
    taken = {name: answer for name, answer in submissions.items() if isinstance(answer, Submitted)}
    cases = [
        _Case(
            job=job,
            submitted=taken.get(job.name),
            arrivals=by_name[job.name],
            state=states.get(job.name),
            is_dead=job.name in taken and taken[job.name].id in dead_letters,
        )
        for job in plan
    ]
    judged = [case.judged() for case in cases]
    strangers = len(set(dead_letters) - {answer.id for answer in taken.values()})
    return Verdict(
        jobs=judged,
        submitted=sum(case.submitted is not None for case in cases),
        delivered=sum(each.outcome in (JobEnd.DELIVERED, JobEnd.RETRIED) for each in judged),
        lost=sum(each.outcome is JobEnd.LOST for each in judged),
        duplicated=sum(case.effects > 1 for case in cases),
        early=sum(case.is_early for case in cases),
        retried=sum(each.retried for each in judged),
        dead_lettered=sum(case.is_dead for case in cases),
        lags=sorted(each.lag for each in judged if each.lag is not None),
        faults=list(_faults(cases, strangers=strangers)),
    )


def percentile(sorted_values: Sequence[timedelta], percent: float) -> timedelta | None:
    """The smallest value that so many percent of all do not exceed (nearest rank); None when there are none."""
    if not sorted_values:
        return None
    return sorted_values[max(0, math.ceil(percent / 100 * len(sorted_values)) - 1)]


def named(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED:,} more"


def counted(count: int, noun: str) -> str:
    """`1 job`, or `2,000 jobs`."""
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


@dataclass(frozen=True, kw_only=True)
class _Case:
    """All that is known of one job. arrivals: in the order of time."""

    job: PlannedJob
    submitted: Submitted | None
    arrivals: Sequence[Arrival]
    state: Job | None
    is_dead: bool

    @property
    def effects(self) -> int:
        return sum(arrival.accepted for arrival in self.arrivals)

    @property
    def is_delivered(self) -> bool:
        if self.state is None or self.state.state != "succeeded":
            return False
        return self.effects > 0 or not self.job.calls_sink

    @property
    def is_early(self) -> bool:
        if self.submitted is None:
            return False
        due_at = self.submitted.due_at
        if self.job.calls_sink:
            return any(arrival.arrived_at < max(due_at, arrival.scheduled_at) for arrival in self.arrivals)
        settled_at = _settled_at(self.state)
        return settled_at is not None and settled_at < due_at

    @property
    def outcome(self) -> JobEnd:
        if self.submitted is None:
            return JobEnd.NOT_TAKEN
        if self.is_dead:
            return JobEnd.DEAD_LETTERED
        if not self.is_delivered:
            return JobEnd.LOST
        return JobEnd.RETRIED if self._retried else JobEnd.DELIVERED

    @property
    def standing(self) -> str:
        """The job's name, and what speaks against its being done."""
        state = self.state.state if self.state is not None else "state unknown"
        if not self.job.calls_sink:
            return f"{self.job.name} ({state})"
        return f"{self.job.name} ({state}, {len(self.arrivals)} requests, {self.effects} answered with success)"

    def judged(self) -> JudgedJob:
        return JudgedJob(
            job=self.job,
            ring=self.submitted.ring if self.submitted is not None else None,
            outcome=self.outcome,
            retried=self._retried,
            lag=self._lag,
        )

    @property
    def _retried(self) -> int:
        return sum(arrival.attempt > 1 for arrival in self.arrivals)

    @property
    def _lag(self) -> timedelta | None:
        firsts = [arrival.arrived_at for arrival in self.arrivals if arrival.attempt == 1]
        if self.submitted is None or not firsts:
            return None
        return max(timedelta(0), firsts[0] - self.submitted.due_at)


def _settled_at(state: Job | None) -> datetime | None:
    return state.updated_at if state is not None and state.state in SETTLED else None


def _faults(cases: Sequence[_Case], *, strangers: int) -> Iterable[str]:
    doomed = [case for case in cases if case.job.fate is Fate.DOOMED]
    recovering = [case for case in cases if case.job.fate is not Fate.DOOMED]
    lost = "lost, with neither an effect nor a dead letter at the end"
    for names, words in (
        ([case.job.name for case in cases if case.submitted is None], "not accepted by the scheduler"),
        ([case.standing for case in cases if case.outcome is JobEnd.LOST], lost),
        ([case.standing for case in cases if case.effects > 1], "had more than one effect"),
        ([case.job.name for case in cases if case.is_early], "fired early"),
        ([case.job.name for case in doomed if not case.is_dead], "failed every time but left no dead letter"),
        ([case.job.name for case in recovering if case.is_dead], "became a dead letter although its target recovers"),
    ):
        if names:
            yield f"{counted(len(names), 'job')} {words}: {named(names)}"
    if strangers:
        belong = "dead letter belongs" if strangers == 1 else "dead letters belong"
        yield f"{strangers} {belong} to no job that was submitted"
