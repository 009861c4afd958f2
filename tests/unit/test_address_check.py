"""No URL reaches an address that a job must not call, however the address is written or resolved."""
# ruff: noqa: RUF001  letters that look like others are what some of these URLs are about

import re
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from functions.adapters.targets.address_check import AddressCheck
from functions.domain.targets.addresses import parse_networks
from functions.ports.targets import Failed, Succeeded
from tests.http_sink import HttpSink, http_sink
from tests.unit.calling import LOOPBACK, a_caller, call, failure_of

LOOPBACK_NAMES = (
    *("localhost", "localhost.localdomain", "ip6-localhost", "loopback", "127.0.0.1.nip.io", "www.127.0.0.1.sslip.io"),
    *("localtest.me", "lvh.me", "customer.example", "xn--ggbla1c4e.xn--ngbc5azd"),
)
INTERNAL_NAMES = {
    "metadata.google.internal": "169.254.169.254",
    "instance-data.ec2.internal": "169.254.169.254",
    "169.254.169.254.nip.io": "169.254.169.254",
    "db.corp.example": "10.1.2.3",
    "six.corp.example": "fd12::3",
    "kubernetes.default.svc": "172.20.0.1",
}

REACHING = [
    # dotted, short, decimal, octal, hexadecimal, and mixed
    *("http://127.0.0.1:{port}/", "http://127.1:{port}/", "http://127.0.1:{port}/", "http://2130706433:{port}/"),
    *("http://0177.0.0.1:{port}/", "http://0177.0.0.01:{port}/", "http://017700000001:{port}/"),
    *("http://0x7f.0.0.1:{port}/", "http://0x7f000001:{port}/", "http://0X7F000001:{port}/", "http://0x7f.1:{port}/"),
    *("http://0x7f.0x0.0x0.0x1:{port}/", "http://127.0x0.0.01:{port}/", "http://00000177.1:{port}/"),
    "http://127.0.0.1:0{port}/",
    # what stands for this machine
    *("http://0.0.0.0:{port}/", "http://0:{port}/", "http://0x0:{port}/", "http://[::]:{port}/"),
    # other addresses of it, and other spellings of one in IPv6
    *("http://[::1]:{port}/", "http://[0:0:0:0:0:0:0:1]:{port}/", "http://[0000::0001]:{port}/"),
    *("http://[::ffff:127.0.0.1]:{port}/", "http://[::ffff:7f00:1]:{port}/", "http://[::FFFF:7F00:0001]:{port}/"),
    *("http://[0:0:0:0:0:ffff:127.0.0.1]:{port}/", "http://[::ffff:0.0.0.0]:{port}/"),
    # its names, in any case, and with the dot of the root
    *("http://localhost:{port}/", "http://LOCALHOST:{port}/", "http://LocalHost:{port}/", "http://localhost.:{port}/"),
    *("http://localhost.localdomain:{port}/", "http://ip6-localhost:{port}/", "http://loopback:{port}/"),
    *("http://127.0.0.1.nip.io:{port}/", "http://www.127.0.0.1.sslip.io:{port}/", "http://localtest.me:{port}/"),
    *("http://lvh.me:{port}/", "http://customer.example:{port}/", "http://CUSTOMER.example.:{port}/"),
    # a user, a password, and what looks like a host before or behind the host
    *("http://user@127.0.0.1:{port}/", "http://user:pass@127.0.0.1:{port}/", "http://example.com@127.0.0.1:{port}/"),
    *("http://example.com:443@127.0.0.1:{port}/", "http://example.com%2f@127.0.0.1:{port}/"),
    *("http://a@b@127.0.0.1:{port}/", "http://127.0.0.1:{port}#@example.com/", "http://127.0.0.1:{port}?@example.com/"),
    *("http://127.0.0.1:{port}/@example.com", "http://user%40example.com@localhost:{port}/"),
    # another script
    "http://xn--ggbla1c4e.xn--ngbc5azd:{port}/",
]
"""Without the check, each of these would be answered by a server on the loopback."""

ELSEWHERE = [
    # metadata services and private networks
    *(
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
    ),
    *(
        "http://169.254.43518/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[fd00:ec2::254]/",
    ),
    *(
        "http://169.254.170.2/v2/credentials",
        "http://169.254.170.23/",
        "http://metadata.google.internal/computeMetadata/",
    ),
    *("http://METADATA.google.internal./", "http://instance-data.ec2.internal/", "http://169.254.169.254.nip.io/"),
    *("http://10.0.0.1/", "http://172.16.0.1:8080/", "http://192.168.0.1/", "http://0300.0250.0.1/", "http://10.1/"),
    *("http://100.64.0.1/", "http://db.corp.example/", "http://six.corp.example/", "http://kubernetes.default.svc/"),
    *("http://[fc00::1]/", "http://[fe80::1]/", "http://[fec0::1]/", "http://[ff02::1]/"),
    # broadcast, multicast, reserved
    *("http://255.255.255.255/", "http://224.0.0.1/", "http://240.0.0.1/", "http://192.0.0.192/", "http://0.1.2.3/"),
    # IPv4 inside IPv6
    *("http://[::127.0.0.1]:{port}/", "http://[64:ff9b::7f00:1]:{port}/", "http://[64:ff9b::127.0.0.1]:{port}/"),
    *("http://[64:ff9b:1::7f00:1]:{port}/", "http://[2002:7f00:1::]:{port}/", "http://[2002:a9fe:a9fe::1]/"),
    *("http://[2001:0:53aa:64c:0:0:80ff:fffe]/", "http://[::ffff:0:7f00:1]:{port}/"),
]
"""Each of these is resolved, and refused for its address."""

NO_HOSTS = [
    # zones, digits and dots of other scripts, and parts that no resolver takes
    *("http://[fe80::1%25lo]:{port}/", "http://[::1%25lo]:{port}/", "http://[::1%lo]:{port}/"),
    *(
        "http://①②⑦.⓪.⓪.①:{port}/",
        "http://１２７.0.0.1:{port}/",
        "http://127。0。0。1:{port}/",
        "http://127．0．0．1:{port}/",
    ),
    *(
        "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{port}/",
        "http://١٢٧.0.0.1:{port}/",
        "http://127%2e0%2e0%2e1:{port}/",
        "http://%6c%6f.host:{port}/",
    ),
    *("http://127.0.0.1.:{port}/", "http://127.0.0.1%00.example.com:{port}/", "http://127.0.0.1%20:{port}/"),
    *(
        "http://127.0.0.1\\@example.com:{port}/",
        "HTTP://127.0.0.1:{port}/",
        "http://127.0.0.1\\.example.com:{port}/",
        "http://[127.0.0.1]:{port}/",
    ),
    *("http://256.0.0.1:{port}/", "http://127.0.0.1.1:{port}/", "http://4294967297:{port}/", "http://127..1:{port}/"),
    *("http://[::1]@example.com:{port}]/", "http:///127.0.0.1:{port}/", "http://:{port}/", "http://.:{port}/"),
    *("http://127.0.0.1:{port}:80/", "http://127.0.0.1:-1/", "http://127.0.0.1 :{port}/", "http://127.0.0.1\t:{port}/"),
    *(
        "http:127.0.0.1:{port}/",
        "http:/127.0.0.1:{port}/",
        "//127.0.0.1:{port}/",
        "file:///etc/passwd",
        "gopher://x:{port}/",
    ),
]
"""Each of these comes to nothing, one way or another; how is the library's business."""

pytestmark = pytest.mark.allow_hosts(
    ["127.0.0.1", "127.0.0.2", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1", "::ffff:0.0.0.0"]
)
"""What pytest-socket lets through: it is the address check that is to keep these from being called."""


@pytest.fixture(scope="module")
def sinks() -> Iterator[tuple[HttpSink, list[Any]]]:
    """A server on the loopback of IPv4, and one on the same port of IPv6."""
    with http_sink() as sink:
        port = int(sink.url.rsplit(":", 1)[1])
        six = _SixServer(("::1", port), _Answering)
        threading.Thread(target=six.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield sink, six.seen
        finally:
            six.shutdown()
            six.server_close()


def test_the_tables_are_long_and_hold_nothing_twice():
    urls = [*REACHING, *ELSEWHERE, *NO_HOSTS]

    assert len(urls) == len(set(urls)) > 120


@pytest.mark.parametrize("url", REACHING)
def test_an_open_guard_would_reach_this_machine(url: str, sinks: tuple[HttpSink, list[Any]]):
    outcome = call(at(url, sinks), caller=a_caller(addresses=_Open(LOOPBACK, resolve=resolve)))

    assert isinstance(outcome, Succeeded)


@pytest.mark.parametrize("url", REACHING)
def test_no_url_reaches_this_machine(url: str, sinks: tuple[HttpSink, list[Any]]):
    assert_refused(url, sinks)


@pytest.mark.parametrize("url", ELSEWHERE)
def test_no_url_reaches_what_is_not_public(url: str, sinks: tuple[HttpSink, list[Any]]):
    assert_refused(url, sinks)


@pytest.mark.parametrize("url", NO_HOSTS)
def test_no_odd_text_reaches_anything(url: str, sinks: tuple[HttpSink, list[Any]]):
    seen = count(sinks)

    outcome = failure_of(call(at(url, sinks), caller=a_caller(addresses=AddressCheck(resolve=resolve))))

    assert outcome.error_class in {"refused_address", "invalid", "connection"}
    assert count(sinks) == seen


def test_a_name_with_the_dot_of_the_root_is_resolved_as_such_and_reported_without_it():
    asked: list[str] = []
    with http_sink() as sink:
        check = AddressCheck(LOOPBACK, resolve=answering_with([["127.0.0.1"]], asked))

        call(sink.url.replace("127.0.0.1", "receiver.example."), caller=a_caller(addresses=check))

    assert asked == ["receiver.example."]
    assert sink.requests[0].headers["host"] == sink.url.replace("http://127.0.0.1", "receiver.example")


def test_a_refusal_names_the_host_the_address_and_the_remedy():
    outcome = call(
        "https://db.corp.example/path?token=s3cret", caller=a_caller(addresses=AddressCheck(resolve=resolve))
    )

    assert outcome == Failed(
        "RefusedAddress: db.corp.example is at 10.1.2.3, which is private: call a public address, or let the stage "
        "allow its network in allowed_networks",
        error_class="refused_address",
        is_permanent=True,
    )


def test_a_name_with_a_public_and_a_private_address_is_refused(sinks: tuple[HttpSink, list[Any]]):
    for addresses in (["93.184.215.14", "127.0.0.1"], ["127.0.0.1", "93.184.215.14"], ["2606:2800:21f::1", "::1"]):
        check = AddressCheck(resolve=answering_with([addresses]))
        seen = count(sinks)

        outcome = failure_of(call(at("http://both.example:{port}/", sinks), caller=a_caller(addresses=check)))

        assert outcome.error_class == "refused_address"
        assert count(sinks) == seen


def test_a_name_that_is_rebound_after_its_check_is_not_reached(monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    # The stage allows only 127.0.0.1, which so plays the public address; 127.0.0.2 is the internal server.
    with http_sink() as public, listening("127.0.0.2", int(public.url.rsplit(":", 1)[1])) as internal:
        check = AddressCheck(
            parse_networks(["127.0.0.1/32"]), resolve=answering_with([["127.0.0.1"], ["127.0.0.2"]], asked)
        )
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda *_, **__: pytest.fail("the name was resolved beside the check")
        )
        caller = a_caller(addresses=check)
        url = public.url.replace("127.0.0.1", "rebound.example")

        # One connection, one question: the second answer is never asked for.
        assert isinstance(call(url, caller=caller), Succeeded)
        assert isinstance(call(url, caller=caller), Succeeded)
        assert asked == ["rebound.example"]

        # A new connection asks again, and is refused by the answer then.
        outcome = failure_of(call(url, caller=a_caller(addresses=check)))
        assert outcome.error_class == "refused_address"
        assert asked == ["rebound.example"] * 2

    assert len(public.requests) == 2
    assert internal == []


def test_a_redirect_to_this_machine_is_not_followed(sinks: tuple[HttpSink, list[Any]]):
    port = sinks[0].url.rsplit(":", 1)[1]
    with http_sink() as sink:
        sink.respond = lambda request: _redirect(request, f"http://127.0.0.1:{port}/")
        seen = count(sinks)

        outcome = failure_of(call(sink.url))

    assert (outcome.error_class, outcome.is_permanent) == ("redirect", True)
    assert count(sinks) == seen


def test_a_resolver_that_fails_may_do_better_the_next_time():
    def fail(*_: Any) -> Any:
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    outcome = failure_of(call("https://example.com/", caller=a_caller(addresses=AddressCheck(resolve=fail))))

    assert (outcome.error_class, outcome.is_permanent) == ("connection", False)


def test_a_resolver_that_knows_no_address_may_do_better_the_next_time():
    outcome = failure_of(call("https://example.com/", caller=a_caller(addresses=AddressCheck(resolve=lambda *_: []))))

    assert (outcome.error_class, outcome.is_permanent) == ("connection", False)


def test_an_address_that_does_not_answer_makes_way_for_the_next(sinks: tuple[HttpSink, list[Any]]):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        shut = closed.getsockname()
    sockaddr = ("127.0.0.1", int(sinks[0].url.rsplit(":", 1)[1]))
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", each) for each in (shut, sockaddr)]

    assert isinstance(
        call("http://two.example/", caller=a_caller(addresses=AddressCheck(LOOPBACK, resolve=lambda *_: found))),
        Succeeded,
    )


def test_the_name_is_kept_for_the_certificate_sni_and_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with tls_server(tmp_path, name="receiver.example") as (port, seen):
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        caller = a_caller(addresses=AddressCheck(LOOPBACK, resolve=answering_with([["127.0.0.1"]] * 2)))

        assert isinstance(call(f"https://receiver.example:{port}/", caller=caller), Succeeded)
        assert seen == [("sni", "receiver.example"), ("host", f"receiver.example:{port}")]

        outcome = failure_of(call(f"https://other.example:{port}/", caller=caller))
        assert (outcome.error_class, outcome.is_permanent) == ("tls", False)


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path):
    with tls_server(tmp_path, name="receiver.example") as (port, seen):
        caller = a_caller(addresses=AddressCheck(LOOPBACK, resolve=answering_with([["127.0.0.1"]])))

        assert failure_of(call(f"https://receiver.example:{port}/", caller=caller)).error_class == "tls"

    assert ("host", f"receiver.example:{port}") not in seen


def at(url: str, sinks: tuple[HttpSink, list[Any]]) -> str:
    return url.replace("{port}", sinks[0].url.rsplit(":", 1)[1])


def count(sinks: tuple[HttpSink, list[Any]]) -> int:
    return len(sinks[0].requests) + len(sinks[1])


def assert_refused(url: str, sinks: tuple[HttpSink, list[Any]]) -> None:
    seen = count(sinks)

    outcome = failure_of(call(at(url, sinks), caller=a_caller(addresses=AddressCheck(resolve=resolve))))

    assert (outcome.error_class, outcome.is_permanent) == ("refused_address", True), outcome
    assert count(sinks) == seen


def resolve(host: str, port: int, *_: Any) -> Sequence[tuple[Any, ...]]:
    """The system's resolver for what is a number in some notation; for names, what an attacker's server would say."""
    name = host.lower().rstrip(".")
    if name in LOOPBACK_NAMES:
        return answering_with([["127.0.0.1"]])(host, port)
    if name in INTERNAL_NAMES:
        return answering_with([[INTERNAL_NAMES[name]]])(host, port)
    if not re.fullmatch(r"[0-9a-fx.:%lo]+", host.lower(), re.ASCII):
        raise socket.gaierror(socket.EAI_NONAME, "no such name")
    return socket.getaddrinfo(host, port, socket.AF_UNSPEC, socket.SOCK_STREAM)


def answering_with(answers: list[list[str]], asked: list[str] | None = None) -> Any:
    """A resolver with these answers, one after the other."""
    left = list(answers)

    def answer(host: str, port: int, *_: Any) -> Sequence[tuple[Any, ...]]:
        if asked is not None:
            asked.append(host)
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in left.pop(0)
        ]

    return answer


class _Open(AddressCheck):
    """The address check without its checks: it shows that the tables lead somewhere."""

    def _addresses(self, host: str, port: int) -> list[tuple[Any, ...]]:
        return [(family, kind, protocol, to) for family, kind, protocol, _, to in self._resolve(host, port)]


class _Answering(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.server.seen.append(self.headers["Host"])  # pyright: ignore[reportAttributeAccessIssue]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  its name in http.server
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self.seen: list[Any] = []
        super().__init__(*arguments)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that refuses the certificate hangs up."""


class _SixServer(_Server):
    address_family = socket.AF_INET6


@contextmanager
def listening(address: str, port: int) -> Iterator[list[Any]]:
    server = _Server((address, port), _Answering)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server.seen
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def tls_server(folder: Path, *, name: str) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """A server with a certificate of that name, which the file certificate.pem vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    seen: list[tuple[str, str]] = []
    context.sni_callback = lambda _, asked, __: seen.append(("sni", asked))  # pyright: ignore[reportAttributeAccessIssue]

    class Handler(_Answering):
        def do_POST(self) -> None:
            seen.append(("host", self.headers["Host"]))
            super().do_POST()

    server = _Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server.server_address[1], seen
    finally:
        server.shutdown()
        server.server_close()


def _redirect(request: BaseHTTPRequestHandler, location: str) -> None:
    request.send_response(302)
    request.send_header("Location", location)
    request.send_header("Content-Length", "0")
    request.end_headers()
