"""Who may speak to the API: whoever signs with a key whose policies allow it."""

import json
from typing import Any

import httpx
import pytest
from botocore.credentials import Credentials

from testkit.deployment import Deployment
from tickwheel.client import Client
from tickwheel.client.signing import SigV4
from tickwheel.errors import ApiProblem

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

JOB = {"tenant": "acme", "target": "handler:echo"}


def a_user(deployment: Deployment, name: str, *, allowed: str | None) -> Credentials:
    """A user of the account. The account's own key is its root's, whose signature the local cloud does not check."""
    iam = deployment.client("iam")
    iam.create_user(UserName=name)
    if allowed is not None:
        api = deployment.stack.api_endpoint.removeprefix("http://").split(".")[0]
        resource = f"arn:aws:execute-api:us-east-1:000000000000:{api}/{allowed}"
        statement = {"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": resource}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName=name, PolicyName="invoke", PolicyDocument=document)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return Credentials(key["AccessKeyId"], key["SecretAccessKey"])


def submit(http: httpx.Client, *, auth: SigV4) -> httpx.Response:
    return http.post("/v1/jobs", json=JOB, auth=auth)


def signed_by(credentials: Credentials) -> SigV4:
    return SigV4(credentials, region="us-east-1")


def test_an_unsigned_request_is_refused(http: httpx.Client) -> None:
    assert http.post("/v1/jobs", json=JOB).status_code == 403


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/openapi.json"), ("GET", "/v1/jobs/x"), ("DELETE", "/v1/jobs/x"), ("GET", "/no/route")],
)
def test_no_route_answers_an_unsigned_request(http: httpx.Client, method: str, path: str) -> None:
    assert http.request(method, path).status_code == 403


def test_a_key_with_a_policy_submits(deployment: Deployment, http: httpx.Client) -> None:
    credentials = a_user(deployment, "submitter", allowed="*")

    assert submit(http, auth=signed_by(credentials)).status_code == 202


def test_a_wrong_secret_is_refused(deployment: Deployment, http: httpx.Client) -> None:
    key = a_user(deployment, "forger", allowed="*").access_key

    answer = submit(http, auth=signed_by(Credentials(key, "not-its-secret")))

    assert answer.status_code == 403
    assert "signature" in answer.text


def test_a_body_that_was_changed_after_signing_is_refused(deployment: Deployment, http: httpx.Client) -> None:
    auth = signed_by(a_user(deployment, "tampered", allowed="*"))
    request = http.build_request("POST", "/v1/jobs", json=JOB)
    signed = next(auth.auth_flow(request))
    body = json.dumps({**JOB, "tenant": "evil"}).encode()
    headers: dict[str, Any] = {**signed.headers, "content-length": str(len(body))}

    assert http.post("/v1/jobs", content=body, headers=headers).status_code == 403


def test_a_key_without_a_policy_is_refused(deployment: Deployment, http: httpx.Client) -> None:
    credentials = a_user(deployment, "stranger", allowed=None)

    answer = submit(http, auth=signed_by(credentials))

    assert answer.status_code == 403
    assert "execute-api:Invoke" in answer.text


def test_a_policy_for_one_route_is_a_policy_for_no_other(deployment: Deployment) -> None:
    credentials = a_user(deployment, "only-submits", allowed="$default/POST/v1/jobs")

    with Client(deployment.stack.api_endpoint, credentials=credentials) as client:
        job_id = client.submit("handler:echo", tenant="acme").id
        with pytest.raises(ApiProblem) as problem:
            client.get(job_id)

    assert problem.value.status == 403
