"""Valid values with the overrides that matter to a test."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

from functions.api.submit import Submission
from functions.domain.job import Delivery, Job, Payload, Precision, Priority, Timer
from functions.domain.retry import RetryPolicy, Strategy
from functions.domain.wheel import Wheel

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

DEPLOYED_WHEEL = Wheel(
    bucket=timedelta(seconds=60),
    lookahead=timedelta(seconds=120),
    skew=timedelta(seconds=60),
    guard=timedelta(seconds=240),
    write_shards=4,
    scan_shards=4,
)
"""The constants of a stage on AWS."""

_numbers = itertools.count(1)


def a_wheel(**overrides: Any) -> Wheel:
    """The local stage's wheel."""
    fields = {name: getattr(LOCAL_WHEEL, name) for name in ("bucket", "lookahead", "skew", "guard")}
    return Wheel(**{**fields, "write_shards": 2, "scan_shards": 2, **overrides})


def a_job(*, due_at: datetime = NOON, wheel: Wheel = LOCAL_WHEEL, **overrides: Any) -> Job:
    """A job of tenant acme that calls an HTTP target."""
    identity = overrides.pop("identity", f"job-{next(_numbers)}")
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
    return Job(
        tenant=tenant,
        identity=identity,
        bucket=wheel.bucket_of(due_at),
        shard=wheel.shard_of(tenant, identity),
        scheduled_at=due_at,
        **{**fields, **overrides},
    )


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
