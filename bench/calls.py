"""CPU of a call of an HTTPS target, by the adapter that is deployed: on a connection that is kept, and on a new one.

The target is another process of this machine, so only the caller's CPU counts. Its certificate is signed by itself (ECDSA, P-256);
a chain of more certificates takes more. A line of the log is measured beside it.
"""

import datetime as dt
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from rich.console import Console

from bench.printed import printed_by
from bench.results import print_table, write_result
from functions.adapters.system_clock import SystemClock
from functions.adapters.targets.address_check import AddressCheck
from functions.adapters.targets.http import HttpCaller
from functions.domain.targets.addresses import parse_networks
from functions.domain.targets.options import USUAL
from functions.ports.targets import Succeeded
from functions.runtime.observability import PowertoolsJournal
from testkit.builders import an_invocation
from testkit.fakes import GivenWebhookKeys

CALLS = 200
NEW_OF_KEPT = 8
"""A handshake takes three times as much; loading the authorities of the system for each took sixteen times as much."""
_SERVER = """
import http.server, ssl, sys
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *_): ...
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1])
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def run(console: Console) -> list[str]:
    """Measure, print, write calls.json; a sentence when a new connection takes too many times what a kept one does."""
    found = measure()
    rows = {what: f"{seconds * 1_000:.2f} ms" for what, seconds in found.items()}
    print_table(console, "CPU of calls of targets, and of log lines", of="of", figure="CPU", rows=rows)
    write_result("calls.json", {"calls": CALLS, "cpu_seconds": {what: round(s, 6) for what, s in found.items()}})
    times = found["call_new"] / found["call_kept"]
    return [] if times <= NEW_OF_KEPT else [f"calls: a new connection takes {times:.0f} times the CPU of a kept one"]


def measure() -> Mapping[str, float]:
    """CPU seconds of one."""
    with _target() as url:
        kept = _caller()
        _call(kept, url)
        return {
            "call_kept": _cpu_of(lambda: _call(kept, url)),
            "call_new": _cpu_of(lambda: _call_anew(kept, url)),
            "log_line": _log_line(),
        }


def _cpu_of(act: Callable[[], None]) -> float:
    began_at = time.process_time()
    for _ in range(CALLS):
        act()
    return (time.process_time() - began_at) / CALLS


def _caller() -> HttpCaller:
    return HttpCaller(
        clock=SystemClock(), addresses=AddressCheck(parse_networks(["127.0.0.0/8"])), keys=GivenWebhookKeys()
    )


def _call(caller: HttpCaller, url: str) -> None:
    outcome = caller.call(url, '{"order":1}', an_invocation(), options=USUAL, timeout=timedelta(seconds=10))
    assert isinstance(outcome, Succeeded), outcome


def _call_anew(caller: HttpCaller, url: str) -> None:
    caller._http.clear()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  its connections, and nothing else
    _call(caller, url)


def _log_line() -> float:
    journal = PowertoolsJournal()
    with printed_by("worker"):
        return _cpu_of(lambda: journal.event("job_settled", job_id="j1~acme~x~1", outcome="succeeded", attempt=1))


@contextmanager
def _target() -> Iterator[str]:
    """A target of this machine that answers 200, trusted by this process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trusted.pem"
        # With all the authorities that are trusted elsewhere: loading them is a part of what a new connection may take.
        authorities = ssl.get_default_verify_paths().cafile
        assert authorities is not None
        own = Path(folder) / "own.pem"
        own.write_bytes(_certificate())
        file.write_bytes(Path(authorities).read_bytes() + own.read_bytes())
        trusted = ssl.get_default_verify_paths().openssl_cafile_env
        before = os.environ.get(trusted)
        os.environ[trusted] = str(file)
        try:
            with subprocess.Popen(
                [sys.executable, "-c", _SERVER, str(own)], stdout=subprocess.PIPE, text=True
            ) as server:
                assert server.stdout is not None
                try:
                    yield f"https://127.0.0.1:{int(server.stdout.readline())}/hook"
                finally:
                    server.terminate()
        finally:
            if before is None:
                del os.environ[trusted]
            else:
                os.environ[trusted] = before


def _certificate() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    written = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return written + signed.public_bytes(serialization.Encoding.PEM)
