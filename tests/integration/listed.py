"""Every answer of the API is looked up among those that the route of its request lists."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from functions.api.http.openapi_parts import refusals_of
from functions.api.http.problem_table import TABLE
from functions.api.http.route import Route
from functions.api.route_table import ROUTES

_PATTERNS = [
    (route, re.compile(re.sub("<[a-z]+>", "[^/]+", route.pattern)))
    # As they are served: what is asked of a resource before the resource itself.
    for route in sorted(ROUTES, key=lambda route: not route.verb)
]

OF_ANY = {"no_such_route", "unavailable", "out_of_time", "answer_too_large", "internal"}
"""Codes that follow from no declaration: a path that is none, a fault, a limit of the function itself."""

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]


def as_listed(handler: Handler) -> Handler:
    """The handler; whatever it answers that its route does not list is an AssertionError."""

    def check(event: dict[str, Any], context: Any) -> dict[str, Any]:
        answer = handler(event, context)
        if "requestContext" not in event:
            return answer  # to a queue
        http = event["requestContext"]["http"]
        route = _route_of(http["method"], event["rawPath"])
        if route is not None:
            status, code = answer["statusCode"], json.loads(answer["body"]).get("code")
            listed = {(int(status), code) for status, code, _ in map(TABLE.__getitem__, refusals_of(route))}
            is_listed = status in route.answers if status < 400 else (status, code) in listed or code in OF_ANY
            assert is_listed, f"{route.method} {route.path} does not list {status} {code}"
        return answer

    return check


def _route_of(method: str, path: str) -> Route | None:
    return next(
        (route for route, pattern in _PATTERNS if route.method == method and pattern.fullmatch(unquote(path))), None
    )
