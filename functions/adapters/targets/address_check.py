"""Connections to addresses that a job may call, and to no other (against server-side request forgery)."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any

from functions.domain.targets.addresses import Network, why_refused

Resolver = Callable[..., Sequence[tuple[Any, ...]]]
"""What `socket.getaddrinfo` is."""


class RefusedAddressError(Exception):
    """A host is at an address that must not be called; the message names both, and the remedy."""

    def __init__(self, host: str, address: str, kind: str) -> None:
        super().__init__(
            f"{host} is at {address}, which is {kind}: call a public address, or let the stage allow its network in "
            "allowed_networks"
        )


class AddressCheck:
    """Resolves a host once, checks every address, and connects to one of just these.

    A name that is asked for again, by the library or by the system, could have another answer by then.
    """

    def __init__(self, allowed: Sequence[Network] = (), *, resolve: Resolver = socket.getaddrinfo) -> None:
        self._allowed = allowed
        self._resolve = resolve

    def connect(
        self, host: str, port: int, *, timeout: float | None, socket_options: Sequence[Any] = ()
    ) -> socket.socket:
        """A TCP connection to the first address that takes one. Raises RefusedAddressError, OSError, UnicodeError."""
        fault: OSError | None = None
        for family, kind, protocol, sockaddr in self._addresses(host, port):
            connection = socket.socket(family, kind, protocol)
            try:
                for option in socket_options:
                    connection.setsockopt(*option)
                connection.settimeout(timeout)
                connection.connect(sockaddr)
            except OSError as error:
                connection.close()
                fault = error
            else:
                return connection
        raise fault or OSError(f"{host} has no address")

    def _addresses(self, host: str, port: int) -> list[tuple[Any, ...]]:
        found = self._resolve(host.strip("[]"), port, socket.AF_UNSPEC, socket.SOCK_STREAM)
        for *_, sockaddr in found:
            # One bad address spoils the others: which of them is used must not be left to chance.
            address = str(sockaddr[0])
            if kind := why_refused(address, allowed=self._allowed):
                raise RefusedAddressError(host, address, kind)
        return [(family, kind, protocol, sockaddr) for family, kind, protocol, _, sockaddr in found]
