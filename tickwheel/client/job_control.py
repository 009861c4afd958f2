"""What the scheduler answers to operations on a submitted job."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from tickwheel.client.answers import Answer, Wire
from tickwheel.client.words import JobState, Reason


@dataclass(frozen=True, kw_only=True)
class Waiting(Answer):
    """A job that waits until `due_at`. `moved_from` is the requested id, if the job continues under another."""

    id: str
    tenant: str
    state: JobState
    due_at: datetime
    moved_from: str | None = None


@dataclass(frozen=True, kw_only=True)
class Explanation(Answer):
    """Why a job has not run yet, or how it ended: `reason` as a code, `detail` in words."""

    id: str
    state: JobState
    reason: Reason
    at: datetime | None
    detail: str
    remedy: Annotated[str, Wire("remedy", or_else="would_change_it")]


@dataclass(frozen=True, kw_only=True)
class Heartbeat(Answer):
    """The attempt has a lease until `lease_until`. `cancelled`: stop, and then complete or fail the job."""

    id: str
    state: JobState
    lease_until: datetime | None
    cancelled: bool


@dataclass(frozen=True, kw_only=True)
class Ended(Answer):
    """The attempt has ended, and its job is in this state."""

    id: str
    state: JobState
