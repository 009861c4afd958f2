"""All scenarios by name, in the order of the report."""

from __future__ import annotations

from collections.abc import Mapping

from simulation import collecting, fresh, scenarios, troubles, waiting
from simulation.scenarios import Make

_ALL: tuple[Make, ...] = (
    scenarios.steady,
    scenarios.front_door,
    scenarios.front_door_burst,
    scenarios.burst,
    scenarios.executions,
    scenarios.herd,
    scenarios.herd_spread,
    scenarios.herd_smear,
    waiting.creation,
    waiting.sweep,
    waiting.audit,
    troubles.noisy_neighbour,
    troubles.weights,
    troubles.whale,
    troubles.whale_below_cap,
    troubles.shared_flow,
    collecting.collect,
    collecting.collect_singly,
    troubles.dependency_down,
    troubles.retry_storm,
    troubles.scheduler_down,
    scenarios.slow_scanners,
    scenarios.resharding,
    fresh.fresh_account,
    fresh.steady_fresh,
    fresh.burst_fresh,
    fresh.executions_fresh,
    fresh.herd_fresh,
    fresh.herd_spread_fresh,
)

SCENARIOS: Mapping[str, Make] = {make(is_full=False).name: make for make in _ALL}
"""By name."""
