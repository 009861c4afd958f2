"""Fires of schedules, as the scheduler answers: those to come, those that became runs, and their number by the minute."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tickwheel.client.instants import optional_instant, parse_instant
from tickwheel.errors import ApiProblem


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What makes a fire differ from what its rule says: gap, fold, window, calendar, spread or jitter, and why."""

    by: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Fire:
    """A fire that is to come. `local` is the same instant, with the offset of the schedule's zone at that time."""

    at: datetime
    local: datetime
    marks: tuple[Mark, ...] = ()

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Fire":
        """Reads the scheduler's answer."""
        marks = tuple(Mark(by=mark["by"], reason=mark["reason"]) for mark in body.get("marks", ()))
        return cls(at=parse_instant(body["at"]), local=datetime.fromisoformat(body["local"]), marks=marks)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The next fires before and after a change that was not made."""

    before: tuple[Fire, ...]
    after: tuple[Fire, ...]

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Difference":
        """Reads the scheduler's answer."""
        return cls(
            before=tuple(Fire.from_json(fire) for fire in body["before"]),
            after=tuple(Fire.from_json(fire) for fire in body["after"]),
        )


@dataclass(frozen=True, kw_only=True)
class Run:
    """A fire that became a job; `state` is the job's, `untracked` where nothing is known of it (any more)."""

    fire_at: datetime
    job_id: str
    state: str
    attempt: int
    error: str | None = None
    settled_at: datetime | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Run":
        """Reads the scheduler's answer."""
        return cls(
            fire_at=parse_instant(body["fire_at"]),
            job_id=body["job_id"],
            state=body["state"],
            attempt=int(body["attempt"]),
            error=body.get("error"),
            settled_at=optional_instant(body.get("settled_at")),
        )


@dataclass(frozen=True, kw_only=True)
class FireCount:
    """How many fires a schedule has in each minute, counted from the start; or why they were not counted."""

    tenant: str
    id: str
    minutes: Mapping[int, int]
    problem: ApiProblem | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "FireCount":
        """Reads one result of the scheduler's answer."""
        problem = body.get("problem")
        return cls(
            tenant=body.get("tenant", ""),
            id=body.get("id", ""),
            minutes={int(minute): int(count) for minute, count in body.get("minutes", {}).items()},
            problem=ApiProblem.from_json(problem, status=int(problem["status"])) if problem else None,
        )


@dataclass(frozen=True, kw_only=True)
class Backfill:
    """Runs of a time range that has passed: how many, of which fires, and when the last of them is due.

    `jobs` is empty for a dry run; the instants are None for an empty range. `next` is where to go on, as `after`, where the
    tenant's rate or quota left some of the range for later; else None.
    """

    id: str
    count: int
    first: datetime | None
    last: datetime | None
    ends_at: datetime | None
    jobs: tuple[str, ...]
    next: str | None = None

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Backfill":
        """Reads the scheduler's answer."""
        return cls(
            id=body["backfill"],
            count=int(body["count"]),
            first=optional_instant(body.get("first")),
            last=optional_instant(body.get("last")),
            ends_at=optional_instant(body.get("ends_at")),
            jobs=tuple(body.get("jobs", ())),
            next=body.get("next"),
        )
