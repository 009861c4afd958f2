"""The OpenAPI 3.1 description of the API, made from the models that check its requests."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from functions.api.dead_letters import answers as dead_letters
from functions.api.http import breaker_answers, shapes
from functions.api.http.openapi_parts import REFERENCE, describe_defaults, paths_of, schemas_of, shapes_of
from functions.api.jobs import answers as jobs
from functions.api.jobs.bodies import JobBody
from functions.api.jobs.requests import CHANGEABLE
from functions.api.operations import answers as operations
from functions.api.route_table import ROUTES
from functions.api.schedules import answers as schedules
from functions.api.schedules import stats_answers
from functions.api.schedules.bodies import ScheduleBody
from functions.api.stage import answers as stage
from functions.api.stage import pulse_answers as pulse
from functions.api.targets import answers as targets
from functions.api.targets import flow_answers as flows
from functions.api.tenants import answers as tenants

JOB_PATCH: dict[str, Any] = {
    "type": "object",
    "description": f"A JSON merge patch (RFC 7396) of a {JobBody.__name__}. `null` resets a field to its default.",
    "propertyNames": {"enum": list(CHANGEABLE)},
    "examples": [{"delay": "PT2H"}],
}
SCHEDULE_PATCH: dict[str, Any] = {
    "type": "object",
    "description": f"A JSON merge patch (RFC 7396) of a {ScheduleBody.__name__}. `null` removes a field. A rule replaces the current rule.",
    "examples": [{"cron": "0 4 * * *", "spread": None}],
}

MODELS = tuple(route.body for route in ROUTES if isinstance(route.body, type))
"""Bodies of requests."""

SHAPES = shapes_of(
    (
        shapes,
        jobs,
        schedules,
        stats_answers,
        dead_letters,
        breaker_answers,
        targets,
        flows,
        operations,
        tenants,
        pulse,
        stage,
    )
)
"""What answers hold."""

_BEGINNINGS = ("Position", "ProblemMembers", "Shift", "Standing", "_From")
"""Shapes that are only what others begin with."""


@cache
def document() -> dict[str, Any]:
    """The whole description."""
    schemas = schemas_of(MODELS, SHAPES)
    for name in _BEGINNINGS:
        del schemas[name]
    # A batch takes any object as a job, to refuse it by itself; what it should be is a job.
    schemas["BatchBody"]["properties"]["jobs"]["items"] = {"$ref": REFERENCE.format(model="JobBody")}
    named = schemas["NamedScheduleBody"] = _named(schemas["ScheduleBody"])
    schemas["ScheduleBatchBody"]["properties"]["schedules"]["items"] = {
        "$ref": REFERENCE.format(model="NamedScheduleBody")
    }
    named["description"] = "A schedule of a batch: its tenant, its id and its definition."
    # What stands there of a schedule holds its definition.
    schemas["Schedule"]["properties"] |= schemas["ScheduleBody"]["properties"]
    schemas |= {"JobPatch": JOB_PATCH, "SchedulePatch": SCHEDULE_PATCH}
    describe_defaults(schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tickwheel",
            "version": "1",
            "summary": "A multi-tenant distributed job scheduler.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [
            {
                "url": "https://{api}.execute-api.{region}.amazonaws.com",
                "description": "The output `ApiEndpoint` of the stage.",
                "variables": {"api": {"default": "abcdef1234"}, "region": {"default": "eu-central-1"}},
            }
        ],
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "sigv4": {
                    "type": "apiKey",
                    "name": "Authorization",
                    "in": "header",
                    "description": "AWS Signature Version 4 for the service `execute-api`.",
                },
                "jwt": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "A token of the stage's issuer, if it has one: for one tenant, at a separate endpoint.",
                },
            },
        },
        "security": [{"sigv4": []}, {"jwt": []}],
        "paths": paths_of(ROUTES, schemas),
    }


def _named(body: dict[str, Any]) -> dict[str, Any]:
    """A definition with the name that stands in the path where it is alone."""
    names = {"tenant": {"type": "string", "examples": ["acme"]}, "id": {"type": "string", "examples": ["nightly"]}}
    return {
        **body,
        "title": "NamedScheduleBody",
        "properties": {**names, **body["properties"]},
        "required": [*names, *body["required"]],
        "examples": [{"tenant": "acme", "id": "nightly", **example} for example in body.get("examples", ())],
    }


def write(folder: Path) -> None:
    """Write the description beside the handler in a folder of functions, if another one or none is there."""
    file, text = folder / "api" / "openapi.json", json.dumps(document(), separators=(",", ":"))
    if file.is_file() and file.read_text() == text:
        return
    # Others may read it at the same time.
    part = file.with_name(f"openapi.{os.getpid()}.part")
    part.write_text(text)
    part.replace(file)
