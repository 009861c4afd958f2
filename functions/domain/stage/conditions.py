"""How the stage stands, as the sweeper publishes it each minute: room, depth, lag, and what is not taken in for now."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from functions.domain.errors import Undecodable
from functions.domain.far_ring.cursor import Cursors
from functions.domain.instants import from_ms, from_seconds, to_ms
from functions.domain.jobs.job import Priority

FRESH = timedelta(minutes=5)
"""Older conditions say nothing: whoever publishes them has stopped, and must not stop everybody else."""

SHED_ALL_AT = 2
"""So many times the lag at which `low` is shed, all but `critical` is."""


class Depth(NamedTuple):
    """Messages of a ready queue. held: visible, delayed and in flight; waiting: visible, so that a worker could have them."""

    held: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """The conditions of one minute.

    budgets: jobs of each class that a tick of one shard may promote. depths: messages in each ready queue; waiting: those
    that wait for a worker. lags: how far the scanners are behind in each class (whole seconds). shed: classes whose
    submissions are refused. marked_since: since when every hour of a tenant in which a dead letter was written has a mark,
    without a break; None where that is not known. unseen_since: since when there are shards that nobody has ever scanned;
    None where there are none.
    """

    published_at: datetime
    budgets: Mapping[Priority, int] = field(default_factory=dict[Priority, int])
    depths: Mapping[Priority, int] = field(default_factory=dict[Priority, int])
    waiting: Mapping[Priority, int] = field(default_factory=dict[Priority, int])
    lags: Mapping[Priority, int] = field(default_factory=dict[Priority, int])
    shed: frozenset[Priority] = frozenset()
    marked_since: datetime | None = None
    unseen_since: datetime | None = None

    def is_fresh(self, now: datetime) -> bool:
        """Whether they may be relied on."""
        return now - self.published_at <= FRESH

    @property
    def full(self) -> frozenset[Priority]:
        """The classes whose ready queue has no room left."""
        return frozenset(priority for priority, budget in self.budgets.items() if budget <= 0)


def lags_of(shards: Mapping[int, Cursors], *, now: datetime) -> dict[Priority, int]:
    """By class: since when the oldest bucket that is not drained has been due, in whole seconds; 0 where none is."""
    lags = dict.fromkeys(Priority, timedelta(0))
    for cursors in shards.values():
        for priority, cursor in cursors.items():
            lags[priority] = max(lags[priority], now - from_seconds(cursor.oldest_bucket))
    return {priority: int(lag.total_seconds()) for priority, lag in lags.items()}


def worst_of(lags: Mapping[Priority, int]) -> int:
    """The largest lag of the classes that do not wait by design: `low` does."""
    return max((lag for priority, lag in lags.items() if priority is not Priority.LOW), default=0)


def shed_at(
    lags: Mapping[Priority, int], *, before: Mapping[Priority, int], elapsed: timedelta, limit: timedelta
) -> frozenset[Priority]:
    """The classes to shed: `low` once any lags more than the limit; all but `critical` once one above `low` lags twice it.

    before: the lags so long ago. Only what lasts counts: not what was not there then, and not what is caught up within
    the limit at the pace since then. A shard that was not scanned for hours may find all of its buckets empty.
    """
    lasting = {
        priority: min(lag, before.get(priority, 0))
        for priority, lag in lags.items()
        if lag * elapsed >= (before.get(priority, 0) - lag) * limit
    }
    bound = limit.total_seconds()
    if any(lag > SHED_ALL_AT * bound for priority, lag in lasting.items() if priority is not Priority.LOW):
        return frozenset(Priority) - {Priority.CRITICAL}
    return frozenset({Priority.LOW}) if any(lag > bound for lag in lasting.values()) else frozenset()


def encode_conditions(conditions: Conditions) -> str:
    """Conditions as their row holds them."""
    written: dict[str, Any] = {
        "at": to_ms(conditions.published_at),
        "budgets": _write(conditions.budgets),
        "depths": _write(conditions.depths),
        "waiting": _write(conditions.waiting),
        "lags": _write(conditions.lags),
        "shed": sorted(conditions.shed),
    }
    if conditions.marked_since is not None:
        written["marked"] = to_ms(conditions.marked_since)
    if conditions.unseen_since is not None:
        written["unseen"] = to_ms(conditions.unseen_since)
    return json.dumps(written, separators=(",", ":"))


def decode_conditions(text: str) -> Conditions:
    """The conditions that `encode_conditions` wrote. Raises Undecodable."""
    try:
        written: dict[str, Any] = json.loads(text)
        return Conditions(
            published_at=from_ms(written["at"]),
            budgets=_read(written["budgets"]),
            depths=_read(written["depths"]),
            # A release before did not write it.
            waiting=_read(written.get("waiting", {})),
            lags=_read(written["lags"]),
            shed=frozenset(map(Priority, written["shed"])),
            # A release that marks nothing leaves it out, and so ends what was begun before it.
            marked_since=from_ms(written["marked"]) if "marked" in written else None,
            unseen_since=from_ms(written["unseen"]) if "unseen" in written else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Undecodable(f"not conditions: {error!r}") from error


def _write(counts: Mapping[Priority, int]) -> dict[str, int]:
    return {str(priority.value): count for priority, count in counts.items()}


def _read(counts: Mapping[str, int]) -> dict[Priority, int]:
    return {Priority(int(name)): int(count) for name, count in counts.items()}
