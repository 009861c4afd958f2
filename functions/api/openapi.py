"""The OpenAPI 3.1 description of the API, made from the models that check its requests."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic.json_schema import models_json_schema

from functions.api.answers import UNTRACKED
from functions.api.problems import CONTENT_TYPE, TABLE
from functions.api.requests import BATCH_LIMIT, BatchBody, JobBody
from functions.domain.job import Delivery, Priority
from functions.domain.lifecycle import State
from functions.domain.wheel import Ring

_REFERENCE = "#/components/schemas/{model}"
_TEXT = {"type": "string"}
_INSTANT = {"type": "string", "format": "date-time"}
_STATES = [*(state.value for state in State if state is not State.ABSENT), UNTRACKED]

_ACCEPTED = {
    "type": "object",
    "required": ["id", "tenant", "state", "due_at", "ring", "replayed"],
    "properties": {
        "id": _TEXT,
        "tenant": _TEXT,
        "state": {"enum": _STATES},
        "due_at": _INSTANT,
        "ring": {"enum": [*(ring.value for ring in Ring), None]},
        "replayed": {"type": "boolean", "description": "the idempotency key had been used, and this is its first job"},
    },
}
_JOB = {
    "type": "object",
    "required": ["id", "tenant", "state", "due_at", "priority", "delivery"],
    "properties": {
        "id": _TEXT,
        "tenant": _TEXT,
        "state": {"enum": _STATES},
        "due_at": _INSTANT,
        "priority": {"enum": [priority.name.lower() for priority in Priority]},
        "delivery": {"enum": [delivery.value for delivery in Delivery]},
        "attempt": {"type": "integer"},
        "fence": {"type": "integer"},
        "rescues": {"type": "integer"},
        "cancel_requested": {"type": "boolean"},
        "result": {},
        "error": _TEXT,
        "updated_at": _INSTANT,
    },
}
_CANCELLED = {
    "type": "object",
    "required": ["id", "state"],
    "properties": {"id": _TEXT, "state": {"enum": ["cancelled", "cancel_requested"]}},
}
_PROBLEM = {
    "type": "object",
    "description": "RFC 9457",
    "required": ["type", "title", "status", "code"],
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "code": {"enum": sorted({code for _, code, _ in TABLE.values()} | {"no_such_route", "unavailable"})},
        "detail": _TEXT,
        "id": {"type": "string", "description": "the job that the idempotency key belongs to"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {"field": _TEXT, "message": _TEXT, "value": {}},
            },
        },
    },
}
_RESULTS = {
    "type": "object",
    "required": ["results"],
    "properties": {
        "results": {
            "type": "array",
            "maxItems": BATCH_LIMIT,
            "description": "one a job, in the order of the request",
            "items": {
                "type": "object",
                "required": ["status"],
                "properties": {
                    "status": {"type": "integer"},
                    "job": {"$ref": _REFERENCE.format(model="Accepted")},
                    "problem": {"$ref": _REFERENCE.format(model="Problem")},
                },
            },
        }
    },
}


@cache
def document() -> dict[str, Any]:
    """The whole description."""
    _, definitions = models_json_schema(
        [(JobBody, "validation"), (BatchBody, "validation")], ref_template=_REFERENCE, title=None
    )
    schemas: dict[str, Any] = definitions["$defs"]
    # A batch takes any object as a job, to refuse it by itself; what it should be is a job.
    schemas["BatchBody"]["properties"]["jobs"]["items"] = {"$ref": _REFERENCE.format(model="JobBody")}
    schemas |= {"Accepted": _ACCEPTED, "Job": _JOB, "Cancelled": _CANCELLED, "Problem": _PROBLEM, "Results": _RESULTS}
    job_id = {"name": "id", "in": "path", "required": True, "schema": _TEXT}
    key = {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "minLength": 1, "maxLength": 255}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tickwheel", "version": "1", "summary": "A multi-tenant distributed job scheduler."},
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "sigv4": {
                    "type": "apiKey",
                    "name": "Authorization",
                    "in": "header",
                    "description": "AWS Signature Version 4 for the service execute-api",
                }
            },
        },
        "security": [{"sigv4": []}],
        "paths": {
            "/v1/jobs": {
                "post": _operation(
                    "submitJob", "Take one job in.", body="JobBody", answers={202: "Accepted"}, parameters=[key]
                )
            },
            "/v1/jobs:batch": {
                "post": _operation(
                    "submitJobs", f"Take up to {BATCH_LIMIT} jobs in.", body="BatchBody", answers={200: "Results"}
                )
            },
            "/v1/jobs/{id}": {
                "parameters": [job_id],
                "get": _operation("getJob", "Tell what is known of a job.", answers={200: "Job"}),
                "delete": _operation(
                    "cancelJob", "Stop a job that has not run.", answers={200: "Cancelled", 202: "Cancelled"}
                ),
            },
            "/openapi.json": {
                "get": {
                    "operationId": "describe",
                    "summary": "Describe this API.",
                    "responses": {"200": {"description": "This document."}},
                }
            },
        },
    }


def _operation(
    name: str,
    summary: str,
    *,
    answers: dict[int, str],
    body: str | None = None,
    parameters: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {
            **{
                str(status): {"description": model, "content": _content("application/json", model)}
                for status, model in answers.items()
            },
            "default": {"description": "A problem.", "content": _content(CONTENT_TYPE, "Problem")},
        },
    }
    if parameters:
        operation["parameters"] = parameters
    if body:
        operation["requestBody"] = {"required": True, "content": _content("application/json", body)}
    return operation


def _content(media_type: str, model: str) -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": _REFERENCE.format(model=model)}}}
