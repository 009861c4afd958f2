"""How the API answers, and what more than one of its resources answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar, cast

from aws_lambda_powertools.event_handler import Response

from functions.api.http.problems import CONTENT_TYPE, RETRY_AFTER

if TYPE_CHECKING:
    from functions.api.http import shapes


Body = TypeVar("Body", bound=Mapping[str, Any])


def answer(status: HTTPStatus, body: Mapping[str, Any]) -> Response[str]:
    """A JSON answer."""
    return Response(status_code=status, content_type="application/json", body=json.dumps(body))


def problem_answer(problem: shapes.Problem) -> Response[str]:
    """A problem+json answer; its status stands in it."""
    headers = {"Retry-After": str(problem[RETRY_AFTER])} if RETRY_AFTER in problem else {}
    return Response(
        status_code=problem["status"], content_type=CONTENT_TYPE, body=json.dumps(problem), headers={**headers}
    )


def without_empty(body: Body, *names: str) -> Body:
    """An answer without those of these members that are an empty text or list, 0 or false: they may be left out."""
    return cast("Body", {name: value for name, value in body.items() if value or name not in names})
