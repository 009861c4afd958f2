"""How many of a tenant's jobs are called at the same time, and whether that is what its cap says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from math import inf

from testkit.world.fires import Run
from testkit.world.process import Process


@dataclass(frozen=True)
class _Call:
    run: Run
    ends_at: datetime

    @property
    def is_live(self) -> bool:
        """Whether it may still be at it: no call lasts longer than its timeout, whether its worker lives or not."""
        return not self.run.has_ended and self.run.clock.now() < self.ends_at


class CallPromises:
    """Asked at every call of a target."""

    def __init__(self, expect: Callable[[bool, str], None]) -> None:
        self._expect = expect
        self._caps: dict[str, tuple[float, int]] = {}
        self._calls: dict[str, list[_Call]] = {}

    def capped(self, tenant: str, limit: float, *, moment: int) -> None:
        """From now on so many. What has begun before does not count."""
        if self._caps.get(tenant, (inf, 0))[0] != limit:
            self._caps[tenant] = limit, moment
            self._calls[tenant] = []

    def lifted(self) -> None:
        """Nobody has a cap any more."""
        self._caps.clear()

    def begin(self, tenant: str, run: Run, process: Process, *, ends_at: datetime) -> None:
        """A target is called. ends_at: by the worker's clock, when it gives the call up."""
        limit, since = self._caps.get(tenant, (inf, 0))
        if limit == inf or process.began < since:
            return
        calls = self._calls[tenant]
        calls.append(_Call(run, ends_at))
        live = [call.run.job_id for call in calls if call.is_live]
        self._expect(len(live) <= limit, f"{len(live)} calls at the same time, of {limit:g}: {run.job_id} and {live}")

    def goes_on(self, run: Run) -> None:
        """Its target answered 202: it has no permit any more."""
        for calls in self._calls.values():
            calls[:] = [call for call in calls if call.run is not run]
