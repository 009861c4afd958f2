"""What a record of a timer says of a whole run, beside how each attempt of it is called."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from functions.domain.errors import Undecodable
from functions.domain.instants import MILLISECOND
from functions.domain.jobs.callbacks import NO_CALLBACKS, read_callbacks, write_callbacks
from functions.domain.jobs.collect import read_collect, write_collect
from functions.domain.jobs.job import Job
from functions.domain.jobs.occurrence import Keeps
from functions.domain.targets.flows import read_flow, write_flow

CALLBACKS_IN_RECORD = ',"C":'
"""Stands in every record of a job with callbacks: inside a text its quotes would be escaped."""

_MOST_MS = 11 * 366 * 86_400_000
"""A job is submitted at most ten years before its time."""

_MOST_KEPT = 1_000


def write_run_terms(job: Job) -> dict[str, Any]:
    """The part of a record, without what there is not."""
    record: dict[str, Any] = {}
    if job.submitted_at is not None:
        # How long before its first due time: of most jobs a small number.
        record["S"] = (job.scheduled_at - job.submitted_at) // MILLISECOND
    if job.run_deadline is not None:
        record["D"] = job.run_deadline // MILLISECOND
    if job.flows:
        record["F"] = [write_flow(flow) for flow in job.flows]
    if job.occurrence is not None and job.occurrence.keeps is not None:
        # Beside the occurrence, of which a release that does not know it refuses further parts.
        record["K"] = list(job.occurrence.keeps)
    if job.callbacks:
        record["C"] = write_callbacks(job.callbacks)
    if job.collect is not None:
        record["L"] = write_collect(job.collect)
    if job.reads_cancel:
        record["W"] = 1
    return record


def read_run_terms(record: dict[str, Any], *, scheduled_at: datetime) -> dict[str, Any]:
    """The fields of a job that a record says of its run, by their names. Raises Undecodable."""
    return {
        "submitted_at": scheduled_at - _span(record["S"]) if "S" in record else None,
        "run_deadline": _span(record["D"]) if "D" in record else None,
        "flows": tuple(read_flow(flow) for flow in record.get("F", ())),
        "callbacks": read_callbacks(record["C"]) if "C" in record else NO_CALLBACKS,
        "collect": read_collect(record["L"]) if "L" in record else None,
        "reads_cancel": True if record.get("W") else None,
    }


def read_keeps(record: dict[str, Any]) -> Keeps | None:
    """What the schedule of an occurrence keeps. Raises Undecodable."""
    if "K" not in record:
        return None
    successes, failures, *_ = record["K"]
    return Keeps(_few(successes), _few(failures))


def _few(number: object) -> int:
    if isinstance(number, int) and not isinstance(number, bool) and 0 <= number <= _MOST_KEPT:
        return number
    raise Undecodable("a number of runs to keep is out of its range")


def _span(milliseconds: object) -> timedelta:
    if isinstance(milliseconds, int) and not isinstance(milliseconds, bool) and abs(milliseconds) <= _MOST_MS:
        return milliseconds * MILLISECOND
    raise Undecodable("a span of time is out of its range")
