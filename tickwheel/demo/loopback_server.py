"""What the HTTP servers on the loopback share that stand in for a target, or for the API."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class LoopbackServer(ThreadingHTTPServer):
    """Listens on a free port of the loopback, and answers from entry to exit; a thread for each connection.

    poll_seconds: how often it looks whether it shall stop.
    """

    daemon_threads = True  # a connection that is kept alive would hold up the end
    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler], *, poll_seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(poll_seconds,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever is killed resets its connections: that is no news."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """Where it listens, without a trailing slash."""
        return f"http://127.0.0.1:{self.server_port}"


class KeptAliveRequest(BaseHTTPRequestHandler):
    """A request of a connection that is kept alive."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def read_body(self) -> bytes:
        """The body; to be read once. Raises ConnectionError for one of which only a part has come."""
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:
            # Its caller died while it wrote: a request that nobody has finished asks for nothing.
            raise ConnectionAbortedError(f"{len(body)} of {length} bytes came")
        return body

    def answer(self, status: int, body: bytes = b"") -> None:
        """Answers, with nothing that says what the body is."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Says nothing: a line for each request would bury the progress."""
