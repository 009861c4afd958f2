"""Errors as RFC 9457 problem+json, from one table."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError

from functions.domain.errors import (
    AlreadySettled,
    InvalidInput,
    InvalidJob,
    InvalidJobId,
    JobNotFound,
    KeyReused,
    NotPlaced,
    TickwheelError,
    TooLate,
)

CONTENT_TYPE = "application/problem+json"

TABLE: dict[type[Exception], tuple[HTTPStatus, str, str]] = {
    ValidationError: (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_job", "The job is refused"),
    InvalidJobId: (HTTPStatus.NOT_FOUND, "not_a_job_id", "This is not a job id"),
    InvalidJob: (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_job", "The job is refused"),
    InvalidInput: (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_input", "The request is refused"),
    KeyReused: (HTTPStatus.CONFLICT, "key_reused", "The idempotency key belongs to another job"),
    JobNotFound: (HTTPStatus.NOT_FOUND, "job_not_found", "There is no such job"),
    AlreadySettled: (HTTPStatus.CONFLICT, "already_settled", "The job has come to its end"),
    TooLate: (HTTPStatus.CONFLICT, "too_late", "The job may be on its way"),
    NotPlaced: (HTTPStatus.SERVICE_UNAVAILABLE, "not_placed", "The job could not be stored; submit it again"),
    TickwheelError: (HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "Something is wrong with this stage"),
}
"""Each type of error: its status, its code for programs, its title for people. The nearest base of an error counts."""

_SHOWN = 200


def problem_of(error: Exception) -> dict[str, Any]:
    """The problem that an error is told as; its status stands in it."""
    status, code, title = next(TABLE[base] for base in type(error).__mro__ if base in TABLE)
    if isinstance(error, KeyReused):
        return problem(status, code, title, detail=str(error), id=error.job_id)
    if isinstance(error, InvalidJob):
        errors = [{"field": error.field, "message": str(error), "value": error.value}]
        return problem(status, code, title, detail=f"{error.field} {error}", errors=errors)
    if not isinstance(error, ValidationError):
        return problem(status, code, title, detail=str(error))
    errors = [_field_problem(found) for found in error.errors(include_url=False)]
    detail = "; ".join(f"{found['field']} {found['message']}" for found in errors)
    return problem(status, code, title, detail=detail, errors=errors)


def problem(status: HTTPStatus, code: str, title: str, **members: Any) -> dict[str, Any]:
    """A problem document."""
    return {"type": f"urn:tickwheel:problem:{code}", "title": title, "status": int(status), "code": code, **members}


def _field_problem(found: Any) -> dict[str, Any]:
    field = ".".join(str(part) for part in found["loc"]) or "body"
    shown: dict[str, Any] = {"field": field, "message": found["msg"]}
    # A missing field has the whole body for its input; a payload, and the password in a URL, may be secret.
    is_secret = found["loc"][:1] == ("payload",) or (found["loc"][:1] == ("target",) and "@" in str(found.get("input")))
    if found["type"] != "missing" and not is_secret:
        text = json.dumps(found.get("input"), default=str)
        # Python reads numbers that JSON cannot say, such as 1e999: they are shown as text.
        shown["value"] = json.loads(text, parse_constant=str) if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return shown
