"""Tell the ids that Tickwheel gave from those that somebody made up, without a read.

A job that has no row yet is known by its id alone. So what is random of an identity has a check behind it, a keyed hash
over the tenant, class, delivery, bucket, shard, due time and identity, that nobody makes without the stage's secret. The
identity is the key of all that is stored of a job: rows and messages hold the check without a field for it.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace

from functions.domain.instants import to_ms
from functions.domain.jobs.job_id import JobId

SECRET_BYTES = 32
"""Length of the stage's secret."""

CHECK_BYTES = 8
CHECK_LENGTH = 16
"""Characters: hexadecimal digits."""

_PERSON = b"tickwheel job id"


def check_of(job_id: JobId, *, secret: bytes) -> str:
    """What stands behind the identity of an id that has no check yet. Raises ValueError for what is no secret."""
    if len(secret) != SECRET_BYTES:
        raise ValueError(
            f"the secret of ids has {len(secret)} bytes, not {SECRET_BYTES}"
        )  # without it anybody makes ids
    # No part has a ~ in it, so no two ids have one text.
    where = f"{job_id.bucket}~{job_id.shard}~{to_ms(job_id.due_at)}"
    text = f"{job_id.tenant}~{job_id.priority:d}~{job_id.delivery}~{where}~{job_id.identity}"
    return hashlib.blake2b(text.encode(), digest_size=CHECK_BYTES, key=secret, person=_PERSON).hexdigest()


def has_check(job_id: JobId, *, secret: bytes) -> bool:
    """Whether the identity of an id ends with its check, and so nothing of it was changed. It takes as long whatever differs."""
    identity, check = job_id.identity[:-CHECK_LENGTH], job_id.identity[-CHECK_LENGTH:]
    return hmac.compare_digest(check.encode(), check_of(replace(job_id, identity=identity), secret=secret).encode())
