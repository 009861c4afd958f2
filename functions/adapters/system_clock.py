"""The one place that asks what time it is."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any

from functions.domain.errors import TooCostly

_HALF_A_SECOND = timedelta(milliseconds=500)
_SAMPLES = 8
_AGAIN = 0.1


class SystemClock:
    """This machine's clock, which compares itself with the `Date` of the stores' answers."""

    def __init__(self) -> None:
        self._offsets: deque[timedelta] = deque(maxlen=_SAMPLES)

    def now(self) -> datetime:
        """Aware UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never set back."""
        return time.monotonic()

    def sleep(self, duration: timedelta) -> None:
        """Wait; not at all for a negative duration."""
        time.sleep(max(0.0, duration.total_seconds()))

    def offset(self) -> timedelta:
        """How far this clock is ahead of the stores'; the best of the last answers, 0 before the first.

        The time that an answer was on its way only ever adds, so the smallest difference is the truest.
        """
        return min(self._offsets, default=timedelta(0))

    @contextmanager
    def limited(self, share: timedelta) -> Iterator[None]:
        """By a timer of the processor's time, where this is the main thread. Elsewhere it is reported afterwards.

        Where the code inside continues all the same, it is raised again. Between two instructions of Python alone: what the
        processor does in one of them, or what waits, is not interrupted.
        """
        began_at, is_over = time.thread_time(), False

        def stop(*_: object) -> None:
            if not is_over:
                raise TooCostly

        is_main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGVTALRM, stop) if is_main else None
        try:
            if is_main:
                signal.setitimer(signal.ITIMER_VIRTUAL, share.total_seconds(), _AGAIN)
            yield
            is_over = True
        finally:
            is_over = True
            if is_main:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
                signal.signal(signal.SIGVTALRM, before)
        if time.thread_time() - began_at > share.total_seconds():
            raise TooCostly

    def observe_response(self, http_response: Any, **_: Any) -> None:
        """Compare with the `Date` of an answer: a botocore `after-call` handler."""
        stamped = http_response.headers.get("Date")
        if stamped is None:
            return
        # The header is cut to whole seconds: on average the answer was made half a second later.
        self._offsets.append(self.now() - _read_date(stamped) - _HALF_A_SECOND)


@lru_cache(maxsize=4)
def _read_date(header: str) -> datetime:
    """The same for all answers of a second."""
    return parsedate_to_datetime(header).astimezone(UTC)
