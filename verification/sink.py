"""The target of a run on the local stack: an HTTP server on the loopback, as good a target as the docs ask for.

It refuses a smaller fence than it has seen, looks the idempotency key up before it acts, and remembers every call.
"""

from __future__ import annotations

import contextlib
import http.server
import threading
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from functions.domain.instants import parse_instant
from verification.history import Answer, Call

SLOW_SECONDS = 9.0
SLOW_TIMEOUT = timedelta(seconds=2)
"""Of the jobs that call what is slow: their lease is over 7 s after the call, 2 s before its answer."""

_LONGEST_HOLD_SECONDS = 60.0


class Manner(StrEnum):
    """How calls are answered: the first part of their path."""

    FINE = "fine"
    FLAKY = "flaky"
    BROKEN = "broken"
    SLOW = "slow"
    """Does at once what it is asked to, and answers when nobody waits any more."""
    HELD = "held"
    """Does at once what it is asked to, and does not answer the first call before it is released."""


class Sink:
    """Listens on a free port of the loopback from entry to exit; a thread for each connection."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._fences: dict[str, int] = {}
        self._done: set[str] = set()
        self._held: set[str] = set()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def address(self, manner: Manner) -> str:
        """Where something is called that answers so."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{manner}"

    @property
    def calls(self) -> list[Call]:
        """All so far, in the order in which they came."""
        with self._lock:
            return list(self._calls)

    @property
    def held_count(self) -> int:
        """How many have been held, whether they still are or not."""
        with self._lock:
            return len(self._held)

    def take(self, manner: Manner, headers: Any, body: str, *, at: datetime) -> tuple[HTTPStatus, bool]:
        """The answer to a call, and whether it is to be held."""
        key, attempt, fence = (
            headers["Idempotency-Key"],
            int(headers["Tickwheel-Attempt"]),
            int(headers["Tickwheel-Fence"]),
        )
        with self._lock:
            answer = self._answer(manner, key, attempt=attempt, fence=fence)
            self._calls.append(
                Call(
                    key=key,
                    tenant=headers["Tickwheel-Tenant"],
                    attempt=attempt,
                    fence=fence,
                    scheduled_at=parse_instant(headers["Tickwheel-Scheduled-At"]),
                    called_at=at,
                    # Whoever hung up is not at it any more; the others are answered at once.
                    until=at + SLOW_TIMEOUT if manner is Manner.SLOW else at,
                    payload=body,
                    answer=answer,
                )
            )
            is_held = manner is Manner.HELD and key not in self._held
            self._held |= {key} if is_held else set()
        if answer is Answer.STALE:
            return HTTPStatus.CONFLICT, is_held
        return HTTPStatus.SERVICE_UNAVAILABLE if answer is Answer.FAILED else HTTPStatus.OK, is_held

    def wait(self) -> None:
        """Until what is held is released."""
        self.released.wait(_LONGEST_HOLD_SECONDS)

    def _answer(self, manner: Manner, key: str, *, attempt: int, fence: int) -> Answer:
        if fence < self._fences.get(key, 0):
            return Answer.STALE
        self._fences[key] = fence
        if manner is Manner.BROKEN or (manner is Manner.FLAKY and attempt == 1):
            return Answer.FAILED
        if key in self._done:
            return Answer.KNOWN
        self._done.add(key)
        return Answer.EFFECT


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True  # a connection that is kept alive would hold up the end
    request_queue_size = 128

    def __init__(self, sink: Sink) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.sink = sink


class _Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections alive
    disable_nagle_algorithm = True
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        at = datetime.now(UTC)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        manner = Manner(self.path.strip("/"))
        sink = self.server.sink
        status, is_held = sink.take(manner, self.headers, body, at=at)
        if is_held:
            sink.wait()
        elif manner is Manner.SLOW:
            threading.Event().wait(SLOW_SECONDS)
        with contextlib.suppress(ConnectionError):  # who called may have hung up, or be dead
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Says nothing: a line for each request would bury the progress."""
