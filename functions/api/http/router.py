"""How declared routes are answered: each request is read once, checked, and handed to the function of its route."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from functions.api.http.answers import problem_answer
from functions.api.http.problems import problem
from functions.api.http.reading import Request
from functions.api.http.route import COLON, Route, Routes, pattern_of

Check = Callable[[Route, Request], None]
"""What a request must pass before its route reads or writes anything. Raises what refuses it."""

_VERB = "verb"
_SHOWN = 100


def serve(app: APIGatewayHttpResolver, routes: Routes, services: Any, *, checks: Sequence[Check]) -> None:
    """Let a resolver answer the routes of a resource. services: what their functions work with."""
    # The first pattern that matches is taken, and a variable of a path takes colons, too.
    by_verbs = [(route, route.pattern) for route in routes.declared if route.verb]
    others = [(route, route.pattern) for route in routes.declared if not route.verb]
    for route, pattern in (*by_verbs, *_unknown_verbs(routes.declared), *others):
        _register(app, route, pattern, services, checks)


def _register(app: APIGatewayHttpResolver, route: Route, pattern: str, services: Any, checks: Sequence[Check]) -> None:
    def answer_request(**matched: str | None) -> Response[str]:
        arguments = {name: unquote(text) for name, text in matched.items() if text is not None}
        request = Request(app.current_event, arguments)
        for check in checks:
            check(route, request)
        return route.function(services, request, *arguments.values())

    app.route(pattern, route.method)(answer_request)


def _unknown_verbs(declared: Sequence[Route]) -> Iterator[tuple[Route, str]]:
    """A route for each method of a path that has verbs, which answers any other verb under the same rules, and its pattern."""
    by_path: dict[tuple[str, str], list[Route]] = {}
    for route in declared:
        if route.verb:
            by_path.setdefault((route.method, route.whole_path), []).append(route)
    for (method, path), known in by_path.items():
        refuse = _refuses_verb(known[0].resource, [route.verb for route in known])
        route = replace(known[0], path=path, function=refuse, reads=None, dry_run_reads=0)
        # Without a route of its own, a path needs a verb: it is refused without one, too.
        is_answered = any((route.method, route.path) == (method, path) for route in declared)
        yield route, _with_any_verb(pattern_of(path), is_optional=not is_answered)


def _with_any_verb(pattern: str, *, is_optional: bool) -> str:
    """is_optional: what there is may all be the verb, so that a path without a colon is matched, too."""
    before, _, last = pattern.rpartition("<")
    return f"{before}(?:<{last}{COLON})?<{_VERB}>" if is_optional else f"{pattern}{COLON}<{_VERB}>"


def _refuses_verb(resource: str, known: Sequence[str]) -> Callable[..., Response[str]]:
    instead = f":{known[0]} to its id" if len(known) == 1 else f"one of :{', :'.join(known)}"

    def refuse_verb(services: Any, request: Request, *ids: str) -> Response[str]:  # noqa: ARG001  as any route's function
        detail = f"{request.arguments[_VERB][:_SHOWN]!r} is nothing that can be asked of {resource}: append {instead}"
        refused = problem(HTTPStatus.NOT_FOUND, "no_such_route", "There is no such route", detail=detail)
        return problem_answer(refused)

    return refuse_verb
