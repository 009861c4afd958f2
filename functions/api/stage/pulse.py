"""What happens in the stage, as an operator asks for it: rates, lag, and the tenants that stand out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from functions.domain.instants import MINUTE
from functions.domain.jobs.job import Priority
from functions.domain.stage.pulse import LAG_PERIOD, PERIOD, Figure, Pulse, Rank, minute_of, sum_of, worst
from functions.ports.clock import Clock
from functions.ports.recorder import PulseStore

MOST_WORST = 5
"""Tenants that are listed for each rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A minute. seconds: how much of it is over."""

    at: datetime
    seconds: float
    pulse: Pulse


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulses:
    """beats: of the last minutes, oldest first; the last of them runs. recent: those over which the lag of classes is reported.

    tenants: those with the most in the last whole minute and the one that runs: at least so many.
    """

    beats: Sequence[Beat]
    recent: Pulse
    tenants: Mapping[Rank, Sequence[tuple[str, int]]]

    def lags(self, priority: Priority) -> Mapping[int, int]:
        """The recent attempts of a class, by the cells of a lag histogram."""
        return self.recent.lags.get(priority, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class PulseReader:
    """Half a read unit for each of four partitions and 4 KB of its last minutes, and for each 4 KB of named tenants."""

    clock: Clock
    pulses: PulseStore

    def read(self) -> Pulses:
        """The pulse, of what processes have written by now."""
        now = self.clock.now()
        running = minute_of(now)
        minutes = [running - age * MINUTE for age in range(PERIOD, -1, -1)]
        found = self.pulses.pulses(minutes[0], running)
        tenants: dict[str, Mapping[Figure, int]] = {}
        for minute in (running - MINUTE, running):
            for tenant, counts in self.pulses.named(minute).items():
                counted = tenants.get(tenant, {})
                tenants[tenant] = {figure: counted.get(figure, 0) + counts.get(figure, 0) for figure in Figure}
        return Pulses(
            beats=[
                Beat(
                    at=minute,
                    seconds=min(MINUTE, now - minute).total_seconds(),
                    pulse=found.get(minute, Pulse()),
                )
                for minute in minutes
            ],
            recent=sum_of(found.get(minute, Pulse()) for minute in minutes[-1 - LAG_PERIOD :]),
            tenants={rank: worst(tenants, rank, limit=MOST_WORST) for rank in Rank},
        )
