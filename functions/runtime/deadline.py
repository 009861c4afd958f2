"""End work that takes too long from inside: whoever is ended from outside answers nothing, and writes down nothing.

Lambda ends a function at its timeout, and an HTTP API waits 30 s
(https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html). Both then answer in their own words, which an HTTP
API cannot map: gateway responses are for REST APIs
(https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-gatewayResponse-definition.html).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ANSWER_WITHIN, FLUSH_WITHIN, COUNT_WITHIN = 16, 2.5, 1
"""Seconds of a request, and of what is written down behind it: audit lines, and then counts. With the 10 s that Lambda gives a cold start
(https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html) they are less than a gateway waits."""

_LEAST = 0.001
"""Seconds: a timer of none at all would be none."""


class OutOfTime(BaseException):
    """The time is up. No Exception: what catches those, to continue with the next one, must not catch this."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in the body when it takes longer, wherever it is by then: as if its process had died there.

    By SIGALRM, which only the main thread receives: in another one there is no limit. A timer that runs already continues.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    started = time.monotonic()
    before = signal.signal(signal.SIGALRM, _ring)
    left, interval = signal.setitimer(signal.ITIMER_REAL, max(seconds, _LEAST))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - started), _LEAST), interval)


def _ring(*_: Any) -> None:
    raise OutOfTime
