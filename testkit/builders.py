"""Valid values with the overrides that matter to a test."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

from functions.domain.far_ring.cursor import ClassCursor, Cursors, OwnCursor, Position
from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.far_ring.timer_key import key_of
from functions.domain.instants import to_seconds
from functions.domain.jobs.id_check import check_of
from functions.domain.jobs.job import Delivery, Job, Payload, Precision, Priority, Timer
from functions.domain.jobs.job_id import JobId, job_id_of
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.jobs.submission import Submission
from functions.domain.operations.operation import MARK, USUAL_REACH, JobFilter, Operation, OperationKind, Shift
from functions.domain.schedules.due_fires import occurrence_job, shard_of
from functions.domain.schedules.rules import Every
from functions.domain.schedules.schedule import JobTemplate, Schedule, Weekday, Window
from functions.domain.schedules.state import Cut, Link, ScheduleState, Status
from functions.domain.targets.breaker import OPEN_FOR, Breaker, BreakerState
from functions.domain.wheel import Wheel
from functions.ports.dead_letters import DeadLetter
from functions.ports.schedules import StoredSchedule
from functions.ports.targets import Invocation

NOON = datetime(2027, 3, 1, 12, 0, 0, tzinfo=UTC)
"""The instant at which a test's clock starts."""

LOCAL_WHEEL = Wheel(
    bucket=timedelta(seconds=60),
    lookahead=timedelta(seconds=90),
    skew=timedelta(seconds=5),
    guard=timedelta(seconds=155),
    write_shards=2,
    scan_shards=2,
)
"""The constants of the local stage."""

DEPLOYED_WHEEL = replace(
    LOCAL_WHEEL,
    lookahead=timedelta(seconds=120),
    skew=timedelta(seconds=60),
    guard=timedelta(seconds=240),
    write_shards=4,
    scan_shards=4,
)
"""The constants of a stage on AWS."""

_numbers = itertools.count(1)

ID_SECRET = b"what makes the ids of tests own."
"""Of every stage in the tests."""


def a_wheel(**overrides: Any) -> Wheel:
    """The local stage's wheel."""
    return replace(LOCAL_WHEEL, **overrides)


def a_job(*, due_at: datetime = NOON, wheel: Wheel = LOCAL_WHEEL, **overrides: Any) -> Job:
    """A job of tenant acme that calls an HTTP target. Its id has a check, unless it is given an identity."""
    given = overrides.pop("identity", None)
    identity = f"job-{next(_numbers)}" if given is None else given
    tenant = overrides.pop("tenant", "acme")
    fields: dict[str, Any] = {
        "target": "https://example.com/hook",
        "payload": Payload(text='{"n":1}'),
        "priority": Priority.NORMAL,
        "delivery": Delivery.EXACTLY_ONCE,
        "precision": Precision.DEFAULT,
        "retry": RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=timedelta(seconds=10)),
        "timeout": timedelta(seconds=10),
    }
    job = Job(
        tenant=tenant,
        identity=identity,
        bucket=wheel.bucket_of(due_at),
        shard=wheel.shard_of(tenant, identity),
        scheduled_at=due_at,
        **{**fields, **overrides},
    )
    return job if given is not None else replace(job, identity=with_check(job_id_of(job)).identity)


def with_check(job_id: JobId, *, secret: bytes = ID_SECRET) -> JobId:
    """The id whose identity ends with its check; `job_id` has the identity without it."""
    return replace(job_id, identity=job_id.identity + check_of(job_id, secret=secret))


def a_timer(*, due_at: datetime = NOON, attempt: int = 1, backoff: timedelta = timedelta(0), **overrides: Any) -> Timer:
    """The timer of a job, for any attempt."""
    return Timer(job=a_job(due_at=due_at, **overrides), due_at=due_at, attempt=attempt, backoff=backoff)


def a_submission(*, due_at: datetime = NOON, **overrides: Any) -> Submission:
    """What a tenant asks for."""
    fields: dict[str, Any] = {
        "tenant": "acme",
        "target": "https://example.com/hook",
        "payload": '{"n":1}',
        "idempotency_key": None,
        "priority": Priority.NORMAL,
        "delivery": Delivery.EXACTLY_ONCE,
        "precision": Precision.DEFAULT,
        "retry": RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=timedelta(seconds=10)),
        "timeout": timedelta(seconds=10),
        "expires_after": None,
    }
    return Submission(due_at=due_at, **{**fields, **overrides})


def every(*, from_end: bool = False, phase: timedelta = timedelta(0), **interval: float) -> Every:
    """A rule: `every(minutes=1)`."""
    return Every(interval=timedelta(**interval), phase=phase, from_end=from_end)


def a_window(start: str, end: str, days: str = "mon tue wed thu fri sat sun") -> Window:
    """When a schedule may fire: `a_window("22:00", "06:00", "sat sun")`."""
    opens_on = frozenset(Weekday[day.upper()] for day in days.split())
    return Window(start=time.fromisoformat(start), end=time.fromisoformat(end), days=opens_on)


OFFICE = a_window("09:00", "17:00", "mon tue wed thu fri")
"""Eight hours of five days."""


def an_invocation(**overrides: Any) -> Invocation:
    """The second attempt of a job of tenant acme, due at noon, with ten seconds for it."""
    fields: dict[str, Any] = {
        "job_id": "j1~acme~2e~a0~1~b0~x",
        "tenant": "acme",
        "idempotency_key": "acme#x",
        "attempt": 2,
        "fence": 7,
        "scheduled_at": NOON,
        "deadline": NOON + timedelta(seconds=10),
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    }
    return Invocation(**{**fields, **overrides})


def a_template(**overrides: Any) -> JobTemplate:
    """The job of each fire of a schedule."""
    fields: dict[str, Any] = {
        "target": "https://example.com/hook",
        "payload": Payload(text='{"n":1}'),
        "retry": RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=timedelta(seconds=10)),
        "timeout": timedelta(seconds=10),
    }
    return JobTemplate(**{**fields, **overrides})


def a_schedule(**overrides: Any) -> Schedule:
    """Schedule nightly of tenant acme, every hour on the hour."""
    fields: dict[str, Any] = {
        "tenant": "acme",
        "schedule_id": "nightly",
        "rule": every(hours=1),
        "job": overrides.pop("job", None) or a_template(),
    }
    return Schedule(**{**fields, **overrides})


def a_stored_schedule(
    *, version: int = 1, status: Status = Status.ACTIVE, requests: tuple[str, ...] = (), **overrides: Any
) -> StoredSchedule:
    """A definition as it is stored; schedule: a whole one, or the overrides of one."""
    return StoredSchedule(
        schedule=overrides.pop("schedule", None) or a_schedule(**overrides),
        version=version,
        status=status,
        created_at=NOON,
        changed_at=NOON,
        requests=requests,
    )


def a_link(at: datetime = NOON, **overrides: Any) -> Link:
    """Where a chain goes on: at a fire that nothing moved."""
    return Link(at=at, **{"nominal_at": at, **overrides})


def a_state(*, version: int = 1, **overrides: Any) -> ScheduleState:
    """The state of an active schedule in its first version, that goes on at noon."""
    fields: dict[str, Any] = {
        "status": Status.ACTIVE,
        "born": version,
        "changed_at": NOON - timedelta(hours=1),
        "cuts": (Cut(version, NOON - timedelta(hours=1)),),
        "link": a_link(),
    }
    return ScheduleState(version=version, **{**fields, **overrides})


def an_alarm(
    schedule: Schedule | None = None, *, alarm_at: datetime = NOON, wheel: Wheel = LOCAL_WHEEL, **overrides: Any
) -> ScheduleAlarm:
    """The alarm of a schedule's first version, due with its fire."""
    schedule = schedule or a_schedule()
    fields: dict[str, Any] = {"version": 1, "link": a_link(alarm_at), "shard": shard_of(schedule, wheel)}
    return ScheduleAlarm(
        tenant=schedule.tenant,
        schedule_id=schedule.schedule_id,
        priority=schedule.job.priority,
        alarm_at=alarm_at,
        **{**fields, **overrides},
    )


def an_occurrence_timer(
    schedule: Schedule | None = None,
    *,
    fire_at: datetime = NOON,
    version: int = 1,
    attempt: int = 1,
    wheel: Wheel = LOCAL_WHEEL,
    **link: Any,
) -> Timer:
    """The timer of a fire of a schedule. link: what else is known of the fire."""
    job = occurrence_job(schedule or a_schedule(), a_link(fire_at, **link), version=version, wheel=wheel)
    return Timer(job=job, due_at=job.scheduled_at, attempt=attempt)


def a_dead_letter(timer: Timer | None = None, **overrides: Any) -> DeadLetter:
    """What is kept of a job that failed for good at noon."""
    timer = timer or a_timer()
    fields: dict[str, Any] = {
        "dead_at": NOON,
        "error": "it hurts",
        "attempt": timer.attempt,
        "job_id": str(job_id_of(timer.job)),
    }
    return DeadLetter(tenant=timer.job.tenant, identity=timer.job.identity, timer=timer, **{**fields, **overrides})


def a_breaker(*, opened_at: datetime = NOON, **overrides: Any) -> Breaker:
    """The breaker of tenant acme for example.com, opened at noon."""
    fields: dict[str, Any] = {
        "tenant": "acme",
        "destination": "https://example.com",
        "state": BreakerState.OPEN,
        "owner": f"token-{next(_numbers)}",
        "until": opened_at + OPEN_FOR,
        "open_for": OPEN_FOR,
        "error_class": "http_500",
    }
    return Breaker(opened_at=opened_at, **{**fields, **overrides})


def a_filter(**overrides: Any) -> JobFilter:
    """What is due since an hour before noon, of tenant acme."""
    return JobFilter(**{"tenant": "acme", "due_from": NOON - USUAL_REACH, **overrides})


def an_operation(action: OperationKind = OperationKind.CANCEL, **overrides: Any) -> Operation:
    """An operation of Ann's on the jobs of tenant acme, asked for at noon; a reschedule is by an hour."""
    fields: dict[str, Any] = {
        "operation_id": f"{MARK}{next(_numbers):025d}",
        "wanted": a_filter(),
        "caller": "ann",
        "created_at": NOON,
        "shift": Shift(by=timedelta(hours=1)) if action is OperationKind.RESCHEDULE else None,
    }
    return Operation(action=action, **{**fields, **overrides})


def worst_cursors(own: int) -> Cursors:
    """So many tenants with a cursor of their own in each class, with the longest names, keys and numbers there are."""
    now = to_seconds(NOON)

    def key(priority: Priority, tenant: str) -> str:
        return key_of(priority, tenant, NOON, f"{tenant}{'j' * 136}")

    def of_class(priority: Priority) -> ClassCursor:
        names = [f"{priority.value}{number:063d}" for number in range(own)]
        behind = {
            name: OwnCursor(Position(now - 1_209_600, key(priority, name)), deficit=50_000, is_held_back=True)
            for name in names
        }
        at = Position(now, key(priority, names[0]))
        return ClassCursor(at, behind, turn=names[0], unhandled=at)

    return {priority: of_class(priority) for priority in Priority}
