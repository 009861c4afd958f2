"""Job ids that locate their rows: a get or a cancel is one key access, without an index.

An id reads `j1~{tenant}~{class}{delivery}~{bucket}~{shard}~{due}~{identity}`: numbers in base 36, every character
unreserved in a URL but those of an identity. It reveals nothing to a caller that the caller did not submit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from functions.domain.errors import InvalidInput, InvalidJobId
from functions.domain.instants import LATEST, from_ms, to_ms
from functions.domain.jobs.job import IDENTITY, Delivery, Job, Priority, check_tenant
from functions.domain.wheel import Wheel

VERSION = "j1"
MAX_LENGTH = 400
MOVED = "_"
"""In the identity of a job that was moved: behind that of the job that was submitted, before what makes it unique."""

_MOST_MOVERS = 2

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_DELIVERY_LETTERS = {Delivery.EXACTLY_ONCE: "e", Delivery.AT_LEAST_ONCE: "l", Delivery.AT_MOST_ONCE: "m"}
_DELIVERIES = {letter: delivery for delivery, letter in _DELIVERY_LETTERS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobId:
    """Where the rows of a job are: its timer by bucket, shard, class and due time, its ledger row by tenant and identity."""

    tenant: str
    priority: Priority
    delivery: Delivery
    bucket: int
    shard: int
    due_at: datetime
    identity: str

    @property
    def key(self) -> str:
        """The key of the job's ledger row."""
        return f"{self.tenant}#{self.identity}"

    @property
    def is_ledgered(self) -> bool:
        """Whether the job's effect is guarded by a row of the ledger."""
        return self.delivery is not Delivery.AT_LEAST_ONCE

    def __str__(self) -> str:
        return written_id(
            self.tenant,
            self.priority,
            self.delivery,
            bucket=self.bucket,
            shard=self.shard,
            due_ms=to_ms(self.due_at),
            identity=self.identity,
        )


def written_id(
    tenant: str, priority: Priority, delivery: Delivery, *, bucket: int, shard: int, due_ms: int, identity: str
) -> str:
    """A job id as text, from its parts."""
    return "~".join(
        (
            VERSION,
            tenant,
            f"{priority.value}{_DELIVERY_LETTERS[delivery]}",
            _base36_of_place(bucket),
            _base36_of_place(shard),
            base36(due_ms),
            identity,
        )
    )


def job_id_of(job: Job) -> JobId:
    """The id of a job."""
    return JobId(
        tenant=job.tenant,
        priority=job.priority,
        delivery=job.delivery,
        bucket=job.bucket,
        shard=job.shard,
        due_at=job.scheduled_at,
        identity=job.identity,
    )


def attempt_id(job_id: JobId, due_at: datetime, *, wheel: Wheel) -> JobId:
    """The id of a job as it locates the far row of an attempt that is due then: a retry has the key of its instant."""
    return replace(job_id, due_at=due_at, bucket=wheel.bucket_of(due_at))


def moved_identity(identity: str, *, unique: str) -> str:
    """The identity under which a job continues at another time, or with another content.

    unique: letters and digits, behind the id of an operation and a dot where that moves it. The last operations that have
    moved it are named on: each must know the job again, also where others have changed it since and clocks differ.
    """
    *mover, own = unique.split(".")
    movers = [*mover, *movers_of(identity)][:_MOST_MOVERS]
    return f"{first_identity(identity)}{MOVED}{'.'.join([*movers, own])}"


def movers_of(identity: str) -> list[str]:
    """The ids of the last operations that have moved a job, newest first."""
    return identity.rpartition(MOVED)[2].split(".")[:-1]


def first_identity(identity: str) -> str:
    """The identity under which a job was submitted; of one that was never moved, its own."""
    return identity.partition(MOVED)[0]


def parse_job_id(text: str) -> JobId:
    """The id that a text spells. Raises InvalidJobId for any text that `str(job_id)` does not write."""
    try:
        if len(text) > MAX_LENGTH:
            raise InvalidJobId(text)
        version, tenant, kind, bucket, shard, due, identity = text.split("~")
        job_id = JobId(
            tenant=check_tenant(tenant),
            priority=Priority(int(kind[0])),
            delivery=_DELIVERIES[kind[1:]],
            bucket=read_base36(bucket),
            shard=read_base36(shard),
            due_at=from_ms(read_base36(due)),
            identity=identity,
        )
    except (ValueError, KeyError, IndexError, OverflowError, InvalidInput):
        raise InvalidJobId(text) from None
    if job_id.due_at > LATEST:
        raise InvalidJobId(text)
    if version != VERSION or not IDENTITY.fullmatch(identity) or str(job_id) != text:
        raise InvalidJobId(text)
    return job_id


def read_base36(text: str) -> int:
    """The number that `base36` wrote, or might have written. Raises ValueError."""
    number = int(text, 36)
    if number < 0:
        raise ValueError("a number of an id has no sign")
    return number


def base36(number: int) -> str:
    """A number from 0 up in lower-case digits."""
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits


_base36_of_place = lru_cache(maxsize=256)(base36)
"""Many jobs have the same bucket and shard."""
