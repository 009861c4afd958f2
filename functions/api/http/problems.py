"""Errors as RFC 9457 problem+json, from one table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from math import ceil
from typing import Any

from pydantic import ValidationError
from typing_extensions import Unpack

from functions.api.http import shapes
from functions.api.http.problem_table import TABLE
from functions.api.http.requests import UNKNOWN_HANDLER
from functions.domain import errors
from functions.ports.recorder import Journal

CONTENT_TYPE = "application/problem+json"

REQUESTS_FAILED = "requests_failed"
"""Counted."""

RETRY_AFTER = "retry_after"
"""The member that says in how many seconds the same request may be taken; it is a header of the answer, too."""

INSTEAD = "instead"
"""The member of a field's problem that holds parts of a definition, one of which to write in its place."""

_SHOWN = 200
_MOST_FIELDS = 20
"""That a problem names: of thousands of unknown fields some are named."""

_WORDS = {
    "missing": "is required",
    "extra_forbidden": "is not a field here: leave it out, or look at its name again",
    "model_type": "must be a JSON object",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "too_long": "must have at most {max_length} entries, but has {actual_length}",
    "too_short": "must have at least {min_length} entries, but has {actual_length}",
}
"""Words for what pydantic says in words of Python, by type of error."""


class Misshapen(Exception):
    """A request whose shape pydantic refuses, answered as the problem of another error than a job's: of `refused_as`."""

    def __init__(self, refused_as: type[errors.InvalidInput], error: ValidationError) -> None:
        super().__init__(str(error))
        self.refused_as = refused_as
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """Errors as problems; those that are the fault of the stage are counted."""

    journal: Journal

    def problem(self, error: Exception) -> shapes.Problem:
        """The problem that an error is answered as. A stage that sheds does so on purpose."""
        problem = problem_of(error)
        if problem["status"] >= HTTPStatus.INTERNAL_SERVER_ERROR and not isinstance(error, errors.Shed):
            self.journal.count(REQUESTS_FAILED)
        return problem


def problem_of(error: Exception) -> shapes.Problem:
    """The problem that an error is answered as; its status stands in it."""
    refused_as, error = (error.refused_as, error.error) if isinstance(error, Misshapen) else (type(error), error)
    # Listed once: of thousands of unknown fields that takes as long as finding them.
    listed = error.errors(include_url=False) if isinstance(error, ValidationError) else []
    if listed and all(found["type"] == UNKNOWN_HANDLER for found in listed):
        refused_as = errors.UnknownHandler
    status, code, title = next(TABLE[base] for base in refused_as.__mro__ if base in TABLE)
    if isinstance(error, errors.InvalidJob | errors.InvalidSchedule):
        refused: shapes.FieldProblem = {"field": error.field, "message": str(error), "value": _shown(error.value)}
        if isinstance(error, errors.InvalidSchedule) and error.instead:
            refused[INSTEAD] = list(error.instead)
        return problem(status, code, title, detail=f"{error.field} {error}", errors=[refused])
    if not isinstance(error, ValidationError):
        members: shapes.ProblemMembers = {"detail": str(error), **_members_of(error)}
        return problem(status, code, title, **members)
    fields = [_field_problem(found) for found in listed[:_MOST_FIELDS]]
    detail = "; ".join(f"{found['field']} {found['message']}" for found in fields)
    if len(listed) > _MOST_FIELDS:
        detail += f"; and {len(listed) - _MOST_FIELDS} more"
    return problem(status, code, title, detail=detail, errors=fields)


def problem(status: HTTPStatus, code: str, title: str, **members: Unpack[shapes.ProblemMembers]) -> shapes.Problem:
    """A problem document."""
    return {"type": f"urn:tickwheel:problem:{code}", "title": title, "status": int(status), "code": code, **members}


def _members_of(error: Exception) -> shapes.ProblemMembers:
    """What a program needs to know of an error beside its code."""
    match error:
        case errors.KeyReused(first_id=known_id) | errors.Moved(moved_to=known_id):
            return {"id": known_id}
        case errors.AlreadySettled() | errors.StaleFence():
            return {"state": error.state}
        case errors.ScheduleExists() | errors.ScheduleChanged():
            return {} if error.version is None else {"version": error.version}
        case errors.FiresExceeded():
            per_minute, added = round(error.per_minute, 2), round(error.added, 2)
            return {"fires_per_minute": per_minute, "added": added, "limit": error.limit}
        case errors.FlowsExceeded() | errors.SchedulesExceeded() | errors.QuotaExceeded() | errors.BacklogExceeded():
            members: shapes.ProblemMembers = {"count": error.count, "limit": error.limit}
            if not isinstance(error, errors.FlowsExceeded | errors.SchedulesExceeded):
                members[RETRY_AFTER] = int(error.retry_after.total_seconds())
            return members
        case (
            errors.TooManyOperations()
            | errors.RateExceeded()
            | errors.ReadRateExceeded()
            | errors.Shed()
            | errors.Busy()
        ):
            return {RETRY_AFTER: max(1, ceil(error.retry_after.total_seconds()))}
        case errors.NotHeld(is_soon=True):
            return {RETRY_AFTER: 1}
        case _:
            return {}


def _field_problem(found: Any) -> shapes.FieldProblem:
    field = ".".join(str(part)[:_SHOWN] for part in found["loc"]) or "body"
    message = _WORDS[found["type"]].format(**found.get("ctx", {})) if found["type"] in _WORDS else found["msg"]
    shown: shapes.FieldProblem = {"field": field, "message": message}
    if instead := found.get("ctx", {}).get(INSTEAD):
        shown[INSTEAD] = list(instead)
    if not _may_be_secret(found):
        shown["value"] = _shown(found.get("input"))
    return shown


def _shown(value: Any) -> Any:
    """A value that was refused, or the beginning of it."""
    text = json.dumps(value, default=str)
    # Python reads numbers that JSON cannot say, such as 1e999: they are shown as text.
    return json.loads(text, parse_constant=str) if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _may_be_secret(found: Any) -> bool:
    """Whether a refused value may be, or hold, a payload, the value of a header, or the password in a URL."""
    loc, value = found["loc"], found.get("input")
    path = loc[1:] if loc[:1] == ("job",) else loc
    # A missing field has what it is missing from for its input, and what is unknown may be any of them, misspelt.
    if found["type"] in ("missing", "extra_forbidden") or isinstance(value, dict | list | tuple):
        return True
    is_whole = path in ((), ("http",))
    is_target = path[:1] in (("target",), ("destination",)) and "@" in str(value)
    return is_whole or is_target or path[:1] == ("payload",) or path[:2] == ("http", "headers")
