"""A job as the API takes it, by itself or as one of a batch."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from functions.api.http import requests
from functions.api.http.call_body import CallBody
from functions.domain.instants import format_instant
from functions.domain.jobs.submission import PAST_GRACE, Submission
from functions.domain.trace import Trace

BATCH_LIMIT = 500


class JobBody(
    CallBody,
    json_schema_extra={
        "examples": [{"tenant": "acme", "target": "https://example.com/hook", "payload": {"order": 7}, "delay": "PT1H"}]
    },
):
    """A job: its target, its tenant and its time. Without `run_at` and `delay` it runs now."""

    tenant: requests.NewTenant
    idempotency_key: requests.IdempotencyKey | None = None
    run_at: requests.Instant | None = None
    delay: requests.Duration | None = None

    @field_validator("run_at")
    @classmethod
    def _is_within_reach(cls, value: datetime | None, info: ValidationInfo) -> datetime | None:
        now = requests.rules_of(info).now
        is_keyed = requests.rules_of(info).has_key or info.data.get("idempotency_key") is not None
        if value is not None and value < now - PAST_GRACE and not is_keyed:
            raise PydanticCustomError(
                "past",
                "is in the past by more than {grace} s: it is now {now}",
                {"grace": int(PAST_GRACE.total_seconds()), "now": format_instant(now)},
            )
        if value is not None and value > now + requests.HORIZON:
            raise PydanticCustomError("horizon", "is more than ten years ahead")
        return value

    @field_validator("delay")
    @classmethod
    def _is_the_one_time_asked_for(cls, value: timedelta | None, info: ValidationInfo) -> timedelta | None:
        if value is not None and info.data.get("run_at") is not None:
            raise PydanticCustomError("delay", "excludes run_at: give one of them, or neither for now")
        if value is not None and value > requests.HORIZON:
            raise PydanticCustomError("horizon", "is more than ten years")
        return value

    def submission(
        self, *, now: datetime, idempotency_key: str | None = None, trace: Trace | None = None
    ) -> Submission:
        """The job as its tenant asked for it; a key in the body goes before one in a header."""
        due_at = self.run_at if self.run_at is not None else now + (self.delay or timedelta(0))
        return Submission(
            tenant=self.tenant,
            payload=None if self.payload is None else requests.compact_json(self.payload),
            due_at=due_at,
            idempotency_key=self.idempotency_key or idempotency_key,
            trace=trace,
            at=now,
            **self.call(),
        )


class BatchBody(
    requests.StrictModel,
    json_schema_extra={
        "examples": [
            {
                "jobs": [
                    {"tenant": "acme", "target": "handler:echo"},
                    {"tenant": "acme", "target": "handler:echo", "delay": 60},
                ]
            }
        ]
    },
):
    """Up to 500 jobs. Each job is checked separately, so an invalid one does not prevent the others."""

    jobs: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=BATCH_LIMIT)]
