"""Which tenant's turn it is when more has come due than may go out: weighted deficit round robin.

Deficit round robin (Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit Round-Robin", 1995): in every round a
tenant that has something may send a quantum, in proportion to its weight, and what its turn leaves over is added to its
next. Here a job counts one, whatever its size, so that a turn leaves something over only where a budget cuts it off.

Tenants that have little stay in one stream, which is read in the order of its rows; a tenant that shows more than its
quantum there leaves it and gets a turn of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from functions.domain.jobs.job import Priority

MAX_OWN = 320
"""Tenants of a class and shard that have a turn of their own: so many that all of them fit into the row of the shard.

Beyond, a tenant stays in the stream, and holds it up.
"""

MAX_QUANTUM = 500
"""Jobs of a round for a tenant of weight 1: a page, so that turns cost no more queries than the stream."""

MIN_QUANTUM = 10
ROUNDS_A_TICK = 20
"""A budget is cut into at least so many quanta, so that many tenants have a turn in every tick."""

STREAM = ""
"""Whose turn it is when it is that of the tenants that have little: no tenant can be called so."""


def quantum_of(budget: int | None) -> int:
    """Jobs of a round for a tenant of weight 1, under a budget of a tick."""
    if budget is None:
        return MAX_QUANTUM
    return max(MIN_QUANTUM, min(MAX_QUANTUM, budget // ROUNDS_A_TICK))


def budgets_of(depths: Mapping[Priority, int], *, capacity: int, shards: int) -> dict[Priority, int]:
    """Jobs of each class that a tick of one shard may promote: the room in its queue, rounded up, in equal parts."""
    return {priority: -(-max(0, capacity - depth) // shards) for priority, depth in depths.items()}


def grant(quantum: int, weight: float) -> int:
    """What a round adds to a tenant's deficit: at least one job, so that none waits for ever."""
    return max(1, round(quantum * weight))


def order_from(turn: str, owners: Sequence[str]) -> list[str]:
    """The turns of a round: the stream, then the tenants by name; a round that was cut off continues where it was."""
    turns = [STREAM, *sorted(owners)]
    first = next((number for number, name in enumerate(turns) if name >= turn), 0)
    return turns[first:] + turns[:first]
