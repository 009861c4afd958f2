"""Where the scheduler is: the address, the region it is signed for, and how the local cloud's name is reached."""

import os
import re
import ssl
from dataclasses import dataclass

import httpx

from tickwheel.errors import NoEndpoint
from tickwheel.local.settings import LOCAL_ACCESS_KEY
from tickwheel.local.state import read_running

ENVIRONMENT_VARIABLE = "TICKWHEEL_ENDPOINT"

_OF_AN_ACCOUNT = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Variables, any of which says that somebody means an account of AWS."""

_NAME_ONE = f"pass one, set {ENVIRONMENT_VARIABLE} to the ApiEndpoint that the deployment printed, or use a context"
_AWS_HOST = re.compile(r"[a-z0-9-]+\.execute-api\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


@dataclass(frozen=True)
class Endpoint:
    """The base address of a deployed scheduler, without a trailing slash."""

    url: str

    def __post_init__(self) -> None:
        try:
            parsed = httpx.URL(self.url)
        except httpx.InvalidURL as error:
            raise NoEndpoint(f"{self.url!r} is not an address: {error}") from None
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise NoEndpoint(f"{self.url!r} is not an address: write https://API.execute-api.REGION.amazonaws.com")
        object.__setattr__(self, "url", self.url.rstrip("/"))

    @property
    def host(self) -> str:
        """The name in the address, without its port."""
        return httpx.URL(self.url).host

    @property
    def region(self) -> str | None:
        """The region that an address of API Gateway names, or None behind a name of one's own."""
        named = _AWS_HOST.fullmatch(self.host)
        return named["region"] if named else None

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the name can only mean this machine."""
        return self.host in ("127.0.0.1", "::1", "localhost") or self.host.endswith(".localhost")

    @property
    def verify(self) -> ssl.SSLContext | bool:
        """What httpx verifies certificates with. Reading those of all authorities takes longer than a request to this machine."""
        return True if httpx.URL(self.url).scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    @property
    def is_local_cloud(self) -> bool:
        """Whether this is the local cloud, which knows only its own test credentials."""
        return self.host.endswith(".execute-api.localhost")


def find_endpoint(endpoint: str | None) -> Endpoint:
    """The argument, else the environment, else the local cloud that runs here. Raises NoEndpoint.

    Where the environment names an account of AWS, the local cloud is not taken: nobody who means a deployed scheduler
    should submit to another one without a word.
    """
    named = endpoint or os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        return Endpoint(named)
    for variable in _OF_AN_ACCOUNT:
        if os.environ.get(variable) not in (None, "", LOCAL_ACCESS_KEY):
            raise NoEndpoint(
                f"no endpoint, and {variable} is set, so it may not be the local cloud that is meant: {_NAME_ONE}, or "
                "name the local cloud with `--context local`"
            )
    return local_endpoint()


def local_endpoint() -> Endpoint:
    """The local cloud of this checkout or, where Tickwheel is an installed package, of this user. Raises NoEndpoint."""
    running = read_running()
    if running is not None and running.api_endpoint:
        return Endpoint(running.api_endpoint)
    raise NoEndpoint(f"no endpoint: {_NAME_ONE}, or start the local cloud with `tickwheel local up`")


class LoopbackTransport(httpx.BaseTransport):
    """Connects names below `localhost` to 127.0.0.1 and leaves their Host header alone.

    RFC 6761 reserves those names for the loopback, and many resolvers still do not know them.
    """

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends the request; the address changes after the signature covered the name."""
        return self._transport.handle_request(_to_loopback(request))

    def close(self) -> None:
        """Closes the connections."""
        self._transport.close()


class AsyncLoopbackTransport(httpx.AsyncBaseTransport):
    """As `LoopbackTransport`, of an AsyncClient."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends the request; the address changes after the signature covered the name."""
        return await self._transport.handle_async_request(_to_loopback(request))

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._transport.aclose()


def _to_loopback(request: httpx.Request) -> httpx.Request:
    if request.url.host.endswith(".localhost"):
        request.url = request.url.copy_with(host="127.0.0.1")
    return request
