"""What the description of the API is put together from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from functions.api.http.problems import CONTENT_TYPE
from functions.api.http.route import Route

REFERENCE = "#/components/schemas/{model}"


def paths_of(routes: Iterable[Route]) -> dict[str, Any]:
    """The operations of routes, by path and method."""
    paths: dict[str, Any] = {}
    for route in routes:
        item = paths.setdefault(route.path, _path_item(route))
        item[route.method.lower()] = _operation_of(route)
    return paths


def _path_item(route: Route) -> dict[str, Any]:
    variables = [{**variable, "in": "path", "required": True} for variable in route.variables]
    return {"parameters": variables} if variables else {}


def _operation_of(route: Route) -> dict[str, Any]:
    queries = query_of(route.query) if route.query is not None else []
    return operation(
        route.name,
        route.summary,
        answers=dict(route.answers),
        body=route.body if route.body is None or isinstance(route.body, str) else route.body.__name__,
        body_type=route.body_type,
        is_body_required=route.is_body_required,
        parameters=[*queries, *({**header, "in": "header", "required": False} for header in route.headers)],
    )


def operation(
    name: str,
    summary: str,
    *,
    answers: dict[int, str],
    body: str | None = None,
    body_type: str = "application/json",
    is_body_required: bool = True,
    parameters: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """An operation: its answers by status, each `Model` or `Model | Model`, and a problem for any other."""
    described: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {
            **{
                str(status): {"description": model, "content": content_of("application/json", model)}
                if model
                else {"description": "A JSON object."}
                for status, model in answers.items()
            },
            "default": {"description": "A problem.", "content": content_of(CONTENT_TYPE, "Problem")},
        },
    }
    if parameters:
        described["parameters"] = parameters
    if body:
        described["requestBody"] = {"required": is_body_required, "content": content_of(body_type, body)}
    return described


def refusals_of(path: str, method: str, described: dict[str, Any]) -> dict[str, Any]:
    """The answers to an operation's callers that refuse: as many as follow from where it is and what it takes."""
    refusals = {"403": "The caller may not do this; or the gateway refuses the signature, in its own words."}
    if "{" in path:
        refusals["404"] = "There is nothing of this id."
    if method != "get":
        refusals["409"] = "It is refused as things stand: the code says why."
    if "{" in path or {"parameters", "requestBody"} & set(described):
        refusals["422"] = "The request is refused: each field with its reason."
    refusals["429"] = "Too fast, or too much at once: ask again after `retry_after` seconds."
    content = content_of(CONTENT_TYPE, "Problem")
    return {status: {"description": description, "content": content} for status, description in refusals.items()}


def content_of(media_type: str, models: str) -> dict[str, Any]:
    """A body of one of the models, `Model | Model`."""
    schemas = [{"$ref": REFERENCE.format(model=model)} for model in models.split(" | ")]
    return {media_type: {"schema": schemas[0] if len(schemas) == 1 else {"oneOf": schemas}}}


def parameter(where: str, name: str, schema: dict[str, Any], *, is_required: bool = False) -> dict[str, Any]:
    """A parameter of a path, a query or a header."""
    return {"name": name, "in": where, "required": is_required, "schema": schema}


def query_of(model: type[BaseModel]) -> list[dict[str, Any]]:
    """The parameters that a query model reads."""
    schema = model.model_json_schema()
    required = schema.get("required", [])
    return [
        parameter("query", name, described, is_required=name in required)
        for name, described in schema["properties"].items()
    ]
