"""Work on many jobs at once: which jobs are selected, what is done to them, and the progress.

An operation walks over the rows of its tenant in the far ring, day by day. A tenant's days are known by their marks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

import xxhash

from functions.domain.errors import InvalidInput
from functions.domain.instants import HOUR, MILLISECOND, SECOND, from_seconds, require_aware, to_seconds
from functions.domain.jobs.job import Job, Priority, Timer
from functions.domain.jobs.job_id import movers_of
from functions.domain.targets.targets import destination_of
from functions.domain.wheel import Wheel

USUAL_REACH = HOUR
"""How far back an operation looks that does not say so: what is late, or is being retried, waits too."""

MOST_REACH = timedelta(days=14)
"""How long the row of a job stays in the far ring after its time."""

MIN_RATE = 1.0
MAX_RATE = 1_000.0
USUAL_RATE = 50.0
MAX_EXAMPLES = 20
OPERATION_LIFE = timedelta(days=30)
"""How long an operation can be asked for after its end."""

MARK = "o"
"""The first letter of an operation's id, and of the identities of the jobs that it has moved."""

_DAY_SECONDS = 86_400
_HASHES = 1 << 64


class OperationKind(StrEnum):
    """What an operation does to each job."""

    CANCEL = "cancel"
    RESCHEDULE = "reschedule"
    RUN_NOW = "run_now"
    EXPORT = "export"


class OperationState(StrEnum):
    """waiting: for its first turn. stopped: by somebody. failed: it could not go on."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"

    @property
    def is_over(self) -> bool:
        """Whether nothing will be done any more."""
        return self in (OperationState.DONE, OperationState.STOPPED, OperationState.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Selects jobs: those of a tenant, with an attempt due from due_from up to due_until, that match every filter that is set.

    due_until: None for no end. target: of the job, or what it shares with others: `https://host`.
    """

    tenant: str
    due_from: datetime
    due_until: datetime | None = None
    target: str = ""
    schedule_id: str = ""
    tag: str = ""

    def __post_init__(self) -> None:
        require_aware(self.due_from)
        if self.due_until is not None and require_aware(self.due_until) <= self.due_from:
            raise InvalidInput("due_from must be before due_until: it is the earlier end")

    def matches(self, timer: Timer) -> bool:
        """Whether an attempt of a job of this tenant is selected."""
        job = timer.job
        schedule_id = job.occurrence.schedule_id if job.occurrence else ""
        return (
            self.due_from <= timer.due_at
            and (self.due_until is None or timer.due_at < self.due_until)
            and (not self.target or self.target in (job.target, destination_of(job.target)))
            and (not self.schedule_id or self.schedule_id == schedule_id)
            and (not self.tag or self.tag in job.tags)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """When jobs are to run instead: so much later or earlier; or from an instant on, spread evenly over a time.

    Raises InvalidInput when it says both or neither, or less than a millisecond, which is what is kept of it.
    """

    by: timedelta | None = None
    to: datetime | None = None
    spread: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        if (self.by is None) is (self.to is None):
            raise InvalidInput("say either by how much the jobs are to be shifted, or to what instant")
        if self.by is not None and (self.spread or abs(self.by) < MILLISECOND):
            raise InvalidInput("by must be at least 1 ms, and takes no spread: the jobs keep their distances")
        if self.spread < timedelta(0):
            raise InvalidInput("spread must not be negative")
        if self.to is not None:
            require_aware(self.to)

    def due_at(self, job: Job) -> datetime:
        """The same whoever asks: the place of a job in the spread is a hash of its identity."""
        if self.by is not None:
            return job.scheduled_at + self.by
        assert self.to is not None  # checked at birth
        share = xxhash.xxh3_64_intdigest(job.identity.encode())
        return self.to + self.spread // MILLISECOND * share // _HASHES * MILLISECOND


class OwnedDay(NamedTuple):
    """A mark: a tenant may have rows of this class on this day, in this shard. day: days since the epoch."""

    day: int
    priority: Priority
    shard: int

    @classmethod
    def of(cls, timer: Timer) -> OwnedDay:
        """Where the row of a timer is."""
        return cls(to_seconds(timer.wakes_at) // _DAY_SECONDS, timer.job.priority, timer.job.shard)

    @property
    def ends_at(self) -> datetime:
        """The first instant after the day."""
        return from_seconds((self.day + 1) * _DAY_SECONDS)


class WalkPosition(NamedTuple):
    """How far a walk has come: everything before, and the rows of this bucket up to this key, has been examined."""

    day: int
    priority: int
    shard: int
    bucket: int
    key: str = ""


class Stretch(NamedTuple):
    """The buckets of a marked day that a walk visits, named by their starts: from `first` up to `end`."""

    owned: OwnedDay
    first: int
    end: int


def stretches(days: Sequence[OwnedDay], wanted: JobFilter, *, wheel: Wheel) -> list[Stretch]:
    """The way of a walk, in its order."""
    lowest = wheel.bucket_of(wanted.due_from)
    highest = wheel.next_bucket(wheel.bucket_of(wanted.due_until - MILLISECOND)) if wanted.due_until else None
    found: list[Stretch] = []
    for owned in sorted(days):
        # A bucket that reaches over the end of a day belongs to both: each has the rows that are due on it.
        first = max(wheel.bucket_of(from_seconds(owned.day * _DAY_SECONDS)), lowest)
        end = wheel.next_bucket(wheel.bucket_of(owned.ends_at - SECOND))
        if highest is not None:
            end = min(end, highest)
        if first < end:
            found.append(Stretch(owned, first, end))
    return found


def rest_of(way: Sequence[Stretch], place: WalkPosition | None) -> list[tuple[Stretch, str]]:
    """What is left of a way behind a place, each stretch with the key to continue behind in its first bucket."""
    if place is None:
        return [(stretch, "") for stretch in way]
    at = (place.day, place.priority, place.shard)
    left: list[tuple[Stretch, str]] = []
    for stretch in way:
        here = (stretch.owned.day, stretch.owned.priority.value, stretch.owned.shard)
        if here == at and place.bucket < stretch.end:
            left.append((stretch._replace(first=place.bucket), place.key))
        elif here > at:
            left.append((stretch, ""))
    return left


def share_done(way: Sequence[Stretch], place: WalkPosition | None) -> float:
    """How much of a way lies behind a place, from 0 to 1."""
    total = sum(stretch.end - stretch.first for stretch in way)
    left = sum(stretch.end - stretch.first for stretch, _ in rest_of(way, place))
    return 1 - left / total if total else 1.0


class Example(NamedTuple):
    """A job that an operation found, for people: matched in a dry run, or refused, and then why."""

    job_id: str
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an operation has come. What a crash cut off may be missing in the counts, never in the work.

    examined: rows of the tenant that were read. matched: selected jobs that waited. done: those that it was done
    to. refused: the others, by why. due_at: of the next job, where they are staggered. parts: of an export.
    failures: turns in a row that ended in an error.
    """

    place: WalkPosition | None = None
    share: float = 0.0
    examined: int = 0
    matched: int = 0
    done: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    due_at: datetime | None = None
    parts: int = 0
    failures: int = 0
    error: str = ""

    def counting(
        self, *, examined: int, matched: int, done: int, refused: Sequence[Example], shown: Sequence[Example]
    ) -> Progress:
        """With what came of some more rows. shown: what was matched, in a dry run."""
        by_code = dict(self.refused)
        for example in refused:
            by_code[example.code] = by_code.get(example.code, 0) + 1
        return replace(
            self,
            examined=self.examined + examined,
            matched=self.matched + matched,
            done=self.done + done,
            refused=by_code,
            examples=(*self.examples, *refused, *shown)[:MAX_EXAMPLES],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation as it was asked for, and how it stands. caller: who asked. fingerprint: of what was asked.

    shift: of a reschedule. rate: jobs a second that are to run, of a run_now. stop_requested: it ends at its next step.
    """

    operation_id: str
    action: OperationKind
    wanted: JobFilter
    caller: str
    created_at: datetime
    fingerprint: str = ""
    shift: Shift | None = None
    rate: float = USUAL_RATE
    dry_run: bool = False
    state: OperationState = OperationState.WAITING
    progress: Progress = Progress()
    stop_requested: bool = False
    owner: str = ""
    lease_until: datetime | None = None
    ended_at: datetime | None = None

    @property
    def tenant(self) -> str:
        """Whose jobs are selected."""
        return self.wanted.tenant

    @property
    def log_keys(self) -> dict[str, object]:
        """What each line of the log about it begins with."""
        return {
            "operation": self.operation_id,
            "tenant": self.tenant,
            "action": self.action.value,
            "caller": self.caller,
            "dry_run": self.dry_run,
        }

    def has_moved(self, identity: str) -> bool:
        """Whether it gave a job that identity."""
        return self.operation_id in movers_of(identity)

    def is_older(self, instant: datetime | None) -> bool:
        """Whether it was asked for before something that happened then; False where that is not known."""
        return instant is not None and instant > self.created_at
