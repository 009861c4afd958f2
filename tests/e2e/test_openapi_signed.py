"""The deployed API does what it says of itself, for whoever signs."""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

import httpx
import pytest
from botocore.credentials import Credentials
from schemathesis import Case

from functions.api.openapi import document
from tests.described import CHECKS, for_each_case, operations_of
from tickwheel.client import Client
from tickwheel.client.signing import SigV4

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

SIGNED = SigV4(Credentials("test", "test"), region="us-east-1")
JOB = {"tenant": "described", "target": "handler:echo"}


STOPS_EVERYBODY = "POST /v1/pause"
"""Not asked for among other tests: their jobs would wait."""


@pytest.mark.parametrize("operation", [each for each in operations_of(document()) if each != STOPS_EVERYBODY])
def test_whatever_is_asked_and_signed_is_answered_as_described(
    http: httpx.Client, client: Client, operation: str
) -> None:
    job_id = client.submit(JOB["target"], tenant=JOB["tenant"]).id
    # Tenants that no other test has, and no job that calls anybody.
    known = {"tenant": [JOB["tenant"]], "target": [JOB["target"]], "JobBody": [JOB], "/v1/jobs": [job_id]}

    def ask(case: Case) -> None:
        case.call_and_validate(app=Forwarding(http), checks=CHECKS)

    for_each_case(document(), operation, known, ask, examples=4, coverage=False)


@pytest.mark.parametrize("operation", operations_of(document()))
def test_no_operation_answers_an_unsigned_request(http: httpx.Client, operation: str) -> None:
    method, path = operation.split()

    assert http.request(method, path.replace("{id}", "x")).status_code == 403


class Forwarding:
    """Signs requests and sends them on, as a WSGI application."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        headers = {"content-type": environ["CONTENT_TYPE"]} if environ.get("CONTENT_TYPE") else {}
        if "HTTP_IDEMPOTENCY_KEY" in environ:
            headers["idempotency-key"] = environ["HTTP_IDEMPOTENCY_KEY"]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        query = f"?{environ['QUERY_STRING']}" if environ.get("QUERY_STRING") else ""
        answer = self._http.request(
            environ["REQUEST_METHOD"], f"{environ['REQUEST_URI']}{query}", content=body, headers=headers, auth=SIGNED
        )
        start_response(
            f"{answer.status_code} {HTTPStatus(answer.status_code).phrase}",
            [("Content-Type", answer.headers["content-type"])],
        )
        return [answer.content]
