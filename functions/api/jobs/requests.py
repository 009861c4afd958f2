"""What is asked of a job that was submitted: the words of its target, and changes by its owner."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field

from functions.api.http.call_body import CallBody
from functions.api.http.merge_patch import merged
from functions.api.http.requests import Duration, Rules, StrictModel, between, compact_json, obeying
from functions.api.jobs.bodies import JobBody
from functions.domain.errors import InvalidInput, InvalidJob
from functions.domain.instants import format_instant
from functions.domain.jobs.job import Job
from functions.domain.jobs.results import WHOLE_LIMIT
from functions.domain.jobs.retry import MAX_BACKOFF
from functions.domain.jobs.submission import Submission
from functions.domain.schedules.defaults import REQUESTED
from functions.domain.schedules.record import encode_template
from functions.domain.schedules.schedule import JobTemplate

MAX_ERROR = 2_000
MIN_LEASE = timedelta(seconds=1)
MAX_LEASE = timedelta(hours=12)
MAX_FENCE = 2**53 - 1
"""Fences grow by one from 1 on; up to here every program reads a number of JSON as it was written (RFC 8259, 6)."""

FIXED = ("tenant", "delivery", "idempotency_key")
"""What a job keeps as long as it lives."""

CHANGEABLE = (*(name for name in CallBody.model_fields if name not in FIXED), "run_at", "delay")
"""What a merge patch of a job may name."""


_Lease = Annotated[Duration, between(MIN_LEASE, MAX_LEASE, "must be from 1 second to 12 hours")]


class _FencedBody(StrictModel):
    fence: Annotated[int, Field(ge=1, le=MAX_FENCE, strict=True, description="The fence of the attempt.")]


class HeartbeatBody(_FencedBody, json_schema_extra={"examples": [{"fence": 1, "lease": "PT5M"}]}):
    """A report that the target of an attempt is still working."""

    lease: Annotated[
        _Lease | None,
        Field(
            description="The length of the new lease, from now: 1 second to 12 hours. Default: the timeout of the job plus 5 seconds."
        ),
    ] = None


class CompleteBody(_FencedBody, json_schema_extra={"examples": [{"fence": 1, "result": {"sent": 12}}]}):
    """A report that the target of an attempt has succeeded."""

    result: Annotated[
        Any,
        Field(description=f"Any JSON value. Of one with more than {WHOLE_LIMIT:,} bytes, the beginning is kept."),
        obeying(compact_json),
    ] = None

    @property
    def text(self) -> str:
        """The result as JSON, empty for none."""
        return "" if self.result is None else compact_json(self.result)


class FailBody(
    _FencedBody,
    json_schema_extra={"examples": [{"fence": 1, "error": "the printer is out of paper", "retry_after": "PT10M"}]},
):
    """A report that the target of an attempt has failed."""

    error: Annotated[
        str, Field(min_length=1, max_length=MAX_ERROR, description="The error message. It is shown with the job.")
    ]
    permanent: Annotated[
        bool, Field(strict=True, description="Whether the failure is permanent, so that the job is not tried again.")
    ] = False
    retry_after: Annotated[
        Duration | None, Field(description="The shortest wait before the next attempt. At most 12 hours are granted.")
    ] = None

    @property
    def wait(self) -> timedelta | None:
        """How long the next attempt is to wait at least."""
        return None if self.retry_after is None else min(self.retry_after, MAX_BACKOFF)


def patched(job: Job, payload: str | None, patch: Any, rules: Rules) -> Submission:
    """A job after an RFC 7396 merge patch of what was submitted; without run_at and delay it keeps its time.

    payload: JSON text of the present one, which it keeps unless the patch names it. Raises ValidationError, InvalidJob,
    InvalidInput.
    """
    if not isinstance(patch, dict):
        raise InvalidInput("the body must be a JSON object: an RFC 7396 merge patch of the job")
    for name in FIXED:
        if name in patch:
            raise InvalidJob("cannot be changed: cancel the job, and submit another", field=name)
    names_payload = "payload" in patch
    written = encode_template(_template_of(job), REQUESTED)
    if names_payload and payload is not None:
        written["payload"] = json.loads(payload)
    if "delay" not in patch:
        written["run_at"] = format_instant(job.scheduled_at)
    try:
        edited = merged(written, patch)
    except RecursionError:
        raise InvalidInput("the body is nested too deeply") from None
    body = JobBody.model_validate({**edited, "tenant": job.tenant, "delivery": job.delivery.value}, context=rules)
    submission = body.submission(now=rules.now)
    return submission if names_payload else replace(submission, payload=payload)


def _template_of(job: Job) -> JobTemplate:
    """What was submitted, but for the payload, the tenant and the time."""
    same = (
        "target",
        "priority",
        "delivery",
        "precision",
        "retry",
        "timeout",
        "run_deadline",
        "options",
        "tags",
        "flows",
        "callbacks",
        "collect",
    )
    expires_after = job.expires_at - job.scheduled_at if job.expires_at else None
    return JobTemplate(**{name: getattr(job, name) for name in same}, expires_after=expires_after)
