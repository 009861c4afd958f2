"""Take in fires that no version of their schedule decides: those of a trigger and of a backfill.

Each is registered before it is placed, as a job with an idempotency key is. A repeat of the request, which comes at another
time, is answered with the ids of the first; and until a worker claims such a fire, its row is what distinguishes its id from one
that nobody was given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from functions.domain.errors import NotPlaced
from functions.domain.jobs.claims import LONG_OVERDUE
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import JobId, job_id_of, parse_job_id
from functions.domain.lifecycle import State
from functions.domain.wheel import Ring
from functions.ports.clock import Clock
from functions.ports.ledger import Applied, Ledger
from functions.services.far_ring.placer import Placer


@dataclass(frozen=True, slots=True)
class Taken:
    """A fire as it was first asked for. is_new: by this request."""

    job: Job
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedFires:
    """Takes fires in. token: a fresh owner token. side_by_side: maps a function over items at the same time, answers in order."""

    clock: Clock
    ledger: Ledger
    placer: Placer
    token: Callable[[], str]
    side_by_side: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

    def take_in(self, jobs: Sequence[Job]) -> list[Taken]:
        """One write unit each, and its place. Repeating it takes nothing in twice. Raises NotPlaced: ask again."""
        registered: list[tuple[Taken, bool]] = self.side_by_side(self._register, jobs)
        again_at = self.clock.now()
        waiting = [
            Timer.first_of(taken.job, asked_at=None if taken.is_new else again_at)
            for taken, needs_place in registered
            if needs_place
        ]
        placements = self.placer.place(waiting)
        faults = [placement.fault for placement in placements if placement.ring is None]
        if faults:
            raise NotPlaced(faults)
        return [taken for taken, _ in registered]

    def _register(self, job: Job) -> tuple[Taken, bool]:
        """The fire as it was first asked for, and whether it needs a place: it waits for its time, as far as its row says."""
        answer = self.ledger.register(
            job, job_id=str(job_id_of(job)), fingerprint="", owner=self.token(), now=self.clock.now()
        )
        if isinstance(answer, Applied):
            return Taken(job, is_new=True), True
        assert answer.row is not None  # only an existing row refuses
        row = answer.row
        first = _as_first(job, parse_job_id(row.job_id))
        waits = row.state is State.SCHEDULED and not row.cancel_requested
        return Taken(first, is_new=False), waits and self._needs_place(first)

    def _needs_place(self, job: Job) -> bool:
        """Whether a fire that waits, as far as its row says, needs a place: the first request may have died between its two writes.

        Placing it again overwrites its far row, or the ledger drops it. One that keeps no row would run again: near, it
        is placed for as long as the first request may have died just now; far, only while its row stands.
        """
        now = self.clock.now()
        if job.is_ledgered:
            return True
        if self.placer.wheel.place(job.scheduled_at, now=now) is Ring.NEAR:
            return now <= job.scheduled_at + LONG_OVERDUE
        self.placer.place_registered(Timer.first_of(job))
        return False


def _as_first(job: Job, first: JobId) -> Job:
    """The job of a request that is repeated, as the first one made it."""
    fire = job.occurrence
    if fire is not None and fire.fire_at == job.scheduled_at:
        # That of a trigger fires when it is asked for.
        fire = replace(fire, fire_at=first.due_at, nominal_at=first.due_at)
    return replace(
        job,
        bucket=first.bucket,
        shard=first.shard,
        priority=first.priority,
        delivery=first.delivery,
        scheduled_at=first.due_at,
        expires_at=first.due_at + (job.expires_at - job.scheduled_at) if job.expires_at else None,
        occurrence=fire,
    )
