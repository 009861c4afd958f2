"""How the stage does, as an operator asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from functions.api.stage.pulse import PulseReader, Pulses
from functions.domain.far_ring.cursor import BucketAuditPosition
from functions.domain.stage.conditions import Conditions
from functions.domain.stage.health import Health, health_of
from functions.domain.targets.breaker import Breaker
from functions.domain.tenants.plan import TenantPlan
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.shards import ShardStore
from functions.ports.targets import BreakerStore
from functions.ports.tenants import TenantPlans

MOST_TENANTS = 50
"""Tenants that are named one by one."""

MOST_BREAKERS = 50
"""Breakers that are listed one by one."""


class Plans(TenantPlans, Protocol):
    """The plans of tenants, and the tenants that are listed."""

    def unserved(self) -> Mapping[str, TenantPlan]:
        """The tenants by name that are paused, draining or being deleted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSnapshot:
    """How the stage of this name stands. breakers: the first; breaker_count: of all tenants, about. unserved: tenants by name."""

    stage: str
    health: Health
    conditions: Conditions | None
    audited: BucketAuditPosition | None
    everybody: TenantPlan
    unserved: Mapping[str, TenantPlan]
    breakers: Sequence[Breaker]
    breaker_count: int
    pulse: Pulses


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReader:
    """Reports to operators how the stage does.

    Half a read unit a shard, one and a half for conditions and audit, half a one for each 4 KB of the index of breakers, of
    which 1,000 are read at most, and half a one for each breaker that is listed; and what its pulse takes.
    """

    stage: str
    wheel: Wheel
    clock: Clock
    shards: ShardStore
    breakers: BreakerStore
    plans: Plans
    pulse: PulseReader

    def read(self) -> StageSnapshot:
        """How it stands now; what the sweeper knows, as of its last minute."""
        now = self.clock.now()
        conditions, audited = self.shards.conditions(), self.shards.audited()
        everybody = self.plans.of_everybody()
        breakers, count = self.breakers.everywhere(limit=MOST_BREAKERS)
        return StageSnapshot(
            stage=self.stage,
            health=health_of(
                self.shards.progress(range(self.wheel.scan_shards)),
                now=now,
                shards=self.wheel.scan_shards,
                conditions=conditions,
                audited=audited,
                everybody=everybody,
            ),
            conditions=conditions,
            audited=audited,
            everybody=everybody,
            unserved=self.plans.unserved(),
            breakers=breakers,
            breaker_count=count,
            pulse=self.pulse.read(),
        )
