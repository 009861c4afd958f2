"""Jobs that were submitted and wait for their time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.e2e.polling import eventually
from tests.e2e.sink import Target
from tickwheel.client import Client
from tickwheel.jobs import Job, Submitted
from tickwheel.local import Stack


@dataclass(frozen=True)
class Sent:
    """A submitted job and where it calls."""

    job: Submitted
    target: Target


@dataclass(frozen=True)
class FarJobs:
    """Jobs just past GUARD, in the first bucket that opens late enough for an update to happen before.

    opens_at: from then on the scanner may promote them. queued: messages on the ready queues after the submission.
    """

    opens_at: datetime
    default: Sent
    exact: Sent
    at_least_once: Sent
    cancelled: Sent
    retried: Sent
    for_new_handler: Submitted
    queued: dict[str, int]


@dataclass(frozen=True)
class Neighbours:
    """Two tenants of one shard whose jobs are due at the same instant: one has thousands, and comes first in its bucket."""

    noise: Target
    quiet: Target
    noise_count: int
    quiet_count: int


@dataclass(frozen=True)
class Update:
    """A deployment of changed code, while these near jobs waited or came due."""

    began_at: datetime
    near: list[Sent]
    code: tuple[str, str]
    stack: Stack


@dataclass(frozen=True)
class CancelledFar:
    """A cancel of a far job: its state, and whether it had a row before and after."""

    state: str
    had_row: bool
    has_row: bool


def send(client: Client, target: Target, *, seconds: float = 2, **fields: Any) -> Sent:
    """A job of tenant acme that is due in so many seconds by this clock."""
    run_at = datetime.now(UTC) + timedelta(seconds=seconds)
    return Sent(client.submit(target.url, **{"tenant": "acme", "run_at": run_at, **fields}), target)


def reaches(client: Client, job_id: str, state: str, *, within: float = 60) -> Job:
    """The job, once it is in that state."""
    return eventually(
        lambda: client.get(job_id), lambda job: job.state == state, within=within, what=f"{job_id} is {state}"
    )
