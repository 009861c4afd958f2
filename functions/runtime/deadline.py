"""End work that takes too long from inside: whoever is ended from outside answers nothing, and writes down nothing.

Lambda ends a function at its timeout, and an HTTP API waits 30 s
(https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html). Both then answer in their own words, which an HTTP
API cannot map: gateway responses are for REST APIs
(https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-gatewayResponse-definition.html).
"""

from __future__ import annotations

import gc
import signal
import threading
import time
import weakref
from types import FrameType

ANSWER_WITHIN, FLUSH_WITHIN, COUNT_WITHIN = 16, 2.5, 1
"""Seconds of a request, and of what is written down behind it: audit lines, and then counts. With the 10 s that Lambda gives a cold start
(https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html) they are less than a gateway waits."""

_LEAST = 0.001
"""Seconds: a timer of none at all would be none."""

_AGAIN = 0.1
"""Seconds after which the timer rings again: Python drops what is raised in a finaliser or a callback of a weak reference
(https://docs.python.org/3/reference/datamodel.html#object.__del__), and the body would have no limit from then on."""


class OutOfTime(BaseException):
    """The time is up. No Exception: what catches those, to continue with the next one, must not catch this."""


class within:  # noqa: N801 - read as a word of the with statement, as contextlib's own
    """Raise OutOfTime in the body when it takes longer than so many seconds, wherever it is by then: as if its process had died there.

    By SIGALRM, which only the main thread receives: in another one there is no limit. A timer that runs already continues.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.limits = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        if self.limits:
            self.started = time.monotonic()
            self.before = signal.signal(signal.SIGALRM, _ring)
            self.left, self.interval = signal.setitimer(signal.ITIMER_REAL, max(self.seconds, _LEAST), _AGAIN)

    def __exit__(self, *_: object) -> None:
        if self.limits:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self.before)
            if self.left:
                left = self.left - (time.monotonic() - self.started)
                signal.setitimer(signal.ITIMER_REAL, max(left, _LEAST), self.interval)


_OF_WEAK_REFERENCES = (weakref.__file__, weakref.WeakSet.__init__.__code__.co_filename)
_DROPPED = ("__del__", "weakref_cb")
"""Functions by name: finalisers, and what `concurrent.futures.thread` wakes the threads of a forgotten pool with."""

_SETTING = (within.__enter__.__code__, within.__exit__.__code__)


def _ring(_: int, frame: FrameType | None) -> None:
    """End the body, unless what would be ended is the setting of a timer, or something whose errors Python drops. It rings again."""
    if frame is not None and frame.f_code in _SETTING:
        return
    collecting = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    while frame is not None:
        code = frame.f_code
        if code.co_name in _DROPPED or code in collecting or code.co_filename in _OF_WEAK_REFERENCES:
            return
        frame = frame.f_back
    raise OutOfTime
