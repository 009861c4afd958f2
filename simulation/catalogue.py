"""All scenarios by name, in the order of the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from simulation import scenarios, troubles
from simulation.scenario import Scenario


class Make(Protocol):
    """Makes a scenario, at full or at reduced size."""

    def __call__(self, *, is_full: bool) -> Scenario:
        """The scenario."""
        ...


_ALL: tuple[Make, ...] = (
    scenarios.steady,
    scenarios.burst,
    scenarios.executions,
    scenarios.herd,
    scenarios.herd_spread,
    scenarios.herd_smear,
    troubles.noisy_neighbour,
    troubles.weights,
    troubles.whale,
    troubles.whale_below_cap,
    troubles.dependency_down,
    troubles.retry_storm,
    troubles.scheduler_down,
    scenarios.slow_scanners,
    scenarios.resharding,
)

SCENARIOS: Mapping[str, Make] = {make(is_full=False).name: make for make in _ALL}
"""By name."""
