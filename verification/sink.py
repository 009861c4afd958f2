"""The target of a run on the local stack: an HTTP server on the loopback, as good a target as the docs ask for.

It refuses a smaller fence than it has seen, looks the idempotency key up before it acts, and remembers every call.
"""

from __future__ import annotations

import contextlib
import threading
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from http import HTTPStatus
from types import TracebackType
from typing import Any

from functions.domain.instants import parse_instant
from tickwheel.demo.loopback_server import KeptAliveRequest, LoopbackServer
from verification.history import Answer, Call

SLOW_SECONDS = 9.0
SLOW_TIMEOUT = timedelta(seconds=2)
"""Of the jobs that call what is slow: their lease is over 7 s after the call, 2 s before its answer."""

LASTING_SECONDS = 12.0

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
    LASTING = "lasting"
    """Does at once what it is asked to, and lets its caller wait for the answer."""
    DOWN = "down"
    """Says no while the sink is down."""


_WAITS = {Manner.SLOW: SLOW_SECONDS, Manner.LASTING: LASTING_SECONDS}


class Sink(LoopbackServer):
    """What the jobs call, and what it remembers of it."""

    def __init__(self) -> None:
        super().__init__(_Request, poll_seconds=0.1)
        self.released = threading.Event()
        self.is_down = threading.Event()
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._fences: dict[str, int] = {}
        self._done: set[str] = set()
        self._held: set[str] = set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        super().__exit__(kind, error, trace)

    def address(self, manner: Manner) -> str:
        """Where something is called that answers so."""
        return f"{self.url}/{manner}"

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
        is_down = manner is Manner.DOWN and self.is_down.is_set()
        if is_down or manner is Manner.BROKEN or (manner is Manner.FLAKY and attempt == 1):
            return Answer.FAILED
        if key in self._done:
            return Answer.KNOWN
        self._done.add(key)
        return Answer.EFFECT


class _Request(KeptAliveRequest):
    server: Sink  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:  # noqa: N802  its name in http.server
        at = datetime.now(UTC)
        body = self.read_body().decode()
        manner = Manner(self.path.strip("/"))
        status, is_held = self.server.take(manner, self.headers, body, at=at)
        if is_held:
            self.server.wait()
        elif manner in _WAITS:
            threading.Event().wait(_WAITS[manner])
        with contextlib.suppress(ConnectionError):  # who called may have hung up, or be dead
            self.answer(status)
