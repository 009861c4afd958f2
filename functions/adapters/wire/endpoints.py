"""Where a client finds its service, by botocore's own rules, resolved once: they are data of a region, and no two calls differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from botocore.configprovider import ConfiguredEndpointProvider
from botocore.endpoint_provider import EndpointProvider
from botocore.exceptions import NoRegionError, UnknownSignatureVersionError
from botocore.session import Session

from functions.adapters.wire.services import Service

_SCHEME = "sigv4"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An address, and as what its requests are signed. headers: of every request to it."""

    url: str
    signing_name: str
    signing_region: str
    headers: Mapping[str, str]


def resolve(service: Service, session: Session, *, credentials: Any) -> Endpoint:
    """The endpoint of a service in the region of the session, or the one that the environment or the configuration names.

    Raises NoRegionError, and UnknownSignatureVersionError for one that takes no signature of version 4.
    """
    region = session.get_config_variable("region")
    if region is None:
        raise NoRegionError
    loader: Any = session.get_component("data_loader")
    rules = loader.load_service_model(service.service_name, "endpoint-rule-set-1")
    configured = _configured(service, session)
    asked = {
        "Region": region,
        "Endpoint": configured,
        # Neither can be combined with an endpoint that was configured.
        "UseFIPS": configured is None and bool(session.get_config_variable("use_fips_endpoint")),
        "UseDualStack": configured is None and bool(session.get_config_variable("use_dualstack_endpoint")),
        **_account(session, credentials),
    }
    provider = EndpointProvider(rules, loader.load_data("partitions"))
    known = {name: value for name, value in asked.items() if name in rules["parameters"] and value is not None}
    found: Any = provider.resolve_endpoint(**known)
    scheme = next(iter(found.properties.get("authSchemes", [{"name": _SCHEME}])))
    if scheme["name"] != _SCHEME:
        raise UnknownSignatureVersionError(signature_version=scheme["name"])
    return Endpoint(
        url=found.url if urlsplit(found.url).path else f"{found.url}/",
        signing_name=scheme.get("signingName", service.service_name),
        signing_region=scheme.get("signingRegion", region),
        headers={name: ",".join(values) for name, values in found.headers.items()},
    )


def _configured(service: Service, session: Session) -> str | None:
    if session.get_config_variable("ignore_configured_endpoint_urls"):
        return None
    return ConfiguredEndpointProvider(
        full_config=session.full_config, scoped_config=session.get_scoped_config(), client_name=service.service_name
    ).provide()


def _account(session: Session, credentials: Any) -> Mapping[str, Any]:
    """What addresses with the number of the account are made of."""
    if credentials is None:
        return {}
    return {
        "AccountId": credentials.get_deferred_property("account_id")(),
        "AccountIdEndpointMode": session.get_config_variable("account_id_endpoint_mode"),
    }
