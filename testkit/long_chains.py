"""Work whose next step is sent, again and again, by the invocation that made the one before.

Lambda stops such a chain after about 16 invocations if the messages say so, so each of these is longer. All of them end
where nothing is stopped: a tenant's failing job has to have enough company of the same destination that succeeds, or its
breaker holds the retries up.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tickwheel.client import Client
from tickwheel.client.jobs import NewJob, RetryPolicy, Submission
from tickwheel.client.schedule_parts import Every
from tickwheel.client.schedules import NewSchedule, Schedule

ATTEMPTS = 20
FIRES = 25
CROWD = 30

END_TO_START = "end-to-start"

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Called:
    """What a job calls, and with what."""

    target: str
    payload: Any = None


def begin_fires(client: Client, called: Called, *, tenant: str) -> Schedule:
    """A schedule that fires a second after each run has ended, until it is deleted."""
    every = Every(interval=_SECOND, from_end=True)
    return client.schedules.put(
        NewSchedule(END_TO_START, tenant=tenant, every=every, target=called.target, payload=called.payload)
    )


def failing_job(called: Called, *, tenant: str, between: timedelta, attempts: int = ATTEMPTS) -> NewJob:
    """A job with so many attempts, whose target fails but for the last of them."""
    retry = RetryPolicy(strategy="fixed", attempts=attempts, base=between, cap=between)
    return NewJob(called.target, tenant=tenant, payload=called.payload, retry=retry)


def begin_crowd(client: Client, called: Called, *, tenant: str) -> list[Submission]:
    """Jobs of a tenant with one permit, all due as soon as it has only that."""
    capped = client.tenants.patch(tenant, limits={"max_concurrency": 1})
    job = NewJob(called.target, tenant=tenant, payload=called.payload, run_at=capped.in_effect_by)
    return client.submit_many([job] * CROWD)
