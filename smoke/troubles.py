"""What goes wrong on purpose, and what people do about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

from smoke.check import Check, Phase
from smoke.executions import ENDS
from smoke.faults import Wrong
from smoke.ground import ECHO, REFUSES, TRIAL, Ground
from tickwheel.client.dead_letters import DeadLetter, DeadLetterFilter
from tickwheel.client.jobs import NewJob, RetryPolicy

_ONCE = RetryPolicy(strategy="fixed", attempts=1)
_TICK_SECONDS = 90
"""For a tick of a scanner to come, and to end."""

_REPLAYED, _THROTTLED = "replayed", "throttled"
"""Tags."""

_OF_EACH = 10
"""Throttled jobs of a delivery."""

_FOREIGN = "?"
"""Whose dead letters are those of messages that Tickwheel did not write."""


@partial(Check, name="timeout", phase=Phase.JOBS, seconds=100, jobs=2, worker_seconds=12, is_quick=True)
def outlived_timeout(ground: Ground) -> str:
    """A handler that does not come back in time has failed, and its worker goes on."""
    tenant = ground.tenant()
    payload = {"seconds": 6}
    slow = NewJob(TRIAL, tenant=tenant, priority="high", payload=payload, timeout=timedelta(seconds=2), retry=_ONCE)
    (job,) = ground.submit(slow)
    ground.await_ends([job], states=["failed"], within=60)
    error = ground.client.get(job.id).error or ""
    if "timeout" not in error and "2 s" not in error:
        raise Wrong(f"failed: {error}", expected="failed by its timeout")
    ground.await_ends(ground.submit(NewJob(ECHO, tenant=tenant, priority="high")), within=30)
    return f"failed after 2 s of 6: {error}; the next job succeeded"


@partial(Check, name="foreign message", phase=Phase.JOBS, seconds=100, jobs=1, is_quick=True)
def foreign_message(ground: Ground) -> str:
    """A message that somebody else put on a ready queue is a dead letter, with its text."""
    text = f"smoke {ground.run}: not a job"
    ground.aws("sqs").send_message(QueueUrl=ground.queue("Low"), MessageBody=text)

    def look() -> DeadLetter | None:
        matching = DeadLetterFilter(tenant=_FOREIGN, since=ground.began_at - timedelta(minutes=1))
        listed = (ground.client.dead_letters.get(letter.id) for letter in ground.client.dead_letters.list(matching))
        return next((letter for letter in listed if letter.raw == text), None)

    found = ground.eventually(look, bool, within=90, expected="a dead letter with its text")
    assert found is not None
    ground.client.dead_letters.purge(found.id)
    return f"a dead letter of class {found.error_class}, purged"


@partial(Check, name="cancel", phase=Phase.JOBS, seconds=90, jobs=3, is_quick=True)
def cancels(ground: Ground) -> str:
    """An acknowledged cancel holds, in both rings."""
    tenant = ground.tenant()
    due_at = datetime.now(UTC) + timedelta(seconds=8)
    near, far = ground.submit(
        NewJob(ECHO, tenant=tenant, run_at=due_at), NewJob(ECHO, tenant=tenant, run_at=ground.next_far())
    )
    states = {job.ring: ground.client.cancel(job.id).state for job in (near, far)}
    after = NewJob(ECHO, tenant=tenant, run_at=due_at + timedelta(seconds=2))
    ground.await_ends(ground.submit(after), within=60)
    seen = {job.ring: ground.client.get(job.id).state for job in (near, far)}
    if set(seen.values()) != {"cancelled"}:
        raise Wrong(f"{states}, and afterwards {seen}", expected="cancelled, of both rings")
    return "cancelled in both rings; the near one had not run when its time had passed"


@partial(Check, name="replay", phase=Phase.JOBS, seconds=160, jobs=3, is_quick=True)
def replay(ground: Ground) -> str:
    """A dead letter is replayed, with another budget of attempts."""
    tenant = ground.tenant()
    (job,) = ground.submit(NewJob(TRIAL, tenant=tenant, payload={"succeeds_at": 2}, retry=_ONCE, tags=[_REPLAYED]))
    ground.await_ends([job], states=["failed"], within=60)
    matching = DeadLetterFilter(tenant=tenant, tag=_REPLAYED)
    (letter,) = ground.eventually(
        lambda: list(ground.client.dead_letters.list(matching)), bool, within=30, expected="its dead letter"
    )
    answer = ground.client.dead_letters.replay(letter.id)
    ground.await_ends([job], within=60)
    return f"{answer.outcome}, attempt {answer.attempt} succeeded"


@partial(Check, name="pause", phase=Phase.JOBS, seconds=_TICK_SECONDS + 270, is_far=True, jobs=3)
def pause(ground: Ground) -> str:
    """A tenant that is paused has nothing run, and everything after it is resumed."""
    tenant = ground.tenant("pause")
    paused = ground.client.tenants.pause(tenant, note="make smoke")
    assert paused.in_effect_by is not None
    due_at = max(paused.in_effect_by, datetime.now(UTC)) + timedelta(seconds=3)
    (job,) = ground.submit(NewJob(ECHO, tenant=tenant, run_at=due_at))
    ground.await_ends(ground.submit(NewJob(ECHO, tenant=ground.tenant(), run_at=due_at)), within=90)
    seen = ground.client.get(job.id).state
    ground.client.tenants.resume(tenant)
    if seen == "succeeded":
        raise Wrong("it ran", expected="it waits while its tenant is paused")
    # Its worker has put it into the far ring.
    wheel = ground.stage.wheel
    ground.await_ends([job], within=(wheel.guard + 3 * wheel.bucket).total_seconds() + _TICK_SECONDS)
    return f"{seen} while paused, succeeded after it was resumed"


@partial(
    Check,
    name="throttled",
    phase=Phase.LONG,
    seconds=1_900,
    jobs=30,
    needs_aws="the local cloud does not count what it throttles as received",
)
def throttled(ground: Ground) -> str:
    """With no worker at all for ten minutes, jobs are late: none is buried, and all run afterwards."""
    worker, client, minutes = ground.function("Worker"), ground.aws("lambda"), 10
    tenant = ground.tenant()
    # 0 is what a run that was killed has left behind.
    before = client.get_function_concurrency(FunctionName=worker).get("ReservedConcurrentExecutions") or None

    def restore() -> None:
        if before is None:
            client.delete_function_concurrency(FunctionName=worker)
        else:
            client.put_function_concurrency(FunctionName=worker, ReservedConcurrentExecutions=before)

    ground.at_the_end("the worker's concurrency", restore)
    client.put_function_concurrency(FunctionName=worker, ReservedConcurrentExecutions=0)
    until = datetime.now(UTC) + timedelta(minutes=minutes)
    tracked = [NewJob(ECHO, tenant=tenant, delivery=delivery, tags=[_THROTTLED]) for delivery in ENDS]
    # It leaves no row: that it ran, and was not buried, is seen by the error of its dead letter.
    untracked = NewJob(TRIAL, tenant=tenant, payload=REFUSES, delivery="at_least_once", tags=[_THROTTLED])
    submitted = ground.submit(*(tracked * _OF_EACH), *([untracked] * _OF_EACH))
    jobs = submitted[: len(tracked) * _OF_EACH]
    ground.eventually(
        lambda: datetime.now(UTC), lambda now: now >= until, within=minutes * 60 + 5, expected="ten minutes"
    )
    letters = DeadLetterFilter(tenant=tenant, tag=_THROTTLED)
    early = [job.id for job in jobs if ground.client.get(job.id).state in ENDS.values()]
    buried = list(ground.client.dead_letters.list(letters))
    restore()
    if early or buried:
        raise Wrong(f"{len(early)} jobs ran, {len(buried)} dead letters", expected="neither while no worker may run")
    ground.await_ends(jobs, states=ENDS.values(), within=600)
    found = ground.eventually(
        lambda: list(ground.client.dead_letters.list(letters)),
        lambda found: len(found) >= _OF_EACH,
        within=600,
        expected=f"{_OF_EACH} dead letters of untracked jobs that ran",
    )
    if wrong := [letter.error for letter in found if letter.error_class != "handler_refused"]:
        raise Wrong(f"{len(wrong)} dead letters: {wrong[0]}", expected="none is buried")
    return f"{len(submitted)} jobs ran after {minutes} minutes without a worker; none was buried"


CHECKS = (outlived_timeout, foreign_message, cancels, replay, pause, throttled)
