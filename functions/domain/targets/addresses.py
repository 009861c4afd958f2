"""Which addresses a job may call: the public ones, and what a stage allows beside them.

After IANA's registries of special-purpose addresses (RFC 6890). What is not known to be public is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from functions.domain.errors import InvalidInput

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_METADATA = frozenset(
    ip_address(address)
    for address in (
        "169.254.169.254",  # EC2, and the other clouds
        "fd00:ec2::254",
        "169.254.170.2",  # ECS
        "169.254.170.23",  # EKS
        "fd00:ec2::23",
    )
)
"""They hand out the credentials of a machine: no stage allows them."""

_SPECIAL: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("unspecified", ("0.0.0.0/8", "::/128")),
    ("loopback", ("127.0.0.0/8", "::1/128")),
    ("private", ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")),
    ("shared by a carrier", ("100.64.0.0/10",)),
    ("link-local", ("169.254.0.0/16", "fe80::/10")),
    ("multicast", ("224.0.0.0/4", "ff00::/8")),
    ("for documentation", ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20")),
    ("for benchmarks", ("198.18.0.0/15",)),
    ("part of a transition to IPv6", ("192.88.99.0/24", "2001::/32", "2002::/16", "64:ff9b:1::/48")),
    ("reserved", ("192.0.0.0/24", "240.0.0.0/4", "2001::/23")),
)
_SPECIAL_NETWORKS = tuple((ip_network(text), kind) for kind, texts in _SPECIAL for text in texts)
_GLOBAL_UNICAST = ip_network("2000::/3")
_SAME_AS_IPV4 = tuple(IPv6Network(text) for text in ("::ffff:0:0/96", "64:ff9b::/96"))
"""Their last 32 bits are the IPv4 address that is reached: mapped (RFC 4291, 2.5.5.2), and translated by NAT64 (RFC 6052)."""

_LEADING_TO_IPV4: tuple[tuple[IPv6Network, Callable[[int], tuple[int, ...]]], ...] = (
    # IPv4-compatible (RFC 4291, 2.5.5.1), and IPv4-translated (RFC 2765, 2.1).
    (IPv6Network("::/96"), lambda bits: (bits,)),
    (IPv6Network("::ffff:0:0:0/96"), lambda bits: (bits,)),
    # 6to4 (RFC 3056, 2).
    (IPv6Network("2002::/16"), lambda bits: (bits >> 80,)),
    # Teredo (RFC 4380, 4): the server, and the client with its bits turned over.
    (IPv6Network("2001::/32"), lambda bits: (bits >> 64, ~bits)),
    # NAT64 of a network's own (RFC 8215): its prefix may be of 48, 56, 64 or 96 bits, and bits 64 to 71 hold nothing
    # (RFC 6052, 2.2). Only its translator knows which, so all of them count.
    (
        IPv6Network("64:ff9b:1::/48"),
        lambda bits: (bits, *(_without_bits_64_to_71(bits) >> end for end in (24, 32, 40))),
    ),
)
"""Networks with IPv4 addresses inside of their addresses, and where: in the last 32 bits of each number."""

_NOWHERE = IPv4Network("0.0.0.0/8")
"""What an IPv6 address leads to that holds no IPv4 address in this place."""


def parse_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """CIDRs such as `10.20.0.0/16` as networks. Raises InvalidInput, which names the one that is wrong."""
    return tuple(_parse_network(text) for text in texts)


def _parse_network(text: str) -> Network:
    try:
        network = ip_network(text)
    except ValueError as error:
        raise InvalidInput(f"{text!r} is not a network: {error}; write it as 10.20.0.0/16 or fd12::/32") from None
    if network.prefixlen == 0:
        raise InvalidInput(f"{text!r} is every address: name the networks that targets are in")
    return network


def why_refused(address: str, *, allowed: Sequence[Network]) -> str | None:
    """What kind of address it is that must not be called; None when it may be. A zone, `%eth0`, does not count.

    Whoever allows a network that leads to IPv4 addresses has not allowed these: they are judged as well.
    """
    try:
        asked = _spelt_plainly(ip_address(address.partition("%")[0]))
    except ValueError:
        return "not an address"
    reached = (asked, *_led_to(asked))
    if any(each in _METADATA for each in reached):
        return "that of a metadata service"
    return next((kind for each in reached if (kind := _kind_of(each, allowed=allowed))), None)


def _kind_of(address: Address, *, allowed: Sequence[Network]) -> str | None:
    """The kind of an address that must not be called; None for any other."""
    if any(address in network for network in allowed):
        return None
    for network, kind in _SPECIAL_NETWORKS:
        if address in network:
            return kind
    return None if address.version == 4 or address in _GLOBAL_UNICAST else "reserved"  # noqa: PLR2004


def _spelt_plainly(address: Address) -> Address:
    """The address that answers: an IPv6 address may be another spelling of an IPv4 one."""
    if isinstance(address, IPv6Address) and any(address in network for network in _SAME_AS_IPV4):
        return _last_32(int(address))
    return address


def _led_to(address: Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that a tunnel or a translator may make of an address."""
    for network, inside in _LEADING_TO_IPV4:
        if address in network:
            found = [_last_32(bits) for bits in inside(int(address))]
            return tuple(each for each in found if each not in _NOWHERE)
    return ()


def _without_bits_64_to_71(bits: int) -> int:
    return bits >> 64 << 56 | bits & (1 << 56) - 1


def _last_32(bits: int) -> IPv4Address:
    return IPv4Address(bits & 0xFFFFFFFF)
