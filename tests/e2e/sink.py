"""Where the jobs of these tests call: an HTTP server on the loopback that remembers what arrived, and when."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from testkit.polling import PATIENCE, eventually
from tickwheel.demo.loopback_server import KeptAliveRequest, LoopbackServer

ALWAYS = math.inf

_LONGEST_HOLD_SECONDS = 120.0


@dataclass(frozen=True)
class Arrival:
    """One request; names of headers in lower case."""

    at: datetime
    headers: Mapping[str, str]
    body: bytes
    status: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def attempt(self) -> int:
        return int(self.headers["tickwheel-attempt"])

    @property
    def fence(self) -> int:
        return int(self.headers["tickwheel-fence"])

    @property
    def scheduled_at(self) -> datetime:
        return datetime.fromisoformat(self.headers["tickwheel-scheduled-at"])

    def __repr__(self) -> str:
        return f"<{self.headers.get('tickwheel-attempt')} at {self.at:%H:%M:%S.%f}: {self.status}>"


class Target:
    """The address of one job, so that what arrives is that job's; its first `fails` answers are 503.

    A target that `holds` does not answer its first call before it is `released`. is_hastened: somebody lets its job run
    before its time. takes: how many seconds each answer takes. says: the body of an answer, by that of its request.
    """

    def __init__(
        self, url: str, *, fails: float, holds: bool, is_hastened: bool, takes: float, says: Callable[[bytes], bytes]
    ) -> None:
        self.url = url
        self.says = says
        self.takes = takes
        self.is_hastened = is_hastened
        self.released = threading.Event()
        if not holds:
            self.released.set()
        self._fails = fails
        self._arrivals: list[Arrival] = []
        self._lock = threading.Lock()

    @property
    def arrivals(self) -> list[Arrival]:
        with self._lock:
            return list(self._arrivals)

    def take(self, at: datetime, headers: Mapping[str, str], body: bytes) -> int:
        with self._lock:
            status = 503 if len(self._arrivals) < self._fails else 200
            self._arrivals.append(Arrival(at, headers, body, status))
            return status

    def wait(self, count: int = 1, *, within: float = PATIENCE) -> list[Arrival]:
        return eventually(
            lambda: self.arrivals, lambda seen: len(seen) >= count, within=within, what=f"{count} calls of {self.url}"
        )


class Sink(LoopbackServer):
    """The server with its targets."""

    def __init__(self) -> None:
        self.targets: dict[str, Target] = {}
        self._numbers = itertools.count(1)
        targets = self.targets

        class Request(KeptAliveRequest):
            def do_POST(self) -> None:
                at = datetime.now(UTC)
                body = self.read_body()
                headers = {name.lower(): value for name, value in self.headers.items()}
                target = targets.get(self.path)
                status = target.take(at, headers, body) if target else 404
                if target:
                    target.released.wait(_LONGEST_HOLD_SECONDS)
                    time.sleep(target.takes)
                with contextlib.suppress(ConnectionError):  # who called may have been killed
                    self.answer(status, target.says(body) if target else b"")

        super().__init__(Request, poll_seconds=0.05)

    def target(
        self,
        *,
        fails: float = 0,
        holds: bool = False,
        is_hastened: bool = False,
        takes: float = 0,
        says: Callable[[bytes], bytes] = lambda _: b"",
    ) -> Target:
        path = f"/{next(self._numbers)}"
        url = f"{self.url}{path}"
        target = Target(url, fails=fails, holds=holds, is_hastened=is_hastened, takes=takes, says=says)
        self.targets[path] = target
        return target
