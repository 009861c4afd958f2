"""How long the client waits before it asks again."""

import email.utils
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Full jitter below an exponential ceiling (Brooker, "Exponential Backoff And Jitter", 2015).

    `attempts` counts the first one. A `Retry-After` of the scheduler is a floor, and one above `longest_wait`
    ends the attempts: the caller decides whether to wait that long.
    """

    attempts: int = 6
    base_seconds: float = 0.2
    cap_seconds: float = 10.0
    longest_wait_seconds: float = 60.0
    sleep: Callable[[float], None] = time.sleep

    def wait(self, attempt: int, response: httpx.Response | None = None) -> bool:
        """Sleeps after the given failed attempt (from 1); False when there is no further one."""
        asked = _retry_after_seconds(response)
        if attempt >= self.attempts or asked > self.longest_wait_seconds:
            return False
        ceiling = min(self.cap_seconds, self.base_seconds * 2 ** (attempt - 1))
        self.sleep(asked + random.uniform(0, ceiling))  # noqa: S311  # spreads load, guards nothing
        return True


def _retry_after_seconds(response: httpx.Response | None) -> float:
    value = response.headers.get("Retry-After", "") if response is not None else ""
    if value.isdigit():
        return float(value)
    try:
        until = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return 0.0
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
