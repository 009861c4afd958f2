"""Networks that HTTP targets may be in although they are not public: what a stage may say of them."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_network

from functions.domain.errors import InvalidInput
from functions.domain.targets.addresses import parse_networks
from infra.stage_parts import InvalidStage

_LOOPBACK = {4: ip_network("127.0.0.0/8"), 6: ip_network("::1/128")}


def check_networks(stage: str, allowed: Sequence[str], *, retained: bool) -> None:
    """CIDRs; loopback only where the stage is thrown away. Raises InvalidStage."""
    try:
        networks = parse_networks(tuple(allowed))
    except InvalidInput as error:
        raise InvalidStage(f"{stage}: allowed_networks: {error}") from None
    for network in networks:
        if retained and network.overlaps(_LOOPBACK[network.version]):
            raise InvalidStage(
                f"{stage}: allowed_networks has {str(network)!r}, where the worker's own runtime listens: "
                "leave loopback to throw-away stages"
            )
