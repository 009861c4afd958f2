"""Collections: the jobs of a tenant that wait to be given to their target together, and the release that gives them.

Whose key, target, way of calling and terms of collection are the same are of one collection, so two jobs can never be of one and
disagree on where it goes. The id of a job that was submitted without an idempotency key says of which it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from functions.domain.errors import Undecodable
from functions.domain.instants import MILLISECOND, from_ms, to_ms
from functions.domain.jobs.collect import write_collect
from functions.domain.jobs.job import Delivery, Job, Payload, Precision, Timer
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.wheel import Wheel

_DIGEST = r"[0-9a-f]{16}"
_MEMBER = re.compile(rf"g({_DIGEST})-", re.ASCII)
_RELEASE = re.compile(rf"b-({_DIGEST})-([1-9][0-9]{{0,14}})", re.ASCII)
_TEXT = re.compile(rf"([^#]+)#\+({_DIGEST})", re.ASCII)

_BETWEEN = ","
"""Between the identities in the place of a row: none has one."""

ROW_MEMBERS = 14
"""Jobs that share a row: their identities are its sort key, of which DynamoDB takes 1,024 bytes."""

_PLACE_BYTES = 1_000
_SAME_MOMENT = 1_000
"""Milliseconds within which jobs are due that share a row."""


@dataclass(frozen=True, slots=True)
class CollectionId:
    """A collection of a tenant. digest: of all that its jobs have in common."""

    tenant: str
    digest: str

    def __str__(self) -> str:
        return f"{self.tenant}#+{self.digest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionState:
    """Of a collection in use. number: of its next release. opens_at: when that is due, None while nobody waits, as far as is known.

    full: the last release that was sent ahead of its time, because as many waited as it takes.
    """

    number: int = 1
    opens_at: datetime | None = None
    full: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRelease:
    """Which rows a release gives. They are chosen once: who comes to it again finds the same."""

    number: int
    places: tuple[str, ...]

    def has(self, identity: str) -> bool:
        """Whether a job is in it."""
        return any(identity in members_of(place) for place in self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedRow:
    """Jobs that wait in one row. timers: None where a newer Tickwheel has written it."""

    place: str
    timers: tuple[Timer, ...] | None


def collection_of(job: Job) -> CollectionId:
    """That of a job which is collected."""
    assert job.collect is not None
    return CollectionId(job.tenant, digest_of(job))


def digest_of(job: Job) -> str:
    """What stands for all that jobs of a collection have in common."""
    assert job.collect is not None
    options = job.options
    common = [
        write_collect(job.collect),
        job.target,
        [options.method, options.headers, options.success_codes, options.retry_codes, options.is_async],
        job.timeout // MILLISECOND,
        job.priority,
    ]
    return hashlib.blake2b(json.dumps(common).encode(), digest_size=8).hexdigest()


def member_identity(job: Job, *, unique: str) -> str:
    """The identity of a job that is collected. unique: a fresh random identity."""
    return f"g{digest_of(job)}-{unique}"


def collection_in(tenant: str, identity: str) -> CollectionId | None:
    """Of which collection a job was submitted, if its identity says so."""
    found = _MEMBER.match(identity)
    return CollectionId(tenant, found[1]) if found else None


def parse_collection(text: str) -> CollectionId | None:
    """The collection that a row of the ledger says its job waits in; None for what is none, such as a flow."""
    found = _TEXT.fullmatch(text)
    return CollectionId(found[1], found[2]) if found else None


def is_collected(timer: Timer) -> bool:
    """Whether an attempt is made together with others."""
    return timer.job.collect is not None


def release_of(job: Job, number: int, *, due_at: datetime, wheel: Wheel) -> Timer:
    """The job that gives the collection of a job to its target. It fails never and is not retried: its members are."""
    due_at = from_ms(to_ms(due_at))
    release = Job(
        tenant=job.tenant,
        identity=f"b-{digest_of(job)}-{number}",
        bucket=wheel.bucket_of(due_at),
        shard=job.shard,
        target=job.target,
        payload=Payload(),
        scheduled_at=due_at,
        priority=job.priority,
        delivery=Delivery.EXACTLY_ONCE,
        precision=Precision.DEFAULT,
        retry=RetryPolicy(attempts=1),
        timeout=job.timeout,
        options=job.options,
    )
    return Timer(job=release, due_at=due_at)


def release_in(job: Job) -> tuple[CollectionId, int] | None:
    """Of which collection a job is a release, and its number; None for any other job."""
    return release_named(job.tenant, job.identity)


def release_named(tenant: str, identity: str) -> tuple[CollectionId, int] | None:
    """Of which collection the job of this identity is a release, and its number; None for any other job."""
    found = _RELEASE.fullmatch(identity)
    return (CollectionId(tenant, found[1]), int(found[2])) if found else None


def place_of(timers: Sequence[Timer]) -> str:
    """The place of a row: by when the last of its jobs is due, so that none comes too early."""
    due_ms = max(to_ms(timer.wakes_at) for timer in timers)
    return f"{due_ms:013d}#{_BETWEEN.join(timer.job.identity for timer in timers)}"


def members_of(place: str) -> list[str]:
    """The identities of the jobs of a row."""
    return place.partition("#")[2].split(_BETWEEN)


def due_at_of(place: str) -> datetime:
    """When the jobs of a row are due. Raises Undecodable."""
    try:
        return from_ms(int(place.partition("#")[0]))
    except (ValueError, OverflowError) as error:
        raise Undecodable("not the place of a row") from error


def upto(instant: datetime) -> str:
    """The last place of what is due by then."""
    return f"{to_ms(instant):013d}#~"


def count_of(places: Iterable[str]) -> int:
    """How many jobs stand at these places."""
    return sum(len(members_of(place)) for place in places)


def in_rows(timers: Sequence[Timer], *, sizes: Sequence[int], most_bytes: int) -> Iterator[list[Timer]]:
    """Jobs of one collection in rows. sizes: bytes of their records.

    Those that are due in the same moment share one: a row costs a write unit for each KB, however many it holds.
    """
    row: list[Timer] = []
    size = place_bytes = 0
    for timer, record_bytes in sorted(zip(timers, sizes, strict=True), key=lambda each: each[0].wakes_at):
        assert timer.job.collect is not None
        most = min(ROW_MEMBERS, timer.job.collect.most)
        identity_bytes = len(timer.job.identity) + 1
        is_full = len(row) >= most or size + record_bytes > most_bytes or place_bytes + identity_bytes > _PLACE_BYTES
        if row and (is_full or to_ms(timer.wakes_at) - to_ms(row[0].wakes_at) > _SAME_MOMENT):
            yield row
            row, size, place_bytes = [], 0, 0
        row.append(timer)
        size, place_bytes = size + record_bytes, place_bytes + identity_bytes
    if row:
        yield row


def waiting(timer: Timer) -> Timer:
    """An attempt as it stands in its collection."""
    return replace(timer, not_before=None, turns=frozenset())
