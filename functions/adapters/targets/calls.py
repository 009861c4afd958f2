"""One call of a target on a thread of its own.

Neither a Python function nor a peer that drips bytes can be limited from within.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta

from functions.domain.faults import fault_of
from functions.ports.targets import Failed, Outcome

TIMEOUT = "timeout"
_TELLING_SECONDS = 1.0
"""How long an answer that has begun may take to come to its end."""


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

        thread = threading.Thread(target=run, name="target", daemon=True)
        thread.start()
        if self._heard.wait(self.seconds_left()):
            thread.join(min(_TELLING_SECONDS, self.seconds_left()))
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


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has been closed meanwhile
