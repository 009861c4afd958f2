"""The OpenAPI 3.1 description of the API, made from the models that check its requests."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic.json_schema import models_json_schema

from functions.api.dead_letters.openapi import MODELS as LETTER_MODELS
from functions.api.dead_letters.openapi import SCHEMAS as LETTER_SCHEMAS
from functions.api.dead_letters.openapi import letter_paths
from functions.api.http.answers import UNTRACKED
from functions.api.http.openapi_parts import INSTANT, KEY, REFERENCE, TEXT, TRACEPARENT, operation, paths_of
from functions.api.http.problems import TABLE
from functions.api.http.requests import BATCH_LIMIT, BatchBody, JobBody
from functions.api.jobs.openapi import JOB_ID, change_operation, job_paths
from functions.api.jobs.openapi import MODELS as JOB_MODELS
from functions.api.jobs.openapi import SCHEMAS as JOB_SCHEMAS
from functions.api.operations.openapi import MODELS as OPERATION_MODELS
from functions.api.operations.openapi import SCHEMAS as OPERATION_SCHEMAS
from functions.api.operations.openapi import operation_paths
from functions.api.schedules.openapi import MODELS, SCHEMAS, schedule_paths
from functions.api.stage.openapi import SCHEMAS as HEALTH_SCHEMAS
from functions.api.stage.openapi import health_paths
from functions.api.targets.openapi import MODELS as BREAKER_MODELS
from functions.api.targets.openapi import SCHEMAS as BREAKER_SCHEMAS
from functions.api.targets.routes import routes as breaker_routes
from functions.api.tenants.openapi import MODELS as TENANT_MODELS
from functions.api.tenants.openapi import SCHEMAS as TENANT_SCHEMAS
from functions.api.tenants.openapi import tenant_paths
from functions.domain.jobs.job import Delivery, Priority
from functions.domain.lifecycle import State
from functions.domain.wheel import Ring

_STATES = [*(state.value for state in State if state is not State.ABSENT), UNTRACKED]

_ACCEPTED = {
    "type": "object",
    "required": ["id", "tenant", "state", "due_at", "ring", "replayed"],
    "properties": {
        "id": TEXT,
        "tenant": TEXT,
        "state": {"enum": _STATES},
        "due_at": INSTANT,
        "ring": {"enum": [*(ring.value for ring in Ring), None]},
        "replayed": {"type": "boolean", "description": "the idempotency key had been used, and this is its first job"},
    },
}
_JOB = {
    "type": "object",
    "required": ["id", "tenant", "state", "due_at", "priority", "delivery"],
    "properties": {
        "id": TEXT,
        "tenant": TEXT,
        "state": {"enum": _STATES},
        "due_at": INSTANT,
        "priority": {"enum": [priority.name.lower() for priority in Priority]},
        "delivery": {"enum": [delivery.value for delivery in Delivery]},
        "attempt": {"type": "integer"},
        "fence": {"type": "integer"},
        "rescues": {"type": "integer"},
        "cancel_requested": {"type": "boolean"},
        "result": {},
        "error": TEXT,
        "moved_to": {"type": "string", "description": "told of a job that was moved too often to be followed"},
        "updated_at": INSTANT,
    },
}
_CANCELLED = {
    "type": "object",
    "required": ["id", "state"],
    "properties": {"id": TEXT, "state": {"enum": ["cancelled", "cancel_requested"]}},
}
_WEBHOOK_KEYS = {
    "type": "object",
    "required": ["keys"],
    "properties": {
        "keys": {
            "type": "array",
            "description": "the current key first",
            "items": {
                "type": "object",
                "required": ["id", "secret"],
                "properties": {
                    "id": {"type": "string", "description": "as in the header Tickwheel-Key-Ids"},
                    "secret": {"type": "string", "pattern": "^whsec_", "description": "of Standard Webhooks"},
                },
            },
        }
    },
}
_OTHER_CODES = {"no_such_route", "unavailable", "out_of_time", "answer_too_large"}
"""Of problems that no error is told as."""

_PROBLEM = {
    "type": "object",
    "description": "RFC 9457",
    "required": ["type", "title", "status", "code"],
    "properties": {
        "type": TEXT,
        "title": TEXT,
        "status": {"type": "integer"},
        "code": {"enum": sorted({code for _, code, _ in TABLE.values()} | _OTHER_CODES)},
        "detail": TEXT,
        "id": {
            "type": "string",
            "description": "the first job or operation of the idempotency key, or the job that this one is now",
        },
        "state": {"enum": _STATES},
        "retry_after": {"type": "integer", "description": "seconds after which the same request may be taken"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {
                    "field": TEXT,
                    "message": TEXT,
                    "value": {},
                    "instead": {
                        "type": "array",
                        "items": {"type": "object"},
                        "description": "parts of a schedule's definition, one of which to write in its place",
                    },
                },
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
                    "job": {"$ref": REFERENCE.format(model="Accepted")},
                    "problem": {"$ref": REFERENCE.format(model="Problem")},
                },
            },
        }
    },
}


@cache
def document() -> dict[str, Any]:
    """The whole description."""
    _, definitions = models_json_schema(
        [
            (model, "validation")
            for model in (
                *(JobBody, BatchBody, *JOB_MODELS, *MODELS, *LETTER_MODELS),
                *(*BREAKER_MODELS, *OPERATION_MODELS, *TENANT_MODELS),
            )
        ],
        ref_template=REFERENCE,
        title=None,
    )
    schemas: dict[str, Any] = definitions["$defs"]
    # A batch takes any object as a job, to refuse it by itself; what it should be is a job.
    schemas["BatchBody"]["properties"]["jobs"]["items"] = {"$ref": REFERENCE.format(model="JobBody")}
    schemas |= {"Accepted": _ACCEPTED, "Job": _JOB, "Cancelled": _CANCELLED, "Problem": _PROBLEM, "Results": _RESULTS}
    schemas |= {"WebhookKeys": _WEBHOOK_KEYS} | JOB_SCHEMAS | SCHEMAS | LETTER_SCHEMAS | BREAKER_SCHEMAS
    schemas |= OPERATION_SCHEMAS | TENANT_SCHEMAS | HEALTH_SCHEMAS
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
                },
                "jwt": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "where a stage takes tokens of an issuer: at another address, for one tenant",
                },
            },
        },
        "security": [{"sigv4": []}, {"jwt": []}],
        "paths": {
            "/v1/jobs": {
                "post": operation(
                    "submitJob",
                    "Take one job in.",
                    body="JobBody",
                    answers={202: "Accepted"},
                    parameters=[KEY, TRACEPARENT],
                )
            },
            "/v1/jobs:batch": {
                "post": operation(
                    "submitJobs",
                    f"Take up to {BATCH_LIMIT} jobs in.",
                    body="BatchBody",
                    answers={200: "Results"},
                    parameters=[TRACEPARENT],
                )
            },
            "/v1/jobs/{id}": {
                "parameters": [JOB_ID],
                "get": operation("getJob", "Tell what is known of a job.", answers={200: "Job"}),
                "delete": operation(
                    "cancelJob", "Stop a job that has not run.", answers={200: "Cancelled", 202: "Cancelled"}
                ),
                "patch": change_operation(),
            },
            **job_paths(),
            **schedule_paths(),
            **letter_paths(),
            **paths_of(breaker_routes.declared),
            **operation_paths(),
            **tenant_paths(),
            **health_paths(),
            "/v1/tenants/{id}/webhook-keys": {
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": TEXT}],
                "get": operation(
                    "getWebhookKeys",
                    "Tell what the signatures of a tenant's requests are made with.",
                    answers={200: "WebhookKeys"},
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
