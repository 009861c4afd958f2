"""How long a request may take."""

import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from tickwheel.client.fields import duration_problems
from tickwheel.errors import InvalidRequest

if TYPE_CHECKING:
    import httpx


@dataclass(frozen=True, kw_only=True)
class Timeouts:
    """connect: until there is a connection, or a free one. read: while nothing is sent or received. total: of a request with its repeats.

    At the end of `total` no attempt or wait begins, and one that has begun is given what is left, so that a request takes
    that long, and at most one `read` more where an answer comes in pieces. None: as many attempts and waits as `Backoff` says.
    Raises InvalidRequest.
    """

    connect: timedelta = timedelta(seconds=30)
    read: timedelta = timedelta(seconds=30)
    total: timedelta | None = None

    def __post_init__(self) -> None:
        problems = [
            problem
            for name in ("connect", "read", "total")
            for problem in duration_problems(f"timeout.{name}", getattr(self, name))
        ]
        if problems:
            raise InvalidRequest(problems)

    @classmethod
    def of(cls, timeout: "timedelta | Timeouts") -> "Timeouts":
        """One duration is that of each part, and no total."""
        return timeout if isinstance(timeout, Timeouts) else cls(connect=timeout, read=timeout)


@dataclass(frozen=True)
class Deadline:
    """That of one request, which begins now."""

    timeouts: Timeouts
    began_at: float = field(default_factory=time.monotonic)

    def has(self, seconds: float) -> bool:
        """Whether so much is left, and more."""
        return seconds < self._left

    def of_attempt(self) -> "httpx.Timeout":
        """What an attempt may take that begins now."""
        import httpx

        connect, read = (
            min(part.total_seconds(), max(self._left, 0.001)) for part in (self.timeouts.connect, self.timeouts.read)
        )
        return httpx.Timeout(connect=connect, pool=connect, read=read, write=read)

    @property
    def _left(self) -> float:
        total = self.timeouts.total
        return float("inf") if total is None else total.total_seconds() - (time.monotonic() - self.began_at)
