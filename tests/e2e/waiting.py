"""Jobs that were submitted and wait for their time."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from functions.domain.instants import MINUTE
from testkit.deployment import Identity
from testkit.polling import PATIENCE, eventually
from tests.e2e.schedules import fires_of
from tests.e2e.sink import Target
from tickwheel.client import Client
from tickwheel.client.jobs import Job, Submitted

LONGEST_ABSENCE = 240.0
"""Seconds. A message that was with a killed function comes back after 95 s, and a tick is a minute away."""


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
class Ticking:
    """A schedule of each minute, whose tenant has its name and no other work."""

    name: str
    target: Target
    created_at: datetime

    def concerns(self, event: Mapping[str, Any]) -> bool:
        """Whether a line of a log tells of one of its fires."""
        return str(event.get("job_id", "")).startswith(f"j1~{self.name}~")

    def wait_for_fires(self, *, until: datetime, but: AbstractSet[datetime] = frozenset()) -> None:
        """Until every fire that was owed up to an instant, but those, has arrived; fails where one does not."""
        # What is waited for may be over within the minute in which the schedule was made.
        until = max(until, self.created_at + timedelta(minutes=1))
        owed = set(fires_of(MINUTE, timedelta(0), after=self.created_at, until=until)) - but
        assert owed, f"no fire was owed from {self.created_at} to {until}"
        eventually(
            lambda: sorted(owed - {arrival.scheduled_at for arrival in self.target.arrivals}),
            lambda missing: not missing,
            within=LONGEST_ABSENCE,
            what=f"every fire of {self.name} up to {until:%H:%M:%S} arrives",
        )


@dataclass(frozen=True)
class Update:
    """A deployment of another release, while these near jobs waited or came due."""

    began_at: datetime
    ended_at: datetime
    near: list[Sent]
    before: Identity
    after: Identity


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


def reaches(client: Client, job_id: str, state: str, *, within: float = PATIENCE) -> Job:
    """The job, once it is in that state."""
    return eventually(
        lambda: client.get(job_id), lambda job: job.state == state, within=within, what=f"{job_id} is {state}"
    )


def runs_to_its_end(client: Client, sent: Sent) -> None:
    """It succeeds, was not begun early, and each call has a larger fence than the one before.

    The local cloud kills functions that run while they are updated, which AWS lets finish. Then the attempt is rescued, and
    its target can tell that by the fence.
    """
    reaches(client, sent.job.id, "succeeded", within=LONGEST_ABSENCE)
    arrivals = sent.target.arrivals
    assert arrivals[0].at >= sent.job.due_at
    assert all(earlier.fence < later.fence for earlier, later in pairwise(arrivals))
