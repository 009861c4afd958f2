"""What a field that is left out means: in a request, and in what is stored. The two are apart on purpose.

A default of requests may change from one release to the next; rows and messages that leave a field out keep the meaning
that they were written with. `tests/contract/test_stored_meaning.py` holds that against the release before.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from functions.domain.instants import EPOCH
from functions.domain.jobs.job import Delivery, Precision, Priority
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.schedules.rules import At
from functions.domain.schedules.schedule import Calendar, JobTemplate, Misfire, Roll, Schedule
from functions.domain.targets.options import Method


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The values of fields that a definition or a record leaves out; what is not here is none, empty, zero or false."""

    priority: Priority
    delivery: Delivery
    precision: Precision
    retry: RetryPolicy
    timeout: timedelta
    method: Method
    timezone: str
    misfire: Misfire
    overlap: Overlap
    roll: Roll
    history: int


STORED = Defaults(
    priority=Priority.NORMAL,
    delivery=Delivery.EXACTLY_ONCE,
    precision=Precision.DEFAULT,
    retry=RetryPolicy(
        strategy=Strategy.DECORRELATED_JITTER,
        attempts=5,
        base=timedelta(seconds=2),
        cap=timedelta(minutes=10),
        max_age=None,
        intervals=(),
        jitter=None,
    ),
    timeout=timedelta(seconds=30),
    method=Method.POST,
    timezone="UTC",
    misfire=Misfire.FIRE_ALL,
    overlap=Overlap.ALLOW,
    roll=Roll.SKIP,
    history=10,
)
"""What rows and messages leave out. Spelled out, and never changed."""


def _requested() -> Defaults:
    template = JobTemplate(target="")
    schedule = Schedule(tenant="any", schedule_id="any", rule=At(EPOCH), job=template)
    return Defaults(
        priority=template.priority,
        delivery=template.delivery,
        precision=template.precision,
        retry=template.retry,
        timeout=template.timeout,
        method=template.options.method,
        timezone=schedule.timezone,
        misfire=schedule.misfire,
        overlap=schedule.overlap,
        roll=Calendar().roll,
        history=schedule.history,
    )


REQUESTED = _requested()
"""What a request leaves out: the defaults of the domain's values themselves."""
