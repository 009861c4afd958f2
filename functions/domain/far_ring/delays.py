"""How long a message of the near ring is delayed. SQS takes whole seconds from 0 to 900."""

from __future__ import annotations

from datetime import datetime

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.jobs.job import Precision
from functions.domain.wheel import MAX_DELAY

_LONGEST = MAX_DELAY // SECOND
_EARLY_SECONDS = 1


def delay_seconds(due_at: datetime, *, now: datetime, precision: Precision) -> int:
    """DelaySeconds for a message handed over now: asked again on each retry, because it is relative.

    Rounded up by default, but for the last millisecond, which the worker holds: a job that is due now, rounded up to
    the millisecond, must not wait a second. For `exact` rounded down and a second less, so that
    the worker has it one to two seconds before its instant and holds it.
    """
    left = due_at - now
    seconds = left // SECOND - _EARLY_SECONDS if precision is Precision.EXACT else -((MILLISECOND - left) // SECOND)
    return max(0, min(seconds, _LONGEST))
