"""The signature, checked by a second implementation written from the specification of Signature Version 4."""

import hashlib
import hmac
from urllib.parse import quote, unquote, urlsplit

import pytest
from botocore.credentials import Credentials

from tests.api_server import Answer, ApiServer, Request
from tickwheel.client import Client

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def expected_signature(request: Request, *, secret: str) -> str:
    """What AWS computes from the request as it arrived."""
    fields = dict(part.strip().split("=", 1) for part in request.headers["authorization"].partition(" ")[2].split(","))
    _, date, region, service, _ = fields["Credential"].split("/")
    signed = fields["SignedHeaders"].split(";")
    # Every service but S3 encodes the path as it was sent once more.
    path = "/".join(quote(segment, safe="-_.~") for segment in urlsplit(request.path).path.split("/"))
    canonical = "\n".join(
        [
            request.method,
            path,
            "",
            *[f"{name}:{request.headers[name].strip()}" for name in signed],
            "",
            ";".join(signed),
            hashlib.sha256(request.body).hexdigest(),
        ]
    )
    scope = f"{date}/{region}/{service}/aws4_request"
    to_sign = "\n".join(
        ["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()]
    )
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


def signature_of(request: Request) -> str:
    return request.headers["authorization"].rpartition("Signature=")[2]


def a_signed_request(call, *, token: str | None = None, region: str = "eu-west-1") -> Request:
    job = {"id": "x", "tenant": "t", "state": "scheduled", "due_at": "2030-01-01T00:00:00Z", "ring": "far"}
    with ApiServer(Answer(200, job)) as server:
        host = f"abc123.execute-api.localhost:{server.port}"
        credentials = Credentials("AKIDEXAMPLE", SECRET, token)
        with Client(f"http://{host}", region=region, credentials=credentials) as client:
            call(client)
    return server.requests[0]


def test_a_submission_with_a_body_is_signed_for_execute_api() -> None:
    request = a_signed_request(lambda client: client.submit("handler:ü", tenant="t", payload={"a": "ß"}))

    assert signature_of(request) == expected_signature(request, secret=SECRET)
    assert "/eu-west-1/execute-api/aws4_request" in request.headers["authorization"]
    assert "content-type;host;x-amz-date" in request.headers["authorization"]


@pytest.mark.parametrize("job_id", ["j1~tenant~abc-_.", "needs encoding/ü?#%"])
def test_a_path_with_an_id_is_signed_as_it_travels(job_id: str) -> None:
    request = a_signed_request(lambda client: client.get(job_id))

    assert unquote(request.path.rpartition("/")[2]) == job_id
    assert signature_of(request) == expected_signature(request, secret=SECRET)


def test_temporary_credentials_send_and_sign_their_token() -> None:
    request = a_signed_request(lambda client: client.get("x"), token="the-token")

    assert request.headers["x-amz-security-token"] == "the-token"
    assert "x-amz-security-token" in request.headers["authorization"]
    assert signature_of(request) == expected_signature(request, secret=SECRET)


def test_the_signature_covers_the_host_that_was_asked_for_and_not_the_address_it_is_reached_on() -> None:
    request = a_signed_request(lambda client: client.get("x"))

    assert request.headers["host"].startswith("abc123.execute-api.localhost:")
    assert "host;" in request.headers["authorization"]
    assert signature_of(request) == expected_signature(request, secret=SECRET)


def test_another_secret_makes_another_signature() -> None:
    request = a_signed_request(lambda client: client.get("x"))

    assert signature_of(request) != expected_signature(request, secret="another")
