"""What the API says of itself and of what it does not know."""

import httpx
import pytest
from botocore.credentials import Credentials

from functions.api.openapi import document as described
from tickwheel.client.signing import SigV4

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

SIGNED = SigV4(Credentials("test", "test"), region="us-east-1")


def test_the_api_describes_itself(http: httpx.Client) -> None:
    answer = http.get("/openapi.json", auth=SIGNED)

    assert answer.status_code == 200
    document = answer.json()
    assert document["openapi"].startswith("3.1")
    assert document["paths"] == described()["paths"]


@pytest.mark.parametrize(("method", "path"), [("GET", "/v2/jobs"), ("PUT", "/v1/jobs"), ("DELETE", "/v1/jobs/x/y")])
def test_a_path_that_is_no_route_is_a_problem(http: httpx.Client, method: str, path: str) -> None:
    answer = http.request(method, path, auth=SIGNED)

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "no_such_route"


def test_an_id_that_is_none_is_a_problem(http: httpx.Client) -> None:
    answer = http.get("/v1/jobs/no-id", auth=SIGNED)

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "not_a_job_id"


def test_a_refused_job_lists_every_problem_at_once(http: httpx.Client) -> None:
    body = {"tenant": "a#b", "target": "ftp://x", "run_at": "2030-01-01T00:00:00", "colour": "red"}

    answer = http.post("/v1/jobs", json=body, auth=SIGNED)

    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert {error["field"] for error in answer.json()["errors"]} == {"tenant", "target", "run_at", "colour"}
