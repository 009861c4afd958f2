"""AWS Signature Version 4 for requests that httpx sends."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from tickwheel.errors import NoCredentials

SERVICE = "execute-api"

# A proxy may rewrite any other header on the way, and a rewritten signed header is a refused request.
_SIGNED_HEADERS = ("host", "content-type", "idempotency-key")


class SigV4(httpx.Auth):
    """Signs each request with credentials that are read again each time, so temporary ones may rotate."""

    requires_request_body = True

    def __init__(self, credentials: Credentials, *, region: str) -> None:
        self._credentials = credentials
        self._region = region

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Adds the date, the session token if there is one, and the signature."""
        to_sign = AWSRequest(
            method=request.method,
            url=str(request.url),
            data=request.content,
            headers={name: request.headers[name] for name in _SIGNED_HEADERS if name in request.headers},
        )
        with naming_unusable_credentials():
            credentials = self._credentials.get_frozen_credentials()
        SigV4Auth(credentials, SERVICE, self._region).add_auth(to_sign)
        for name in ("X-Amz-Date", "X-Amz-Security-Token", "Authorization"):
            if name in to_sign.headers:
                request.headers[name] = to_sign.headers[name]
        yield request


def default_credentials(session: Session) -> Credentials:
    """What the default credential chain finds: environment, profile, container, instance. Raises NoCredentials."""
    with naming_unusable_credentials():
        credentials = session.get_credentials()
    if credentials is None:
        raise NoCredentials(
            "no AWS credentials found to sign the request with: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or run `aws configure`"
        )
    return credentials


@contextmanager
def naming_unusable_credentials() -> Iterator[None]:
    """Turns what botocore raises of a profile, a login or a file of settings into NoCredentials."""
    try:
        yield
    except BotoCoreError as error:
        reason = str(error).rstrip(".")
        raise NoCredentials(
            f"the AWS credentials cannot be used: {reason}; check AWS_PROFILE and ~/.aws, or log in with `aws sso login`"
        ) from error
