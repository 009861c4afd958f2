"""Jobs of each ring, class and delivery, and how late they are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from smoke.check import Check, Phase
from smoke.faults import Wrong
from smoke.ground import ECHO, REFUSES, TRIAL, Ground
from tickwheel.client.dead_letters import DeadLetterFilter
from tickwheel.client.jobs import Delivery, NewJob, Priority, Submitted

PRIORITIES: tuple[Priority, ...] = tuple(Priority)
DELIVERIES: tuple[Delivery, ...] = tuple(Delivery)

ENDS: dict[Delivery, str] = {Delivery.EXACTLY_ONCE: "succeeded", Delivery.AT_MOST_ONCE: "attempted"}
"""Of jobs that leave a row; an `at_least_once` one is seen by its dead letter."""

_SAMPLES = 20
_MOST_LAG = 2.5
"""Seconds, of a warm stage: p99 of the objective, and the round of whole seconds that SQS delays by."""

_MOST_EXACT_LAG = 0.5


@partial(Check, name="near ring", phase=Phase.JOBS, seconds=130, jobs=12, is_quick=True)
def near(ground: Ground) -> str:
    """A job of each class and delivery, due in seconds, is run."""
    return _each_runs(ground, "near", datetime.now(UTC) + timedelta(seconds=3), within=60)


@partial(Check, name="far ring", phase=Phase.JOBS, seconds=130, is_far=True, jobs=12)
def far(ground: Ground) -> str:
    """A job of each class and delivery by the far ring is written, promoted a tick later, and run."""
    return _each_runs(ground, "far", ground.next_far(), within=60)


@partial(
    Check,
    name="lag, warm",
    phase=Phase.JOBS,
    seconds=100,
    jobs=2 * _SAMPLES + 1,
    worker_seconds=4 * _SAMPLES,
    is_quick=True,
    needs_aws="its lag is that of the machine, whose few cores run everything: see `make bench`",
)
def lag(ground: Ground) -> str:
    """Jobs of a warm stage begin within the objective, `exact` ones to a fraction of a second."""
    tenant = ground.tenant()
    ground.await_ends(
        ground.submit(NewJob(ECHO, tenant=tenant, priority="critical")), within=30
    )  # the first starts a worker
    begin = datetime.now(UTC) + timedelta(seconds=3)
    dues = [begin + timedelta(seconds=number * 0.37) for number in range(_SAMPLES)]
    jobs = {
        precision: ground.submit(
            *(NewJob(ECHO, tenant=tenant, priority="critical", run_at=at, precision=precision) for at in dues)
        )
        for precision in ("default", "exact")
    }
    ground.await_ends([job for each in jobs.values() for job in each], within=60)
    lags = {precision: lags_of(ground, each) for precision, each in jobs.items()}
    early = [lag for each in lags.values() for lag in each if lag < 0]
    middle = {precision: each[len(each) // 2] for precision, each in lags.items()}
    seen = ", ".join(f"{name} p50 {middle[name]:.2f} s and most {each[-1]:.2f} s" for name, each in lags.items())
    if early or middle["default"] > _MOST_LAG or middle["exact"] > _MOST_EXACT_LAG:
        raise Wrong(seen, expected=f"none early, p50 within {_MOST_LAG} s, exact within {_MOST_EXACT_LAG} s")
    return seen


def lags_of(ground: Ground, jobs: Sequence[Submitted]) -> list[float]:
    """Seconds from when each was due until its end was written, by the stage's clock, in order."""
    found = ground.side_by_side(lambda job: ground.client.get(job.id), jobs)
    return sorted((job.updated_at - job.due_at).total_seconds() for job in found if job.updated_at is not None)


def _each_runs(ground: Ground, ring: str, due_at: datetime, *, within: float) -> str:
    tenant = ground.tenant()
    tracked = {
        (priority, delivery): NewJob(ECHO, tenant=tenant, priority=priority, delivery=delivery, run_at=due_at)
        for priority in PRIORITIES
        for delivery in ENDS
    }
    # Of one without a row nothing could be seen but that it failed for good.
    untracked = [
        NewJob(
            TRIAL,
            tenant=tenant,
            payload=REFUSES,
            priority=priority,
            delivery="at_least_once",
            run_at=due_at,
            tags=[ring],
        )
        for priority in PRIORITIES
    ]
    submitted = ground.submit(*tracked.values(), *untracked)
    rings = {job.ring for job in submitted}
    if rings != {ring}:
        raise Wrong(f"rings {rings}", expected=ring)
    by_delivery = dict(zip(tracked, submitted, strict=False))
    for delivery, state in ENDS.items():
        jobs = [job for (_, of), job in by_delivery.items() if of == delivery]
        ground.await_ends(jobs, states=[state], within=within)
    matching = DeadLetterFilter(tenant=tenant, error_class="handler_refused", tag=ring)
    ground.eventually(
        lambda: [letter.target for letter in ground.client.dead_letters.list(matching)],
        lambda found: len(found) == len(untracked),
        within=within,
        expected=f"{len(untracked)} dead letters of untracked jobs",
    )
    early = [lag for lag in lags_of(ground, list(by_delivery.values())) if lag < 0]
    if early:
        raise Wrong(f"{len(early)} jobs ended before they were due", expected="none is early")
    return f"{len(submitted)} jobs by the {ring} ring: {len(PRIORITIES)} classes, {len(DELIVERIES)} deliveries"


CHECKS = (near, far, lag)
