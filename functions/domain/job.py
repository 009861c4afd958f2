"""A job: what was asked to run, for whom, when and how. Frozen, and valid from birth."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from urllib.parse import urlsplit

from functions.domain.errors import InvalidJob
from functions.domain.instants import require_aware
from functions.domain.occurrence import Occurrence
from functions.domain.retry import RetryPolicy

TENANT = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
IDENTITY = re.compile(r"[A-Za-z0-9._:+-]{1,200}", re.ASCII)
HANDLER = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
MAX_TARGET_LENGTH = 2_048


class Priority(IntEnum):
    """The class of a job; a smaller number goes first. Each has a ready queue of its own."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3


class Delivery(StrEnum):
    """What is promised about the effect of a job."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


class Precision(StrEnum):
    """`default` is up to about a second late; `exact` arrives early and is held by the worker until its instant."""

    DEFAULT = "default"
    EXACT = "exact"


@dataclass(frozen=True, slots=True)
class Payload:
    """A JSON text; or the text as a record packed it, which only the worker unpacks; or a pointer to its object.

    At most one of them is set; none is no payload.
    """

    text: str | None = None
    packed: str | None = None
    pointer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What was asked to run.

    identity: stable name of the logical execution within its tenant; with it, the key of the ledger row.
    bucket, shard: where its first timer belongs; with tenant, priority and scheduled_at they make the job id.
    scheduled_at: the instant that was asked for, whatever the attempt. timeout: of one attempt.
    expires_at: from then on it settles as expired instead of running. occurrence: which fire of a schedule it is.
    """

    tenant: str
    identity: str
    bucket: int
    shard: int
    target: str
    payload: Payload
    scheduled_at: datetime
    priority: Priority
    delivery: Delivery
    precision: Precision
    retry: RetryPolicy
    timeout: timedelta
    expires_at: datetime | None = None
    occurrence: Occurrence | None = None

    def __post_init__(self) -> None:
        check_tenant(self.tenant)
        if not IDENTITY.fullmatch(self.identity):
            raise InvalidJob("identity must match [A-Za-z0-9._:+-]{1,200}", field="identity", value=self.identity)
        require_aware(self.scheduled_at)

    @property
    def key(self) -> str:
        """The key of its ledger row, and the idempotency key that its target is given: the same for every attempt."""
        return f"{self.tenant}#{self.identity}"

    @property
    def is_ledgered(self) -> bool:
        """Whether its effect is guarded by a row of the ledger."""
        return self.delivery is not Delivery.AT_LEAST_ONCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """One stored future firing of a job.

    due_at: when this attempt is due. attempt: from 1. backoff: the gap before this attempt, which decorrelated
    jitter grows from.
    """

    job: Job
    due_at: datetime
    attempt: int = 1
    backoff: timedelta = timedelta(0)

    def next_attempt(self, *, failed_at: datetime, jitter: float) -> Timer:
        """The timer of the attempt after this one; `jitter` is a number from 0 up to 1."""
        gap = self.job.retry.backoff(attempt=self.attempt, previous=self.backoff, jitter=jitter)
        return replace(self, due_at=failed_at + gap, attempt=self.attempt + 1, backoff=gap)


def check_tenant(tenant: str) -> str:
    """The tenant id itself; InvalidJob when it could be taken apart wrongly in a key."""
    if not TENANT.fullmatch(tenant):
        raise InvalidJob("must match [A-Za-z0-9._-]{1,64}", field="tenant", value=tenant)
    return tenant


def check_target(target: str, *, allow_plain_http: bool) -> str:
    """The target itself; InvalidJob when Tickwheel cannot call it.

    `https://…`, `handler:NAME`, and `http://…` only where a stage allows it.
    """
    if len(target) > MAX_TARGET_LENGTH:
        raise InvalidJob(f"is longer than {MAX_TARGET_LENGTH} characters", field="target", value=target[:80] + "…")
    scheme, _, rest = target.partition(":")
    if scheme == "handler":
        if not HANDLER.fullmatch(rest):
            raise InvalidJob(
                "handler: must be followed by a name of [A-Za-z0-9_.-]{1,64}", field="target", value=target
            )
        return target
    if scheme == "http" and not allow_plain_http:
        raise InvalidJob("http:// is not allowed in this stage: use https://", field="target", value=target)
    if scheme not in ("http", "https"):
        raise InvalidJob("has an unknown scheme: known are https:// and handler:", field="target", value=target)
    try:
        parts = urlsplit(target)
        host, _ = parts.hostname, parts.port  # `port` is checked when it is read
    except ValueError as error:
        raise InvalidJob(f"is not a URL: {error}", field="target", value=target) from None
    if not host or not rest.startswith("//") or not (target.isascii() and target.isprintable()) or " " in target:
        raise InvalidJob("is not a URL with a host", field="target", value=target)
    if parts.username is not None or parts.password is not None:
        # A password in a URL would stand in logs and dead letters.
        raise InvalidJob("must not carry a user name or password", field="target", value=f"{scheme}://…@{host}")
    return target
