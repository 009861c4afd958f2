"""A real HTTP server on the loopback: a target whose behaviour a test chooses, and which remembers its requests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler

from tickwheel.demo.loopback_server import KeptAliveRequest, LoopbackServer

Responder = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Received:
    """One request as it came over the wire; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: str


@dataclass
class HttpSink:
    """respond: answers a request, 200 at first. released: set when the test is over, for answers that hang until then."""

    url: str
    respond: Responder
    requests: list[Received] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


def answering(status: int, **headers: str) -> Responder:
    """An empty answer with this status and these headers."""
    return saying(b"", status, **headers)


def saying(body: bytes, status: int = 200, **headers: str) -> Responder:
    """An answer with this body."""

    def respond(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return respond


def half_of(body: bytes, then: Callable[[BaseHTTPRequestHandler], object], status: int = 200) -> Responder:
    """An answer of ten bytes of which these are sent, and what happens then."""

    def respond(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Length", "10")
        request.end_headers()
        request.wfile.write(body)
        then(request)

    return respond


def cut_off(request: BaseHTTPRequestHandler) -> None:
    """The connection breaks."""
    request.connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def http_sink() -> Iterator[HttpSink]:
    sink = HttpSink(url="", respond=answering(200))

    class Handler(KeptAliveRequest):
        def _receive(self) -> None:
            body = self.read_body().decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            sink.requests.append(Received(self.command, self.path, headers, body))
            try:
                sink.respond(self)
            except ConnectionError:
                self.close_connection = True
            if sink.released.is_set():
                # No answer comes any more: whoever waits for one would wait until its own timeout, beyond the test.
                self.close_connection = True

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _receive  # noqa: N815  names that http.server looks for

    with LoopbackServer(Handler, poll_seconds=0.01) as server:
        sink.url = server.url
        try:
            yield sink
        finally:
            sink.released.set()
