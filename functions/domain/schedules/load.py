"""What the schedules of a tenant come to: how many there are, and how often they fire.

Fires are counted by the hour, in whole ones, as each schedule has them in an hour in which it fires most. So a daily schedule counts
one an hour, a sixtieth a minute, and one that fires each second 3,600.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from functions.domain.errors import FiresExceeded, SchedulesExceeded

MINUTES = 60

COUNTED_BY = 2
"""The way in which fires are counted: raised whenever a schedule may count for another figure than before."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one schedule counts for. version: of it, for which that was found. fires: an hour; 0 where none follows.

    counted_by: the way in which they were counted. The sweep counts again what was counted by another.
    """

    version: int
    fires: int
    counted_by: int = COUNTED_BY


@dataclass(frozen=True, slots=True)
class Load:
    """A sum over schedules, or what is added to one. fires: an hour."""

    schedules: int = 0
    fires: int = 0

    @property
    def fires_per_minute(self) -> float:
        """As a plan limits them."""
        return self.fires / MINUTES

    def exceeds(self, rate: float) -> bool:
        """Whether so many executions a second serve fewer than fire in an hour in which all fire most."""
        return self.fires > rate * MINUTES * MINUTES

    @staticmethod
    def of(share: Share | None) -> Load:
        """What a schedule adds; nothing for one that is not counted."""
        return Load(1, share.fires) if share is not None else Load()

    def __add__(self, other: Load) -> Load:
        return Load(self.schedules + other.schedules, self.fires + other.fires)

    def __sub__(self, other: Load) -> Load:
        return Load(self.schedules - other.schedules, self.fires - other.fires)


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """What the schedules of a tenant may come to. An infinite limit is none."""

    schedules: float = inf
    fires_per_minute: float = inf

    @property
    def fires(self) -> float:
        """An hour."""
        return self.fires_per_minute * MINUTES

    def check(self, tenant: str, load: Load, added: Load) -> None:
        """What a change adds to the sum that is there. Raises SchedulesExceeded, FiresExceeded.

        Only what grows is refused: whoever is beyond a limit already may change what does not add to it.
        """
        if added.schedules > 0 and load.schedules + added.schedules > self.schedules:
            raise SchedulesExceeded(tenant, count=load.schedules, limit=int(self.schedules))
        if added.fires > 0 and load.fires + added.fires > self.fires:
            raise FiresExceeded(
                tenant,
                per_minute=load.fires_per_minute,
                added=added.fires_per_minute,
                limit=int(self.fires_per_minute),
            )


NO_LIMITS = LoadLimits()
