"""Whether a job may enter its collection by whoever places it."""

from __future__ import annotations

from datetime import datetime

from functions.domain.instants import DAY
from functions.domain.jobs.collection import collection_in, digest_of
from functions.domain.jobs.job import Timer
from functions.domain.schedules.collect_times import closes_at

NOTED_AFTER = 7 * DAY
"""Who waits for longer has a row of the ledger that says so: one without is taken for over, two weeks after its time."""


def enters_at_once(timer: Timer, *, now: datetime) -> bool:
    """Whether an attempt may be put into its collection by whoever places it, without the worker that notes in the ledger that it waits.

    It can be found there without that note. And no fire: whether it becomes a run is decided by a worker.
    """
    job = timer.job
    if job.collect is None or (job.occurrence is not None and timer.attempt == 1):
        return False
    if timer.attempt > 1:
        return True
    named = collection_in(job.tenant, job.identity)
    waits_for = closes_at(job.collect, timer.wakes_at) - now
    return named is not None and named.digest == digest_of(job) and waits_for < NOTED_AFTER
