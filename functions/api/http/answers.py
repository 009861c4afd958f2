"""How the API answers, and what more than one of its resources answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, TypeVar, cast

from aws_lambda_powertools.event_handler import Response

from functions.api.http import shapes
from functions.api.http.problems import CONTENT_TYPE, RETRY_AFTER

Body = TypeVar("Body", bound=Mapping[str, Any])


def answer(
    status: HTTPStatus, body: Mapping[str, Any], *, headers: Mapping[str, str] = MappingProxyType({})
) -> Response[str]:
    """A JSON answer."""
    return Response(status_code=status, content_type="application/json", body=json.dumps(body), headers={**headers})


def problem_answer(problem: shapes.Problem) -> Response[str]:
    """A problem+json answer; its status stands in it."""
    headers = {"Retry-After": str(problem[RETRY_AFTER])} if RETRY_AFTER in problem else {}
    return Response(
        status_code=problem["status"], content_type=CONTENT_TYPE, body=json.dumps(problem), headers={**headers}
    )


def without_empty(shape: type[Body], body: Body) -> Body:
    """An answer without those members that may be left out and are an empty text or list, 0 or false."""
    optional = cast("Any", shape).__optional_keys__
    return cast("Body", {name: value for name, value in body.items() if value or name not in optional})
