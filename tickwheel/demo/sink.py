"""The endpoint that the demo's jobs call: it fails as configured, and records every arrival."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import unquote

from tickwheel.client.instants import parse_instant
from tickwheel.demo.loopback_server import KeptAliveRequest, LoopbackServer
from tickwheel.demo.workload import DOOMED_ATTEMPTS, Fate


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """One request at the sink. accepted: whether it was answered with success, and so had its effect."""

    name: str
    attempt: int
    scheduled_at: datetime
    arrived_at: datetime
    accepted: bool


@dataclass(frozen=True, kw_only=True)
class UsageTally:
    """How far the sink's jobs have come. retried: requests that were second attempts or later."""

    delivered: int = 0
    retried: int = 0
    given_up: int = 0


class Sink(LoopbackServer):
    """fates: how each job, by name, is answered. A request for any other name is answered 404."""

    def __init__(self, fates: Mapping[str, Fate]) -> None:
        # Looks often whether it shall stop, because whoever waits for that has pressed Ctrl-C.
        super().__init__(_Request, poll_seconds=0.1)
        self._fates = fates
        self._lock = threading.Lock()
        self._arrivals: list[Arrival] = []
        self._seen: Counter[str] = Counter()
        self._delivered: set[str] = set()
        self._retried = 0
        self._given_up: set[str] = set()

    @property
    def arrivals(self) -> list[Arrival]:
        """All so far, in the order in which they were answered."""
        with self._lock:
            return list(self._arrivals)

    @property
    def tally(self) -> UsageTally:
        """The counts so far."""
        with self._lock:
            return UsageTally(delivered=len(self._delivered), retried=self._retried, given_up=len(self._given_up))

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


class _Request(KeptAliveRequest):
    server: Sink  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:  # noqa: N802  its name in http.server
        arrived_at = datetime.now(UTC)
        self.read_body()
        status = self.server.take(
            unquote(self.path.rsplit("/", 1)[-1]),
            attempt=int(self.headers["Tickwheel-Attempt"]),
            scheduled_at=parse_instant(self.headers["Tickwheel-Scheduled-At"]),
            arrived_at=arrived_at,
        )
        self.answer(status)
