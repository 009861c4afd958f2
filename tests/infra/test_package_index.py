"""uv and npm reach the index that is set for pip, and trust the certificates that are: here an index on the loopback."""

import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import Thread

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from infra.package_index import environment_for_uv
from scripts.install_tools import environment_for_npm

ROOT = Path(__file__).resolve().parents[2]
UV = [sys.executable, "infra/package_index.py", ".tools/bin/uv"]
PACKAGE = "of-nobody"


@contextmanager
def index(certificate: Path | None = None) -> Iterator[tuple[str, list[str]]]:
    """What answers as an index without packages does: its URL, and the paths that it was asked for."""
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  its name in the library
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            # One that does not trust it hangs up in the middle.
            server.handle_error = lambda *_: None  # pyright: ignore[reportAttributeAccessIssue]
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http{'' if certificate is None else 's'}://127.0.0.1:{server.server_port}/simple", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def own_authority(tmp_path: Path) -> Path:
    """The certificate of an authority that no system knows, with its key: of a server on the loopback too."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "authority.pem"
    file.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate.public_bytes(Encoding.PEM)
    )
    return file


def install(tmp_path: Path, **given: str) -> str:
    """What uv says when it looks for a package, in an environment with nothing but this."""
    target = ["--target", str(tmp_path / "site"), "--python", sys.executable]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "UV_HTTP_RETRIES": "0", **given}
    command = [*UV, "pip", "install", "--no-config", "--no-cache", *target, PACKAGE]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False).stderr


def test_the_index_of_pip_is_asked(tmp_path: Path) -> None:
    with index() as (url, asked):
        install(tmp_path, PIP_INDEX_URL=url)

    assert f"/simple/{PACKAGE}/" in asked


def test_the_index_of_uv_goes_before_that_of_pip(tmp_path: Path) -> None:
    with index() as (of_uv, asked), index() as (of_pip, not_asked):
        install(tmp_path, PIP_INDEX_URL=of_pip, UV_DEFAULT_INDEX=of_uv)

    assert asked
    assert not_asked == []


@pytest.mark.parametrize("variable", ["PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_an_authority_of_ones_own_is_trusted_if_it_is_named(tmp_path: Path, own_authority: Path, variable: str) -> None:
    with index(own_authority) as (url, asked):
        refused = install(tmp_path, PIP_INDEX_URL=url)
        assert "certificate" in refused.lower()
        assert asked == []

        install(tmp_path, PIP_INDEX_URL=url, **{variable: str(own_authority)})

    assert f"/simple/{PACKAGE}/" in asked


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ({}, {"UV_SYSTEM_CERTS": "true"}),
        ({"UV_SYSTEM_CERTS": "false"}, {}),
        ({"UV_NATIVE_TLS": "0"}, {}),
        ({"UV_NATIVE_TLS": "1", "PIP_EXTRA_INDEX_URL": "https://a https://b"}, {"UV_INDEX": "https://a https://b"}),
        ({"UV_NATIVE_TLS": "1", "PIP_TRUSTED_HOST": "a"}, {"UV_INSECURE_HOST": "a"}),
        ({"UV_NATIVE_TLS": "1", "PIP_INDEX_URL": "https://a", "UV_INDEX_URL": "https://b"}, {}),
        ({"UV_NATIVE_TLS": "1", "PIP_INDEX_URL": "", "PIP_CERT": ""}, {}),
        ({"UV_NATIVE_TLS": "1", "PIP_CERT": "/a.pem", "SSL_CERT_DIR": "/certs"}, {}),
        ({"UV_NATIVE_TLS": "1", "REQUESTS_CA_BUNDLE": "/"}, {"SSL_CERT_DIR": "/"}),
        ({"UV_NATIVE_TLS": "1", "PIP_CERT": "/a.pem", "CURL_CA_BUNDLE": "/b.pem"}, {"SSL_CERT_FILE": "/a.pem"}),
    ],
)
def test_uv_is_told_what_is_set_for_pip_and_not_for_uv(given: Mapping[str, str], added: Mapping[str, str]) -> None:
    assert environment_for_uv(given) == {**given, **added}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"NODE_USE_SYSTEM_CA": "1"}),
        ({"NODE_USE_SYSTEM_CA": "0"}, {"NODE_USE_SYSTEM_CA": "0"}),
        ({"PIP_CERT": "/a.pem"}, {"NODE_USE_SYSTEM_CA": "1", "NODE_EXTRA_CA_CERTS": "/a.pem"}),
        ({"PIP_CERT": "/a.pem", "NODE_EXTRA_CA_CERTS": "/b.pem"}, {"NODE_EXTRA_CA_CERTS": "/b.pem"}),
    ],
)
def test_npm_trusts_the_same_certificates(given: Mapping[str, str], expected: Mapping[str, str]) -> None:
    found = environment_for_npm({"PATH": "/bin", **given}, node_bin=Path("/node/bin"))

    assert found.items() >= expected.items()
    assert found["PATH"] == "/node/bin:/bin"


def test_every_uv_of_the_makefile_runs_with_that_environment() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "UV := .tools/bin/python infra/package_index.py .tools/bin/uv\n" in makefile
    recipes = [line for line in makefile.splitlines() if line.startswith("\t")]
    assert not [line for line in recipes if ".tools/bin/uv " in line]
