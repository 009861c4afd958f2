"""What a route of the API is. It is declared once, as the decorator of its function; what else has to know of it reads that.

From the declarations follow the router, the access rules, what a read costs, the routes of the gateway and the paths of the
API's description.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Required, TypedDict, TypeVar, Unpack

from aws_lambda_powertools.event_handler import Response
from pydantic import BaseModel

from functions.api.http.access import Access

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
"""RFC 7396."""

TEXT: Mapping[str, Any] = {"type": "string"}

KEY: Mapping[str, Any] = {
    "name": "Idempotency-Key",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
TRACEPARENT: Mapping[str, Any] = {
    "name": "traceparent",
    "description": "The trace that the jobs belong to, in the format of W3C Trace Context. An invalid value is ignored.",
    "schema": TEXT,
}
"""Headers, as OpenAPI describes a parameter; those of answers, too."""

_VARIABLE = re.compile(r"{(\w+)}")
_VERB = re.compile(r".+}:([\w-]+)")

COLON = "(?::|%3[Aa])"

Function = TypeVar("Function", bound=Callable[..., Response[str]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A method of a path, and the function that answers it: of the services of its resource, the request, and the path's variables.

    path: as OpenAPI writes it; a verb follows the colon: `/v1/schedules/{id}:pause`. resource: what an id of the path is of, in
    a sentence. variables: of the path, as OpenAPI describes parameters. answers: by status, the names of the schemas of its bodies,
    `One | Other`; empty for a body without a schema. answer_headers: of those. body: a model, or the name of a schema. reads: what it takes from the
    rate of its caller; None: one for a GET, else none. dry_run_reads: the same of a request with `dry_run`.
    refuses: the errors that it may be refused with beside those that follow from what it reads, and of whom.
    judges_each: each of many things in its body is answered by itself.
    """

    method: str
    path: str
    resource: str
    variables: tuple[Mapping[str, Any], ...]
    function: Callable[..., Response[str]]
    access: Access
    answers: Mapping[int, str]
    refuses: tuple[type[Exception], ...] = ()
    query: type[BaseModel] | None = None
    body: type[BaseModel] | str | None = None
    body_type: str = JSON
    is_body_required: bool = True
    headers: tuple[Mapping[str, Any], ...] = ()
    answer_headers: tuple[Mapping[str, Any], ...] = ()
    reads: int | None = None
    dry_run_reads: int = 0
    judges_each: bool = False

    @property
    def name(self) -> str:
        """The name of the operation: its function's, written as tools for OpenAPI expect it."""
        first, *others = self.function.__name__.split("_")
        return first + "".join(word.capitalize() for word in others)

    @property
    def summary(self) -> str:
        """The summary of the operation: its function's docstring."""
        return (self.function.__doc__ or "").strip()

    @property
    def whole_path(self) -> str:
        """Its path without the verb."""
        return self.path.removesuffix(f":{self.verb}") if self.verb else self.path

    @property
    def verb(self) -> str:
        """What is asked of one resource, behind a colon behind its id; empty where nothing is."""
        found = _VERB.fullmatch(self.path)
        return found[1] if found else ""

    @property
    def pattern(self) -> str:
        """Its path as Powertools takes it."""
        return pattern_of(self.path)


class Declaration(TypedDict, total=False):
    """What a route says of itself, as `Route` has it."""

    access: Required[Access]
    answers: Required[Mapping[int, str]]
    refuses: tuple[type[Exception], ...]
    query: type[BaseModel]
    body: type[BaseModel] | str
    body_type: str
    is_body_required: bool
    headers: tuple[Mapping[str, Any], ...]
    answer_headers: tuple[Mapping[str, Any], ...]
    reads: int
    dry_run_reads: int
    judges_each: bool


class Routes:
    """The routes of a resource, in the order of their declaration.

    variables: of their paths, by name, as OpenAPI describes a parameter: any text, unless it is said.
    """

    def __init__(self, resource: str, **variables: Mapping[str, Any]) -> None:
        self.declared: list[Route] = []
        self._resource = resource
        self._variables = variables

    def route(self, method_and_path: str, **declaration: Unpack[Declaration]) -> Callable[[Function], Function]:
        """Declare the route that a function answers: `GET /v1/jobs/{id}`."""
        method, path = method_and_path.split(" ")
        variables = tuple(
            {"name": name, **self._variables.get(name, {"schema": TEXT})} for name in _VARIABLE.findall(path)
        )

        def declare(function: Function) -> Function:
            self.declared.append(
                Route(
                    method=method,
                    path=path,
                    resource=self._resource,
                    variables=variables,
                    function=function,
                    **declaration,
                )
            )
            return function

        return declare


def pattern_of(path: str) -> str:
    """A path as Powertools takes it: variables in angle brackets, the rest a regular expression. A verb's colon may be escaped."""
    return re.escape(path).replace(r"\}:", f">{COLON}").replace(r"\{", "<").replace(r"\}", ">")
