"""The endpoint that the demo's jobs call: it fails as it was told to, and remembers every arrival."""

import http.server
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from tickwheel.demo.workload import DOOMED_ATTEMPTS, Fate
from tickwheel.instants import parse_instant


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """One request at the sink. accepted: whether it was answered with success, and so had its effect."""

    name: str
    attempt: int
    scheduled_at: datetime
    arrived_at: datetime
    accepted: bool


@dataclass(frozen=True, kw_only=True)
class Tally:
    """How far the sink's jobs have come. retried: requests that were second attempts or later."""

    delivered: int = 0
    retried: int = 0
    given_up: int = 0


class Sink:
    """Listens on a free port of the loopback from entry to exit; a thread for each connection.

    fates: how each job, by name, is answered. A request for any other name is answered 404.
    """

    def __init__(self, fates: Mapping[str, Fate]) -> None:
        self._fates = fates
        self._lock = threading.Lock()
        self._arrivals: list[Arrival] = []
        self._seen: Counter[str] = Counter()
        self._delivered: set[str] = set()
        self._retried = 0
        self._given_up: set[str] = set()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._server = _Server(self)
        # Looks often whether it shall stop, because whoever waits for that has pressed Ctrl-C.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name="sink", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        """Where it listens, without a trailing slash."""
        assert self._server is not None, "the sink has not been started"
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def arrivals(self) -> list[Arrival]:
        """All so far, in the order in which they were answered."""
        with self._lock:
            return list(self._arrivals)

    @property
    def tally(self) -> Tally:
        """The counts so far."""
        with self._lock:
            return Tally(delivered=len(self._delivered), retried=self._retried, given_up=len(self._given_up))

    def take(self, name: str, *, attempt: int, scheduled_at: datetime, arrived_at: datetime) -> HTTPStatus:
        """Remembers an arrival; returns the answer to it."""
        with self._lock:
            fate = self._fates.get(name)
            if fate is None:
                return HTTPStatus.NOT_FOUND
            self._seen[name] += 1
            accepted = fate is Fate.SUCCEEDS or (fate is Fate.STUMBLES and self._seen[name] > 1)
            self._arrivals.append(
                Arrival(
                    name=name,
                    attempt=attempt,
                    scheduled_at=scheduled_at,
                    arrived_at=arrived_at,
                    accepted=accepted,
                )
            )
            self._retried += attempt > 1
            if accepted:
                self._delivered.add(name)
            elif attempt >= DOOMED_ATTEMPTS and fate is Fate.DOOMED:
                self._given_up.add(name)
        return HTTPStatus.OK if accepted else HTTPStatus.SERVICE_UNAVAILABLE


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
        arrived_at = datetime.now(UTC)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status = self.server.sink.take(
            unquote(self.path.rsplit("/", 1)[-1]),
            attempt=int(self.headers["Tickwheel-Attempt"]),
            scheduled_at=parse_instant(self.headers["Tickwheel-Scheduled-At"]),
            arrived_at=arrived_at,
        )
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Says nothing: a line for each request would bury the progress."""
