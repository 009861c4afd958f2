"""What the description of the API is put together from: its paths; models, which check what is asked; shapes, which answers have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from types import ModuleType
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import get_original_bases, is_typeddict

from functions.api.http.access import in_dead_letter_id, in_job_id
from functions.api.http.problem_table import TABLE
from functions.api.http.problems import CONTENT_TYPE, problem
from functions.api.http.route import Route
from functions.domain import errors

REFERENCE = "#/components/schemas/{model}"


def paths_of(routes: Iterable[Route], schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The operations of routes, by path and method. schemas: what their bodies are, by name."""
    paths: dict[str, Any] = {}
    for route in routes:
        item = paths.setdefault(route.path, _path_item(route))
        item[route.method.lower()] = _operation_of(route, schemas)
    return paths


def _path_item(route: Route) -> dict[str, Any]:
    variables = [{**variable, "in": "path", "required": True} for variable in route.variables]
    return {"parameters": variables} if variables else {}


def _operation_of(route: Route, schemas: Mapping[str, Any]) -> dict[str, Any]:
    described_headers = {
        header["name"]: {name: value for name, value in header.items() if name != "name"}
        for header in route.answer_headers
    }
    headers = {"headers": described_headers} if described_headers else {}
    answers = {
        str(status): {"description": model, **headers, "content": content_of("application/json", model, schemas)}
        if model
        else {"description": "A JSON object."}
        for status, model in route.answers.items()
    }
    default = {"description": "A problem.", "content": content_of(CONTENT_TYPE, "Problem", schemas)}
    described: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "responses": answers | {"default": default} | _refusals(route, default["content"][CONTENT_TYPE]["schema"]),
    }
    queries = query_of(route.query) if route.query is not None else []
    if parameters := [*queries, *({**header, "in": "header", "required": False} for header in route.headers)]:
        described["parameters"] = parameters
    if route.body is not None:
        body = route.body if isinstance(route.body, str) else route.body.__name__
        content = content_of(route.body_type, body, schemas)
        described["requestBody"] = {"required": route.is_body_required, "content": content}
    return described


def refusals_of(route: Route) -> list[type[Exception]]:
    """The errors that an operation may be refused with: those that it names, and what follows from what it reads, and of whom."""
    follows = {
        errors.Forbidden: not route.access.is_open,
        errors.InvalidJobId: in_job_id in route.access.sources,
        errors.JobNotFound: in_job_id in route.access.sources,
        errors.InvalidDeadLetterId: in_dead_letter_id in route.access.sources,
        errors.TenantClosed: bool(route.access.sources) and route.method != "GET" and not route.judges_each,
        errors.InvalidInput: route.query is not None or route.body is not None,
        errors.ReadRateExceeded: bool(route.method == "GET" if route.reads is None else route.reads)
        or route.dry_run_reads > 0,
    }
    return [*(error for error, is_possible in follows.items() if is_possible), *route.refuses]


def _refusals(route: Route, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The refusals of the gateway, in its own words, and those of an operation by status, with their codes."""
    gateway: Any = {
        word: {"application/json": {"schema": _OF_GATEWAY, "example": {"message": word}}}
        for word in ("Unauthorized", "Forbidden")
    }
    by_status: dict[HTTPStatus, dict[str, str]] = {HTTPStatus.FORBIDDEN: {}}
    for status, code, title in map(TABLE.__getitem__, refusals_of(route)):
        by_status.setdefault(status, {})[code] = title
    refused: dict[str, Any] = {
        "401": {"description": "The token is missing or invalid.", "content": gateway["Unauthorized"]}
    }
    for status, titles in sorted(by_status.items()):
        content = gateway["Forbidden"] if status is HTTPStatus.FORBIDDEN else {}
        words = [f"{code}: {title}" for code, title in titles.items()] or ["The signature is missing or invalid"]
        for code, title in list(titles.items())[:1]:
            content = content | {CONTENT_TYPE: {"schema": schema, "example": problem(status, code, title)}}
        refused[str(int(status))] = {"description": "; ".join(words) + ".", "content": content}
    return refused


_OF_GATEWAY = {"type": "object", "required": ["message"], "properties": {"message": {"type": "string"}}}


def content_of(media_type: str, models: str, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """A body of one of the models, `Model | Model`, and an example of the first."""
    references = [{"$ref": REFERENCE.format(model=model)} for model in models.split(" | ")]
    schema = references[0] if len(references) == 1 else {"oneOf": references}
    return {media_type: {"schema": schema, "example": example_of(references[0], schemas)}}


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """An example of a schema: its own, or one that is made of those of its parts. What may be null or left out is."""
    if "examples" in schema:
        return schema["examples"][0]
    if "$ref" in schema:
        return example_of(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "anyOf" in schema:
        return None if {"type": "null"} in schema["anyOf"] else example_of(schema["anyOf"][0], schemas)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            return {name: example_of(fields[name], schemas) for name in schema.get("required", ())}
        case "array":
            return [example_of(schema["items"], schemas)] * max(1, schema.get("minItems", 0))
        case "string":
            return _TEXTS[schema.get("format")]
        case kind:
            return False if kind == "boolean" else schema.get("minimum", 0)


_TEXTS = {"date-time": "2027-01-31T08:00:00.000Z", "date": "2027-01-31", "duration": "PT30S", None: ""}


def query_of(model: type[BaseModel]) -> list[dict[str, Any]]:
    """The parameters that a query model reads."""
    schema = model.model_json_schema()
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": described}
        for name, described in schema["properties"].items()
    ]


_DOCUMENTED = ConfigDict(use_attribute_docstrings=True)


class _Untitled(GenerateJsonSchema):
    """Without titles: each would be its name again."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def _update_class_schema(self, json_schema: Any, cls: type[Any], config: Any) -> None:
        super()._update_class_schema(json_schema, cls, config)
        json_schema.pop("title", None)


def shapes_of(modules: Iterable[ModuleType]) -> dict[str, Any]:
    """Every shape of these modules by its name."""
    return {
        name: shape
        for module in modules
        for name, shape in vars(module).items()
        if is_typeddict(shape) and shape.__module__ == module.__name__
    }


def schemas_of(models: Iterable[type[BaseModel]], shapes: Mapping[str, Any]) -> dict[str, Any]:
    """A schema by each name."""
    for shape in shapes.values():
        shape.__pydantic_config__ = _DOCUMENTED
    described = [*models, *shapes.values()]
    _, found = TypeAdapter.json_schemas(
        [(each.__name__, "validation", TypeAdapter(each)) for each in described],
        ref_template=REFERENCE,
        schema_generator=_Untitled,
    )
    schemas: dict[str, Any] = found["$defs"]
    for name, shape in shapes.items():
        # Docstrings are those of a class alone.
        for base in get_original_bases(shape):
            if base.__name__ in shapes:
                schemas[name]["properties"] |= schemas[base.__name__]["properties"]
    return schemas


def describe_defaults(schemas: Mapping[str, Any]) -> None:
    """State defaults in the descriptions: code generators take a field with a `default` for one that is always present."""
    for schema in schemas.values():
        for field in schema.get("properties", {}).values():
            if "default" not in field:
                continue
            default = field.pop("default")
            if default is not None:
                words = f"Default: `{json.dumps(default)}`."
                field["description"] = f"{field['description']} {words}" if "description" in field else words
