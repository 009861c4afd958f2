"""What a ledger row keeps of what was asked for, so that a job can be shown when its timer is gone.

It is written with each claim, into a row that is written anyway, and takes no more of it than is free of a write unit.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from functions.domain.errors import Undecodable
from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.instants import to_ms
from functions.domain.jobs.job import Job, Payload, Timer
from functions.domain.jobs.job_id import JobId, job_id_of
from functions.domain.jobs.stored_codes import DELIVERIES
from functions.domain.targets.http_answers import RESULT_LIMIT

_ROW = 1_024
"""Bytes of a row of one write unit
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html)."""

_REST = 150
"""What a row has beside its key, its id and these texts, about: names, numbers, token and fingerprint."""

_FOR_ATTEMPTS = 100
"""Bytes that are left for the failed attempts of a job, which is to have one at least."""

_IN_ID = ("i", "b", "h", "d", "c", "m", "t")
"""Keys of a record that say what the id of the job does, or its trace."""

_PAYLOADS = ("p", "z", "u")
_LEFT_OUT = (_PAYLOADS, ("x",), ("n",), ("e", "o", "q", "r", "D"), ("l",), ("C",))
"""Keys of a record that go where it does not fit, one group after the other."""

_WITHOUT_PAYLOAD = "-"
"""A key of a record whose job has a payload that did not fit."""

_NO_PAYLOAD = Payload()
_HIDDEN = "-"
"""In place of the value of a header, which may be a secret."""


@dataclass(frozen=True, slots=True)
class KeptJob:
    """A job as far as its row keeps it. has_payload: whether its payload is as it was asked for, which may be none."""

    job: Job
    has_payload: bool


def room_of(job: Job) -> int:
    """Bytes of a row of this job that are free for what was asked for and for its failed attempts."""
    return max(0, _ROW - _REST - RESULT_LIMIT - len(job.key) - len(str(job_id_of(job))))


def room_for_attempts(job: Job) -> int:
    """Bytes of a row of this job that are free for its failed attempts."""
    return max(0, room_of(job) - len(encode_asked(job).encode()))


def encode_asked(job: Job) -> str:
    """As much of a job as fits, the target at least; empty where not even that does."""
    room = room_of(job) - _FOR_ATTEMPTS
    hidden = replace(job.options, headers=tuple((name, _HIDDEN) for name, _ in job.options.headers))
    shown = replace(job, payload=_short(job.payload, room), options=hidden)
    record: dict[str, Any] = json.loads(encode_timer(Timer(job=shown, due_at=job.scheduled_at)))
    for key in _IN_ID:
        record.pop(key, None)
    for group in ((), *_LEFT_OUT):
        for key in group:
            record.pop(key, None)
        if job.payload != _NO_PAYLOAD and not record.keys() & set(_PAYLOADS):
            record[_WITHOUT_PAYLOAD] = 1
        text = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
        if len(text.encode()) <= room:
            return text
    return ""


def decode_asked(text: str, job_id: JobId) -> KeptJob | None:
    """The job as far as it was kept; None for what is no such record."""
    own = {
        "i": job_id.identity,
        "b": job_id.bucket,
        "h": job_id.shard,
        "d": to_ms(job_id.due_at),
        "c": job_id.priority.value,
        "m": DELIVERIES.code_of(job_id.delivery),
    }
    try:
        record = json.loads(text)
        job = decode_timer(json.dumps({**record, **own}), tenant=job_id.tenant).job
        return KeptJob(job, has_payload=_WITHOUT_PAYLOAD not in record)
    except (ValueError, TypeError, Undecodable):
        return None


def _short(payload: Payload, room: int) -> Payload:
    """The payload where it may fit: what cannot is not packed for nothing."""
    text = payload.text or payload.packed or ""
    return _NO_PAYLOAD if len(text) > 2 * room else payload
