"""What a client is made of: which scheduler it speaks to, and with which region and credentials it signs."""

from dataclasses import dataclass, replace

from botocore.credentials import Credentials
from botocore.session import Session

from tickwheel.client.contexts import LOCAL, get_context
from tickwheel.client.endpoint import Endpoint, find_endpoint, local_endpoint
from tickwheel.client.signing import DefaultCredentials, SigV4, naming_unusable_credentials
from tickwheel.errors import NoEndpoint
from tickwheel.local.settings import LOCAL_ACCESS_KEY, LOCAL_REGION, LOCAL_SECRET_KEY


@dataclass(frozen=True, kw_only=True)
class Connection:
    """A scheduler, and how requests to it are signed."""

    endpoint: Endpoint
    auth: SigV4


def connection_to(
    endpoint: str | None,
    *,
    context: str | None,
    region: str | None,
    credentials: Credentials | None,
    session: Session | None,
) -> Connection:
    """What the arguments of a client mean; see there. Raises NoEndpoint or NoCredentials."""
    found = _connection_to(endpoint, context=context, region=region, credentials=credentials, session=session)
    return replace(found, auth=found.auth.found_now())


def async_connection_to(
    endpoint: str | None,
    *,
    context: str | None,
    region: str | None,
    credentials: Credentials | None,
    session: Session | None,
) -> Connection:
    """As `connection_to`, which looks for credentials at the first request, in a thread: a container's may be behind HTTP."""
    return _connection_to(endpoint, context=context, region=region, credentials=credentials, session=session)


def _connection_to(
    endpoint: str | None,
    *,
    context: str | None,
    region: str | None,
    credentials: Credentials | None,
    session: Session | None,
) -> Connection:
    if endpoint is not None and context is not None:
        raise NoEndpoint("an endpoint and a context were given: pass one of them")
    if context is not None and context != LOCAL:
        found = get_context(context)
        endpoint, region = found.endpoint, region or found.region
        session = session or Session(profile=found.profile)
    session = session or Session()
    address = local_endpoint() if context == LOCAL else find_endpoint(endpoint)
    if address.is_local_cloud:
        region = region or LOCAL_REGION
        credentials = credentials or Credentials(LOCAL_ACCESS_KEY, LOCAL_SECRET_KEY)
    with naming_unusable_credentials():
        region = region or address.region or session.get_config_variable("region")
    if region is None:
        raise NoEndpoint(
            f"the address {address.url} names no region: give one (`region=`, or --region of the command), or set "
            "AWS_DEFAULT_REGION"
        )
    return Connection(endpoint=address, auth=SigV4(credentials or DefaultCredentials(session), region=region))
