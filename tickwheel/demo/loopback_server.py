"""What the HTTP servers on the loopback share that stand in for a target, or for the API."""

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

    @property
    def url(self) -> str:
        """Where it listens, without a trailing slash."""
        return f"http://127.0.0.1:{self.server_port}"


class KeptAliveRequest(BaseHTTPRequestHandler):
    """A request of a connection that is kept alive."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def read_body(self) -> bytes:
        """The body as it came; to be read once."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int) -> None:
        """Answers without a body."""
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Says nothing: a line for each request would bury the progress."""
