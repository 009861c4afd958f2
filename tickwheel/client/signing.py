"""AWS Signature Version 4 for requests that httpx sends."""

from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import contextmanager
from typing import Self

import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, ReadOnlyCredentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from tickwheel.client.blocking import async_off_loop
from tickwheel.errors import NoCredentials

SERVICE = "execute-api"

# A proxy may rewrite any other header on the way, and a rewritten signed header is a refused request.
_SIGNED_HEADERS = ("host", "content-type", "idempotency-key")


class SigV4(httpx.Auth):
    """Signs each request with credentials that are read again each time, so temporary ones may rotate."""

    requires_request_body = True

    def __init__(self, credentials: "Credentials | DefaultCredentials", *, region: str) -> None:
        self._credentials = credentials
        self._region = region

    def found_now(self) -> Self:
        """This, after the default chain was asked for credentials. Raises NoCredentials."""
        if isinstance(self._credentials, DefaultCredentials):
            self._credentials.find()
        return self

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Adds the date, the session token if there is one, and the signature."""
        self._sign(request, self._read())
        yield request

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """As `auth_flow`. Credentials that may have to be fetched are read in a thread."""
        await request.aread()
        # Those that are only their key cannot block.
        is_at_hand = type(self._credentials) is Credentials
        self._sign(request, self._read() if is_at_hand else await async_off_loop(self._read))
        yield request

    def _read(self) -> ReadOnlyCredentials:
        with naming_unusable_credentials():
            return self._credentials.get_frozen_credentials()

    def _sign(self, request: httpx.Request, credentials: ReadOnlyCredentials) -> None:
        to_sign = AWSRequest(
            method=request.method,
            url=str(request.url),
            data=request.content,
            headers={name: request.headers[name] for name in _SIGNED_HEADERS if name in request.headers},
        )
        SigV4Auth(credentials, SERVICE, self._region).add_auth(to_sign)
        for name in ("X-Amz-Date", "X-Amz-Security-Token", "Authorization"):
            if name in to_sign.headers:
                request.headers[name] = to_sign.headers[name]


class DefaultCredentials:
    """What the default credential chain finds: environment, profile, container, instance. It is asked once."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self) -> Credentials:
        """The session remembers them. Raises NoCredentials."""
        with naming_unusable_credentials():
            credentials = self._session.get_credentials()
        if credentials is None:
            raise NoCredentials(
                "no AWS credentials found to sign the request with: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or run `aws configure`"
            )
        return credentials

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """As of botocore's credentials, which fetch others when these are about to expire."""
        return self.find().get_frozen_credentials()


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
