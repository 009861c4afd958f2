from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.errors import InvalidInput
from functions.domain.targets.addresses import parse_networks, why_refused

PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "54.239.28.85", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0"),
    *("126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0"),
    *("192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "192.0.1.0"),
    *("2001:4860:4860::8888", "2600:9000:2000::1", "2a00:1450::1", "2400:cb00::1", "3ffe::1"),
    *("::ffff:8.8.8.8", "64:ff9b::8.8.8.8"),
]

REFUSED = {
    "unspecified": ["0.0.0.0", "0.1.2.3", "::"],
    "loopback": ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "64:ff9b::127.0.0.1"],
    "private": [
        *("10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
        *("fc00::1", "fd12:3456::1", "fdff::1", "fec0::1", "feff::1", "::ffff:10.1.2.3", "64:ff9b::192.168.0.1"),
    ],
    "shared by a carrier": ["100.64.0.0", "100.100.100.200", "100.127.255.255", "::ffff:100.64.0.1"],
    "link-local": ["169.254.0.1", "169.254.169.253", "fe80::1", "fe80::1%eth0", "febf::1", "::ffff:169.254.1.1"],
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "for documentation": ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff:fff::1"],
    "for benchmarks": ["198.18.0.1", "198.19.255.255"],
    "part of a transition to IPv6": [
        *("192.88.99.1", "2001:0:7f00:1::", "2001::1", "2002:7f00:1::", "2002:808:808::"),
        "64:ff9b:1::7f00:1",
    ],
    "reserved": [
        *("192.0.0.1", "192.0.0.171", "240.0.0.1", "255.255.255.255", "2001:2::1", "2001:1ff::1"),
        *(
            "::2",
            "::7f00:1",
            "::8.8.8.8",
            "::ffff:0:127.0.0.1",
            "64:ff9b:0:1::1",
            "100::1",
            "4000::1",
            "5f00::1",
            "e000::1",
        ),
    ],
    "that of a metadata service": [
        *("169.254.169.254", "169.254.170.2", "169.254.170.23", "fd00:ec2::254", "fd00:ec2::23", "fd00:ec2::254%eth0"),
        *("::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "::169.254.169.254"),
        *("::ffff:0:169.254.170.2", "2001::5601:5601", "2001:0:a9fe:a9fe::"),
        *("64:ff9b:1::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:1a9:fe:a9fe::", "64:ff9b:1:1:a9:fea9:fe00:7"),
    ],
    "not an address": ["", "localhost", "127.1", "0x7f.0.0.1", "1.2.3.4.5", "127.0.0.01"],
}


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_called(address: str):
    assert why_refused(address, allowed=()) is None


@pytest.mark.parametrize(("address", "kind"), [(address, kind) for kind in REFUSED for address in REFUSED[kind]])
def test_any_other_address_is_refused_for_what_it_is(address: str, kind: str):
    assert why_refused(address, allowed=()) == kind


def test_a_stage_may_allow_a_network_and_no_more_than_that():
    allowed = parse_networks(["10.1.0.0/16", "fd12::/32", "::1/128"])

    for address in ("10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "fd12::7", "::1"):
        assert why_refused(address, allowed=allowed) is None
    for address in ("10.2.0.0", "fd13::1", "127.0.0.1", "192.168.0.1"):
        assert why_refused(address, allowed=allowed) is not None


def test_no_stage_allows_a_metadata_service():
    allowed = parse_networks(["169.254.0.0/16", "fd00::/8"])

    assert why_refused("169.254.1.1", allowed=allowed) is None
    for address in REFUSED["that of a metadata service"]:
        assert why_refused(address, allowed=allowed) == "that of a metadata service"


def test_a_network_that_leads_to_ipv4_addresses_allows_none_of_them_by_itself():
    leading = parse_networks(["2002::/16", "2001::/32", "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48"])

    for address in REFUSED["that of a metadata service"]:
        assert why_refused(address, allowed=leading) == "that of a metadata service"
    private = (
        *("2002:a01:203::", "::10.1.2.3", "::ffff:0:10.1.2.3", "2001:0:808:808::f5fe:fdfc", "64:ff9b:1::10.1.2.3"),
        *("64:ff9b:1:a01:2:300::", "64:ff9b:1:a:1:203::", "64:ff9b:1::a:102:300:0"),
    )
    for address in private:
        assert why_refused(address, allowed=leading) == "private", address
        assert why_refused(address, allowed=[*leading, *parse_networks(["10.1.0.0/16"])]) is None, address
    for address in ("2002:808:808::", "::8.8.8.8", "::ffff:0:8.8.8.8", "64:ff9b:1::8.8.8.8", "64:ff9b:1:808:8:800::"):
        assert why_refused(address, allowed=leading) is None, address


@pytest.mark.parametrize("text", ["", "10.0.0.0/33", "10.0.0.1/8", "a", "10/8", "fd12::1/32", "0.0.0.0/0", "::/0"])
def test_a_text_that_is_no_network_or_all_of_them_is_named(text: str):
    with pytest.raises(InvalidInput, match=r"is not a network|is every address") as refused:
        parse_networks(["10.0.0.0/8", text])
    assert repr(text) in str(refused.value)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_however_it_is_written(address):
    kind = why_refused(str(address), allowed=())

    assert why_refused(f"::ffff:{address}", allowed=()) == kind
    assert why_refused(f"64:ff9b::{address}", allowed=()) == kind


@given(st.ip_addresses())
def test_what_python_knows_to_be_special_is_refused_too(address):
    known = ip_address(address)
    if why_refused(str(address), allowed=()) is None and known.version == 4:
        assert known.is_global
        assert not known.is_multicast
    if known.is_private or known.is_loopback or known.is_link_local or known.is_multicast or known.is_unspecified:
        mapped = getattr(known, "ipv4_mapped", None)
        assert why_refused(str(address), allowed=()) is not None or mapped is not None
