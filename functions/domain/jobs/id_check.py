"""Tell the ids that Tickwheel gave from those that somebody made up, without a read.

A job that has no row yet is known by its id alone. So what is random of an identity has a check behind it, a keyed hash
over the tenant, class, delivery, bucket, shard, due time and identity, that nobody makes without the stage's secret. The
identity is the key of all that is stored of a job: rows and messages hold the check without a field for it.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime

from functions.domain.instants import to_ms
from functions.domain.jobs.job import Delivery, Priority
from functions.domain.jobs.job_id import JobId

SECRET_BYTES = 32
"""Of the stage's secret."""

CHECK_BYTES = 8
CHECK_LENGTH = 16
"""Characters: hexadecimal digits."""

_PERSON = b"tickwheel job id"


def check_of(
    *,
    tenant: str,
    priority: Priority,
    delivery: Delivery,
    bucket: int,
    shard: int,
    due_at: datetime,
    identity: str,
    secret: bytes,
) -> str:
    """What stands behind `identity` in the id of these parts. Raises ValueError for what is no secret."""
    if len(secret) != SECRET_BYTES:
        raise ValueError(
            f"the secret of ids has {len(secret)} bytes, not {SECRET_BYTES}"
        )  # without it anybody makes ids
    # No part has a ~ in it, so no two ids have one text.
    text = f"{tenant}~{priority:d}~{delivery}~{bucket}~{shard}~{to_ms(due_at)}~{identity}"
    return hashlib.blake2b(text.encode(), digest_size=CHECK_BYTES, key=secret, person=_PERSON).hexdigest()


def has_check(job_id: JobId, *, secret: bytes) -> bool:
    """Whether the identity of an id ends with its check, and so nothing of it was changed. It takes as long whatever differs."""
    identity, check = job_id.identity[:-CHECK_LENGTH], job_id.identity[-CHECK_LENGTH:]
    return hmac.compare_digest(check.encode(), _check(job_id, identity, secret=secret).encode())


def _check(job_id: JobId, identity: str, *, secret: bytes) -> str:
    return check_of(
        tenant=job_id.tenant,
        priority=job_id.priority,
        delivery=job_id.delivery,
        bucket=job_id.bucket,
        shard=job_id.shard,
        due_at=job_id.due_at,
        identity=identity,
        secret=secret,
    )
