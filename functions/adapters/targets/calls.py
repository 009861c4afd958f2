"""One call of a target on a thread that nobody else uses meanwhile.

Neither a Python function nor a peer that drips bytes can be limited from within.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context
from datetime import timedelta
from queue import SimpleQueue
from typing import ClassVar

from functions.domain.faults import fault_of
from functions.ports.targets import Failed, Outcome

TIMEOUT = "timeout"
_TELLING_SECONDS = 1.0
"""How long an answer that has begun may take to come to its end."""


BUSY = "target"
"""The name of a thread while it makes a call."""

_IDLE = 64
"""Threads that wait for a call, at most."""


class CutOffError(Exception):
    """The call is over: what its thread would do now is of no use any more."""


class Call:
    """A call that ends at its timeout, whatever its thread does. A call that overruns continues, and its result is ignored."""

    def __init__(self, timeout: timedelta) -> None:
        self.seconds = timeout.total_seconds()
        self._ends_at = time.monotonic() + self.seconds
        self._outcome: Callable[[], Outcome] | None = None
        self._heard = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_cut = False

    def seconds_left(self) -> float:
        """How long the call may still take; never less than a moment."""
        return max(0.001, self._ends_at - time.monotonic())

    def run(self, function: Callable[[], Outcome]) -> Outcome:
        """What the function returns, or the answer so far when its time is over."""

        def run() -> None:
            try:
                outcome = function()
            except BaseException as error:  # noqa: BLE001  whatever ends it, a handler's sys.exit too, ends the attempt
                # Its text may hold what was sent: a header that cannot be written, a payload that cannot be read.
                outcome = Failed(fault_of(error))
            self.record(lambda: outcome)

        has_ended = _Caller.idle().run(run)
        if self._heard.wait(self.seconds_left()):
            has_ended.wait(min(_TELLING_SECONDS, self.seconds_left()))
        try:
            # Before the cut: afterwards a body that was cut looks like one that has ended.
            return self._outcome() if self._outcome else self._overrun()
        finally:
            self._cut()

    def record(self, outcome: Callable[[], Outcome]) -> None:
        """The target has answered. outcome: returns the answer, as far as it has arrived."""
        self._outcome = outcome
        self._heard.set()

    def use(self, connection: socket.socket) -> None:
        """Name the socket that the call depends on, so that an overrun can be cut. Raises CutOffError after its end."""
        with self._lock:
            if self._is_cut:
                raise CutOffError
            self._socket = connection

    def gives_back(self) -> bool:
        """Whether its socket may serve other calls from now on: not when it has been cut."""
        with self._lock:
            self._socket = None
            return not self._is_cut

    def _overrun(self) -> Failed:
        return Failed(f"Timeout: no answer within {self.seconds:g} s", error_class=TIMEOUT)

    def _cut(self) -> None:
        with self._lock:
            self._is_cut = True
            if self._socket is not None:
                _shut(self._socket)


class _Caller:
    """A thread that makes one call after another: to begin one takes four times as long as to hand it a call.

    One whose call overruns is idle when that has ended, and not before. Each call has a context of its own.
    """

    _idle: ClassVar[deque[_Caller]] = deque()

    def __init__(self) -> None:
        self._calls = SimpleQueue[tuple[Callable[[], None], threading.Event]]()
        self._thread = threading.Thread(target=self._make_calls, name=BUSY, daemon=True)
        self._thread.start()

    @classmethod
    def idle(cls) -> _Caller:
        """One that has nothing to do."""
        try:
            return cls._idle.pop()
        except IndexError:
            return cls()

    def run(self, call: Callable[[], None]) -> threading.Event:
        """Begin a call that raises nothing. The event is set when it has ended."""
        has_ended = threading.Event()
        self._thread.name = BUSY
        self._calls.put((call, has_ended))
        return has_ended

    def _make_calls(self) -> None:
        while True:
            call, has_ended = self._calls.get()
            Context().run(call)
            if is_kept := len(self._idle) < _IDLE:
                self._thread.name = "target, idle"
                # Before anybody hears that it has ended: who calls next takes this thread.
                self._idle.append(self)
            has_ended.set()
            if not is_kept:
                return
            # Nothing of it lives on while the thread waits.
            del call, has_ended


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has been closed meanwhile
