"""What a client reads before its first request."""

import ssl

import pytest

from tickwheel.client.endpoint import Endpoint


@pytest.mark.parametrize("address", ["http://127.0.0.1:8080", "http://abc.execute-api.localhost:4566"])
def test_without_tls_no_authorities_are_read_and_none_is_trusted(address: str) -> None:
    verify = Endpoint(address).verify

    assert isinstance(verify, ssl.SSLContext)
    assert verify.get_ca_certs() == []
    assert verify.verify_mode is ssl.CERT_REQUIRED


def test_with_tls_certificates_are_verified_on_this_machine_too() -> None:
    assert Endpoint("https://localhost:8443").verify is True
    assert Endpoint("HTTPS://localhost:8443").verify is True
