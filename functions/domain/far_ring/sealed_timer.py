"""A timer that goes on as its record stands, of which nothing is read but what its sender asks."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

from functions.domain.errors import InvalidInput
from functions.domain.far_ring.timer_record import LAST_MS, VERSION, decode_timer, encode_envelope
from functions.domain.instants import from_ms
from functions.domain.jobs.job import IDENTITY, Precision, Priority, Timer, check_tenant
from functions.domain.jobs.job_id import job_id_of, written_id
from functions.domain.jobs.stored_codes import DELIVERIES
from functions.domain.schedules.defaults import STORED
from functions.domain.trace import Trace, parse_traceparent

_NOT_SENT = ("\ufffe", "\uffff")


class SealedJob(NamedTuple):
    """What a sender asks of a job; names as those of Job. job_id: as text."""

    tenant: str
    priority: Priority
    precision: Precision
    trace: Trace | None
    job_id: str


class SealedTimer(NamedTuple):
    """A timer by its record; names as those of Timer."""

    record: str
    job: SealedJob
    wakes_at: datetime

    def opened(self) -> Timer:
        """All of it. Raises Undecodable: whoever works with it finds that, where its sender does not ask."""
        return decode_timer(self.record, tenant=self.job.tenant)


Sendable = Timer | SealedTimer
"""What goes to a ready queue."""


def seal(record: str, *, tenant: str) -> SealedTimer | None:
    """None for a record that cannot go on as it stands, or that lacks what its sender asks: it is decoded."""
    try:
        found = json.loads(record)
        due_ms, waits_ms = _instant(found["d"]), _instant(found.get("w", 0))
        priority = Priority(found["c"]) if "c" in found else STORED.priority
        delivery = DELIVERIES.member_of(found["m"]) if "m" in found else STORED.delivery
        trace = parse_traceparent(found["t"]) if "t" in found else None
        if any(letter in record for letter in _NOT_SENT) or not IDENTITY.fullmatch(found["i"]):
            return None
        if "t" in found and trace is None:
            return None
        job_id = written_id(
            check_tenant(tenant),
            priority,
            delivery,
            bucket=_whole(found["b"]),
            shard=_whole(found["h"]),
            due_ms=_instant(found["s"]) if "s" in found else due_ms,
            identity=found["i"],
        )
        return SealedTimer(
            record,
            SealedJob(tenant, priority, Precision.EXACT if found.get("q") else STORED.precision, trace, job_id),
            from_ms(max(due_ms, waits_ms)),
        )
    except _LACKING:
        return None


def envelope_of(timer: Sendable) -> str:
    """The message body of a timer."""
    if isinstance(timer, SealedTimer):
        return f'{{"v":{VERSION},"t":"{timer.job.tenant}","j":[{timer.record}]}}'
    return encode_envelope([timer])


def opened(timer: Sendable) -> Timer:
    """All of a timer. Raises Undecodable."""
    return timer.opened() if isinstance(timer, SealedTimer) else timer


def id_of(timer: Sendable) -> str:
    """The id of its job, as text."""
    return timer.job.job_id if isinstance(timer, SealedTimer) else str(job_id_of(timer.job))


_LACKING = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError, InvalidInput)


def _instant(milliseconds: Any) -> int:
    return _whole(milliseconds, most=LAST_MS)


def _whole(number: Any, *, most: int = 2**53) -> int:
    if type(number) is int and 0 <= number <= most:
        return number
    raise ValueError
