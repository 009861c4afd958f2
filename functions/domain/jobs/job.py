"""A job: what was asked to run, for whom, when and how. Frozen, and valid from birth."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from functions.domain import key_lengths
from functions.domain.errors import InvalidJob
from functions.domain.instants import require_aware, to_ms
from functions.domain.jobs.callbacks import NO_CALLBACKS, Callbacks
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.occurrence import Occurrence
from functions.domain.jobs.retry import RetryPolicy, asked_for, spread
from functions.domain.targets.flows import NamedFlow, check_flows
from functions.domain.targets.options import USUAL, TargetOptions
from functions.domain.trace import Trace

TENANT = re.compile(rf"[A-Za-z0-9._-]{{1,{key_lengths.TENANT}}}", re.ASCII)
DOT_SEGMENTS = (".", "..")
IDENTITY = re.compile(rf"[A-Za-z0-9._:+-]{{1,{key_lengths.IDENTITY}}}", re.ASCII)
TAG = re.compile(r"[A-Za-z0-9._:/=+-]{1,64}", re.ASCII)
MAX_TAGS = 10

MAX_PARKED = timedelta(days=14)
"""How long a job whose policy has no max_age waits for a destination that is down."""


class Priority(IntEnum):
    """The class of a job; a smaller number goes first. Each has a ready queue of its own."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3


class Delivery(StrEnum):
    """The delivery guarantee of a job."""

    EXACTLY_ONCE = "exactly_once"
    AT_LEAST_ONCE = "at_least_once"
    AT_MOST_ONCE = "at_most_once"


class Precision(StrEnum):
    """`default`: up to about a second late. `exact`: sent early, and kept by the worker until its instant."""

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
    expires_at: from then on it settles as expired instead of running. run_deadline: how long its run may take, from its due time
    on, all attempts and waits included. occurrence: which fire of a schedule it is.
    options: how the target is called. tags: what its tenant finds it by, in order. flows: what bounds its calls together with
    those of other jobs. trace: that its submission brought.
    submitted_at: when the API took it in, where that is known: of no fire, and of no job of an older release.
    callbacks: what is called when it has ended. collect: with which others it is given to its target, and when.
    reads_cancel: although it keeps no row, a cancel of it may be in the ledger, where each attempt looks for it first.
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
    run_deadline: timedelta | None = None
    occurrence: Occurrence | None = None
    options: TargetOptions = USUAL
    tags: tuple[str, ...] = ()
    trace: Trace | None = None
    flows: tuple[NamedFlow, ...] = ()
    submitted_at: datetime | None = None
    callbacks: Callbacks = NO_CALLBACKS
    collect: Collect | None = None
    reads_cancel: bool | None = None

    def __post_init__(self) -> None:
        check_tenant(self.tenant)
        check_tags(self.tags)
        check_flows(self.flows)
        if not IDENTITY.fullmatch(self.identity):
            raise InvalidJob(f"identity must match {IDENTITY.pattern}", field="identity", value=self.identity)
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

    due_at: when this attempt is due. attempt: from 1. backoff: the gap before this attempt, without its jitter, which
    decorrelated jitter grows from. spent: attempts that the policy no longer counts, and counted_from: since when it counts age,
    after a replay. is_granted: False of a watchdog that is due when the policy grants no attempt any more. not_before:
    it waits in the wheel until then, though it may be due: for a cap of its tenant, a pause, a class that is full, or
    because nobody had asked for it before.
    counted_on: when it counts as due among those that wait, where a pause has moved counted_from since. turns: the places
    of those of its flows in whose room it has had its turn.
    """

    job: Job
    due_at: datetime
    attempt: int = 1
    backoff: timedelta = timedelta(0)
    spent: int = 0
    counted_from: datetime | None = None
    is_granted: bool = True
    not_before: datetime | None = None
    counted_on: datetime | None = None
    turns: frozenset[int] = frozenset()

    @classmethod
    def first_of(cls, job: Job, *, asked_at: datetime | None = None) -> Timer:
        """That of its first attempt. asked_at: when somebody asked for it, which may be after it was due."""
        is_overdue = asked_at is not None and to_ms(asked_at) > to_ms(job.scheduled_at)
        return cls(job=job, due_at=job.scheduled_at, not_before=asked_at if is_overdue else None)

    @property
    def asked_for(self) -> datetime | None:
        """When it counts as due among those that wait, where somebody has asked for another time than its own.

        That of its replay, or at which it was to run at once.
        """
        if self.job.occurrence is not None and not self.spent:
            return None  # no fire is run at once: only a pause has moved its age
        return self.counted_on or self.counted_from

    @property
    def wakes_at(self) -> datetime:
        """When the wheel lets go of it."""
        return self.due_at if self.not_before is None else max(self.due_at, self.not_before)

    @property
    def ends_by(self) -> datetime | None:
        """The instant of its run's deadline, which counts age as the policy does: anew after a replay, not in a pause."""
        if self.job.run_deadline is None:
            return None
        return (self.counted_from or self.job.scheduled_at) + self.job.run_deadline

    def is_over_at(self, instant: datetime) -> bool:
        """Whether its run's deadline has passed by then."""
        return self.ends_by is not None and instant >= self.ends_by

    def age_at(self, instant: datetime) -> timedelta:
        """How long the policy has counted by then."""
        return instant - (self.counted_from or self.job.scheduled_at)

    def may_wait_until(self, instant: datetime) -> bool:
        """Whether an attempt may be put off so long because its destination is down."""
        return self.age_at(instant) <= (self.job.retry.max_age or MAX_PARKED) and not self.is_over_at(instant)

    def next_attempt(self, *, failed_at: datetime, jitter: float, retry_after: timedelta | None = None) -> Timer | None:
        """The timer of the attempt after this one; None when the policy grants no other.

        jitter: a number from 0 up to 1. retry_after: what the target asked for; MAX_BACKOFF at most is granted, and spread.
        """
        retry, count = self.job.retry, self.attempt - self.spent
        if not self.is_granted or count >= retry.attempts:
            return None
        gap = retry.backoff(attempt=count, previous=self.backoff, jitter=jitter)
        wait, granted = retry.jittered(gap, jitter=jitter), asked_for(retry_after or timedelta(0))
        # Whoever saw the failure may have a clock behind that of the worker who called: no attempt is due before this one.
        earliest = max(failed_at + max(wait, granted), self.due_at)
        due_at = max(earliest, failed_at + spread(granted, jitter=jitter)) if retry_after else earliest
        if self.is_over_at(earliest):
            return None
        if self.is_over_at(due_at):
            due_at = earliest  # no job loses an attempt to being spread
        if retry.max_age is not None:
            if self.age_at(earliest) > retry.max_age:
                return None
            due_at = min(due_at, (self.counted_from or self.job.scheduled_at) + retry.max_age)
        return replace(self, due_at=due_at, attempt=self.attempt + 1, backoff=gap, turns=frozenset())

    def watchdog(self, *, due_at: datetime) -> Timer:
        """The timer that ends a held attempt at the end of its lease: the next attempt, granted or not."""
        return replace(self, attempt=self.attempt + 1, turns=frozenset()).watching(due_at=due_at)

    def watching(self, *, due_at: datetime) -> Timer:
        """A watchdog that looks then. One that is not granted only ends what has fallen silent."""
        retry = self.job.retry
        is_young = (retry.max_age is None or self.age_at(due_at) <= retry.max_age) and not self.is_over_at(due_at)
        return replace(self, due_at=due_at, is_granted=is_young and self.attempt - self.spent <= retry.attempts)

    def put_off(self, *, until: datetime, is_watchdog: bool) -> Timer:
        """The same attempt, after one before it that has a live lease until then."""
        return self.watching(due_at=until) if is_watchdog else replace(self, due_at=until)

    def revived(self, *, attempt: int, due_at: datetime) -> Timer:
        """An attempt that the policy has granted already, made anew from another of the same job."""
        return replace(
            self,
            due_at=due_at,
            attempt=attempt,
            backoff=self.job.retry.base,
            is_granted=True,
            not_before=None,
            turns=frozenset(),
        )

    def replayed(self, *, due_at: datetime) -> Timer:
        """An attempt of a job that had failed for good, with a new budget; it does not expire any more.

        It skips a number: a watchdog that was placed for the attempt which failed carries the next one.
        """
        again = self.with_new_budget(spent=self.attempt + 1, counted_from=due_at)
        return replace(
            again, due_at=due_at, attempt=self.attempt + 2, backoff=timedelta(0), is_granted=True, turns=frozenset()
        )

    def with_new_budget(self, *, spent: int, counted_from: datetime) -> Timer:
        """Its policy counts no attempt up to this one and no age before then, and it does not expire any more."""
        job = replace(self.job, expires_at=None)
        return replace(self, job=job, spent=spent, counted_from=counted_from, counted_on=None)

    def with_turn(self, place: int, *, starts_at: datetime) -> Timer:
        """The same attempt, which has left the room of one of its flows, and may start then."""
        return replace(self, due_at=max(self.due_at, starts_at), not_before=None, turns=self.turns | {place})

    def without_turns(self) -> Timer:
        """The same attempt, which waits for something else: by then its turns are over."""
        return replace(self, turns=frozenset()) if self.turns else self

    def hastened(self, *, to: datetime) -> Timer:
        """The same attempt, due then. The age of a first one counts from there: it was to run in a month, say."""
        if self.attempt > 1:
            return replace(self, due_at=to)
        return replace(self, due_at=to, counted_from=to, counted_on=None)

    def excused(self, *, since: datetime, until: datetime) -> Timer:
        """The same attempt, whose policy counts no age from then until then."""
        counted_from = self.counted_from or self.job.scheduled_at
        return replace(
            self,
            counted_from=counted_from + (until - since),
            counted_on=self.asked_for or self.job.scheduled_at,
        )


def check_tenant(tenant: str) -> str:
    """The tenant id itself; InvalidJob when it could be taken apart wrongly in a key."""
    if not TENANT.fullmatch(tenant):
        raise InvalidJob(f"must match {TENANT.pattern}", field="tenant", value=tenant)
    return tenant


def check_new_tenant(tenant: str) -> str:
    """As `check_tenant`, for one that may be new: `.` and `..` are taken out of a path by whoever reads a URL (RFC 3986, 5.2.4).

    One that is stored under such a name is still read.
    """
    if tenant in DOT_SEGMENTS:
        raise InvalidJob("must not be . or .., which no URL can hold", field="tenant", value=tenant)
    return check_tenant(tenant)


def check_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """The tags themselves; InvalidJob when one is not a tag, or there are too many."""
    if len(tags) > MAX_TAGS:
        raise InvalidJob(f"must be at most {MAX_TAGS}", field="tags", value=len(tags))
    for tag in tags:
        if not TAG.fullmatch(tag):
            raise InvalidJob("must match [A-Za-z0-9._:/=+-]{1,64}", field="tags", value=tag[:80])
    if len(set(tags)) < len(tags):
        raise InvalidJob("must differ from each other", field="tags", value=", ".join(tags))
    return tags
