"""What a soak has asked for, and what it has done to the stack: the half of the history that clients know."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from functions.domain.instants import EPOCH, SECOND, parse_instant
from functions.domain.jobs.job import Delivery
from functions.domain.lifecycle import State
from testkit.builders import LOCAL_WHEEL
from verification.deployed import text_of
from verification.history import Call, Cancel, DeadLetterSeen, Fires, History, Job, Row

LATENESS = timedelta(seconds=150)
"""A fire that came due no longer than this before its schedule was changed or stopped may not have run by then: ticks are
left out for a minute, and the scanner after them is killed."""

BEFORE, AFTER = timedelta(seconds=15), timedelta(seconds=8)
"""Around the death of a worker: whatever came due or was called then was with it, or may have been."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Fires each `period` seconds, `offset` seconds behind its multiples."""

    period: int
    offset: int = 0

    def between(self, start: datetime, end: datetime) -> list[datetime]:
        """Its fires from `start` up to, and not including, `end`."""
        first = -(-(start - EPOCH - self.offset * SECOND) // (self.period * SECOND))
        behind = -(-(end - EPOCH - self.offset * SECOND) // (self.period * SECOND))
        return [EPOCH + (number * self.period + self.offset) * SECOND for number in range(first, behind)]


@dataclass(slots=True)
class Life:
    """A schedule in one version: since a client asked for it, and got an answer, until it asked for its end, and got one."""

    rhythm: Rhythm
    asked_at: datetime
    acknowledged_at: datetime | None = None
    stopped_at: datetime | None = None
    is_over_at: datetime | None = None

    def due(self, until: datetime) -> list[datetime]:
        """The fires that it owes by then."""
        if self.acknowledged_at is None:
            return []
        end = until if self.stopped_at is None else min(until, self.stopped_at - LATENESS)
        return self.rhythm.between(self.acknowledged_at + LOCAL_WHEEL.skew, end)

    def possible(self, now: datetime) -> list[datetime]:
        """The fires that may have run by now."""
        return self.rhythm.between(self.asked_at - LOCAL_WHEEL.skew, (self.is_over_at or now) + LOCAL_WHEEL.skew)


@dataclass
class Record:
    """Written by several threads. struck: how often each fault did. broken: promises of the API that were not kept.

    steady: keys of jobs that are delayed only by faults of the whole stack. disturbed: those whose workers
    are going to die, or to be given up.
    """

    steady: set[str] = field(default_factory=set)
    disturbed: set[str] = field(default_factory=set)
    struck: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    refused_count: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._cancels: list[Cancel] = []
        self._lives: dict[str, list[Life]] = {}
        self._payloads: dict[str, str] = {}
        self._disturbances: list[tuple[datetime, datetime]] = []

    @property
    def job_count(self) -> int:
        """How many jobs were taken."""
        return len(self._jobs)

    def add_job(self, job: Job, *, is_steady: bool = False, is_disturbed: bool = False) -> None:
        """The API has taken it."""
        with self._lock:
            self._jobs[job.key] = job
            if is_steady:
                self.steady.add(job.key)
            if is_disturbed:
                self.disturbed.add(job.key)

    def add_cancel(self, cancel: Cancel) -> None:
        """The API has answered it."""
        with self._lock:
            self._cancels.append(cancel)

    def strike(self, fault: str, count: int = 1) -> None:
        """A fault has struck so often."""
        with self._lock:
            self.struck[fault] += count

    def disturb(self, start: datetime, end: datetime) -> None:
        """Workers died, or met a failing store, from `start` to `end`."""
        with self._lock:
            self._disturbances.append((start - BEFORE, end + AFTER))

    def begin_life(self, key: str, rhythm: Rhythm, payload: str, *, now: datetime) -> Life:
        """A schedule is about to be put, or resumed."""
        life = Life(rhythm, asked_at=now)
        with self._lock:
            self._lives.setdefault(key, []).append(life)
            self._payloads[key] = text_of(payload)
        return life

    def history(
        self,
        calls: Sequence[Call],
        rows: Mapping[str, Row],
        letters: Sequence[DeadLetterSeen],
        *,
        fires_until: datetime,
        jobs_until: datetime | None,
        now: datetime,
    ) -> History:
        """What the checker looks at. fires_until, jobs_until: what came due before has to have come to its end."""
        with self._lock:
            jobs = [
                job if jobs_until is None or job.due_at <= jobs_until else replace(job, is_accepted=False)
                for job in self._jobs.values()
            ]
            return History(
                jobs=jobs,
                fires=[self._owed(key, lives, until=fires_until, now=now) for key, lives in self._lives.items()],
                calls=calls,
                rows=rows,
                letters=letters,
                cancels=list(self._cancels),
                ended_at=now,
                disturbed=frozenset(self.disturbed | set(self._in_disturbances(calls, rows.values()))),
            )

    def _owed(self, key: str, lives: Sequence[Life], *, until: datetime, now: datetime) -> Fires:
        due = frozenset(at for life in lives for at in life.due(until))
        possible = frozenset(at for life in lives for at in life.possible(now))
        return Fires(
            key=key,
            tenant=key.partition("#")[0],
            delivery=Delivery.EXACTLY_ONCE,
            payload=self._payloads[key],
            due=due,
            possible=possible - due,
        )

    def _in_disturbances(self, calls: Sequence[Call], rows: Iterable[Row]) -> Iterable[str]:
        yield from (job.key for job in self._jobs.values() if self._is_disturbed(job.due_at))
        yield from (call.key for call in calls if self._is_disturbed(call.called_at))
        for row in rows:
            _, _, fire = row.key.partition(":")
            if fire and self._is_disturbed(parse_instant(fire)):
                yield row.key
            # An at-most-once job that waited for its destination was due long before it was claimed, and may have no call.
            started_at = row.settled_at if row.state is State.ATTEMPTED else None
            if started_at is not None and self._is_disturbed(started_at):
                yield row.key

    def _is_disturbed(self, at: datetime) -> bool:
        return any(start <= at <= end for start, end in self._disturbances)
