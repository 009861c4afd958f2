"""How long the client waits before it asks again."""

import email.utils
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tickwheel.client.timeouts import Deadline
from tickwheel.errors import TickwheelError

if TYPE_CHECKING:
    import httpx

Sleep = Callable[[float], None]
AsyncSleep = Callable[[float], Awaitable[None]]


async def _sleep(seconds: float) -> None:
    from anyio import sleep

    await sleep(seconds)


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Full jitter below an exponential ceiling (Brooker, "Exponential Backoff And Jitter", 2015).

    `attempts` counts the first one. A `Retry-After` of the scheduler is a floor. One that would make all waits of a request
    longer than `longest_wait_seconds` ends the attempts: the caller decides whether to wait that long. `sleep` is what a
    Client waits with, and `async_sleep` what an AsyncClient does.
    """

    attempts: int = 6
    base_seconds: float = 0.2
    cap_seconds: float = 10.0
    longest_wait_seconds: float = 60.0
    sleep: Sleep = time.sleep
    async_sleep: AsyncSleep = _sleep

    def seconds_after(self, attempt: int, *, asked: float, waited: float) -> float | None:
        """How long to wait after the given failed attempt (from 1); None when there is no further one.

        asked: by a Retry-After; waited: before the attempts so far.
        """
        if attempt >= self.attempts or waited + asked > self.longest_wait_seconds:
            return None
        ceiling = min(self.cap_seconds, self.base_seconds * 2 ** (attempt - 1))
        return asked + random.uniform(0, ceiling)  # noqa: S311  # spreads load, guards nothing


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A wait before a request is repeated. attempt: the one that failed, from 1; reason: what it failed with."""

    seconds: float
    attempt: int
    reason: TickwheelError


@dataclass(kw_only=True)
class Repeats:
    """The attempts of one request. `on_wait` is told of each wait before it begins."""

    backoff: Backoff
    on_wait: Callable[[Wait], None] | None
    attempt: int = 1
    waited: float = 0.0

    def seconds_to_wait(
        self, reason: TickwheelError, response: "httpx.Response | None" = None, deadline: Deadline | None = None
    ) -> float | None:
        """How long to sleep now, after a failed attempt; None when there is no further one."""
        asked = _retry_after_seconds(response)
        seconds = self.backoff.seconds_after(self.attempt, asked=asked, waited=self.waited)
        if seconds is None or (deadline is not None and not deadline.has(seconds)):
            return None
        if self.on_wait is not None:
            self.on_wait(Wait(seconds=seconds, attempt=self.attempt, reason=reason))
        self.waited += seconds
        self.attempt += 1
        return seconds


def _retry_after_seconds(response: "httpx.Response | None") -> float:
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
