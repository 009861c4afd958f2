"""A job whose client received that it is accepted."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from functions.domain.jobs.job_id import JobId
from functions.domain.jobs.submission import Submission


@dataclass
class Expected:
    """It must run, and how. removed_by: cancels that removed its row, and have not refused.

    known, known_at: how much had happened when its client received that, and when.
    """

    job_id: JobId
    submission: Submission
    is_cancelled: bool = False
    last_attempt: int | None = None
    removed_by: set[str] = field(default_factory=set)
    known: int = 0
    known_at: datetime | None = None
