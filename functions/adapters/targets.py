"""What a job calls: an HTTP endpoint, or a Python function that runs in the worker."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import urllib3
import urllib3.connection

from functions.domain.instants import format_instant
from functions.domain.target_options import TargetOptions
from functions.ports import Failed, Invocation, Outcome, Succeeded

Handler = Callable[[Any, Invocation], Any]
"""A Python target: takes the payload and what it is told about the attempt, returns a JSON value, raises to fail."""

_CONNECT_SECONDS = 5.0
_DRAINED_BYTES = 65_536
_DRAIN_SECONDS = 0.05


class TargetCaller:
    """Calls the target of a job by its scheme. Every failure of a target is a result.

    Each call runs on a thread of its own, because neither a Python function nor a peer that drips bytes can be limited
    from within.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        # No retries and no redirects: an attempt is one request to the address that was asked for.
        self._http = urllib3.PoolManager(retries=False, maxsize=10)
        self._http.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}

    def call(
        self,
        target: str,
        payload: str | None,
        invocation: Invocation,
        *,
        options: TargetOptions,  # noqa: ARG002
        timeout: timedelta,
    ) -> Outcome:
        """Call once. Answers within the timeout; a handler that overruns it goes on, with a stale fence."""
        scheme, _, name = target.partition(":")
        if scheme == "handler":
            handler = self._handlers.get(name)
            if handler is None:
                known = ", ".join(sorted(self._handlers)) or "none"
                return Failed(f"there is no handler {name!r}; registered are: {known}", is_permanent=True)
            call = _Call(timeout)
            return call.run(lambda: call.answer(_run_handler(handler, payload, invocation)))
        call = _Call(timeout)
        return call.run(lambda: self._post(call, target, payload, invocation))

    def _post(self, call: _Call, url: str, payload: str | None, invocation: Invocation) -> None:
        _current.call = call
        try:
            response = self._http.request(
                "POST",
                url,
                body=(payload if payload is not None else "null").encode(),
                headers=headers_of(invocation),
                # The call cuts an overrun itself; this only ends a thread whose socket it could not shut.
                timeout=urllib3.Timeout(connect=min(_CONNECT_SECONDS, call.seconds), read=call.seconds + 1),
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
        except (urllib3.exceptions.LocationValueError, UnicodeError) as error:
            call.answer(Failed(f"{type(error).__name__}: {error}", is_permanent=True))
            return
        except urllib3.exceptions.HTTPError as error:
            call.answer(Failed(f"{type(error).__name__}: {error}"))
            return
        # The status is the answer: what comes or does not come of the body changes nothing about the effect.
        is_success = 200 <= response.status < 300  # noqa: PLR2004
        call.answer(
            Succeeded(json.dumps({"status": response.status}))
            if is_success
            else Failed(f"the target answered {response.status}")
        )
        _drain(response, ends_at=call.ends_at)


class _Call:
    """One call of a target on a thread of its own."""

    def __init__(self, timeout: timedelta) -> None:
        self.seconds = timeout.total_seconds()
        self.ends_at = time.monotonic() + self.seconds
        self.socket: socket.socket | None = None
        self._outcome: Outcome | None = None
        self._answered = threading.Event()
        self._lock = threading.Lock()

    def run(self, function: Callable[[], None]) -> Outcome:
        """Run a function that calls `answer`, for no longer than the timeout."""

        def run() -> None:
            try:
                function()
            except BaseException as error:  # noqa: BLE001  whatever ends it, a handler's sys.exit too, ends the attempt
                self.answer(Failed(f"{type(error).__name__}: {error}"))

        thread = threading.Thread(target=run, name="target", daemon=True)
        thread.start()
        if not self._answered.wait(self.seconds):
            self.answer(Failed(f"Timeout: no answer within {self.seconds:g} s"))
            if self.socket is not None:
                _shut(self.socket)
        # The rest of an ordinary body is there already, and its connection is free for the next call.
        thread.join(_DRAIN_SECONDS)
        assert self._outcome is not None
        return self._outcome

    def answer(self, outcome: Outcome) -> None:
        """Settle the call; only the first answer counts."""
        with self._lock:
            if self._outcome is None:
                self._outcome = outcome
                self._answered.set()


_current = threading.local()
"""The call that a thread makes: a connection tells it the socket that it uses, so that an overrun can be cut."""


class _HTTPConnection(urllib3.connection.HTTPConnection):
    def request(self, *arguments: Any, **options: Any) -> None:
        super().request(*arguments, **options)
        _current.call.socket = self.sock


class _HTTPSConnection(urllib3.connection.HTTPSConnection):
    def request(self, *arguments: Any, **options: Any) -> None:
        super().request(*arguments, **options)
        _current.call.socket = self.sock


class _HTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HTTPConnection  # pyright: ignore[reportAssignmentType]  the class that it replaces derives alike


class _HTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HTTPSConnection  # pyright: ignore[reportAssignmentType]


def _drain(response: urllib3.BaseHTTPResponse, *, ends_at: float) -> None:
    """Read a short body, so that the connection can be used again; otherwise close it.

    A body that drips is read no longer than the call may take: it would keep its thread.
    """
    size = 0
    try:
        while size <= _DRAINED_BYTES and time.monotonic() < ends_at:
            chunk = response.read1(_DRAINED_BYTES)
            if not chunk:
                response.release_conn()
                return
            size += len(chunk)
        response.close()
    except (urllib3.exceptions.HTTPError, OSError):
        response.close()


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has been closed meanwhile


def _run_handler(handler: Handler, payload: str | None, invocation: Invocation) -> Outcome:
    try:
        value = handler(json.loads(payload) if payload is not None else None, invocation)
        return Succeeded(json.dumps(value, allow_nan=False))
    except Exception as error:  # noqa: BLE001  whatever a user's code raises is the result of the attempt
        return Failed(f"{type(error).__name__}: {error}")


def headers_of(invocation: Invocation) -> dict[str, str]:
    """What an HTTP target is told: everything it needs to deduplicate, and to refuse a stale attempt."""
    return {
        "Content-Type": "application/json",
        "User-Agent": "Tickwheel/1",
        "Idempotency-Key": invocation.idempotency_key,
        "Tickwheel-Job-Id": invocation.job_id,
        "Tickwheel-Tenant": invocation.tenant,
        "Tickwheel-Attempt": str(invocation.attempt),
        "Tickwheel-Fence": str(invocation.fence),
        "Tickwheel-Scheduled-At": format_instant(invocation.scheduled_at),
    }
