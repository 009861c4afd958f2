"""The pulse of the stage on DynamoDB: a row a minute, in a few partitions so that thousands of processes can add to it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from functions.adapters.dynamodb.table import Item, Table
from functions.domain.instants import from_seconds, to_seconds
from functions.domain.jobs.job import Priority
from functions.domain.jobs.stored_codes import Codes
from functions.domain.stage.pulse import Figure, Pulse, sum_of

SPREAD = 4
"""Partitions, each of which takes 1,000 write units a second: 80,000 processes that write each twenty seconds."""

LIFE = timedelta(hours=1)
MOST_NAMED = 1_000
"""Tenants of a minute that are read: where more are named, none of them stands out."""

_FIGURES = {
    Figure.SUBMITTED: "s",
    Figure.REFUSED: "r",
    Figure.PROMOTED: "p",
    Figure.STARTED: "b",
    Figure.SUCCEEDED: "o",
    Figure.RETRIED: "a",
    Figure.FAILED: "f",
}
_BY_ATTRIBUTE = {attribute: figure for figure, attribute in _FIGURES.items()}
_CLASSES = Codes({Priority.CRITICAL: "c", Priority.HIGH: "h", Priority.NORMAL: "n", Priority.LOW: "l"})
"""The letters of classes: `n17` counts the attempts of `normal` in cell 17."""

_MOST_ADDED = 80
"""Attributes of one update: DynamoDB takes 300 operators and 4 KB of expression; emulators parse it by recursion."""


@dataclass
class DynamoDBPulseStore:
    """{t: `~pulse#{slot}`, i: `{minute:010d}`, s, r, p, b, o, a, f: counts, c0.. h0.. n0.. l0..: lags by class and cell, x: ttl (s)}.

    And {t: `~busy#{minute:010d}`, i: tenant, b, a, f, r: counts, x}. slot: which of the partitions this process adds to.
    """

    table: Table
    slot: int = 0

    def add(self, minute: datetime, pulse: Pulse) -> None:
        """One write unit for each KB of the minute's row, which has one unless its lags are in 150 cells, and as much for each further 80 of them that are added to. Repeating it counts again."""
        added = {_FIGURES[figure]: count for figure, count in pulse.counts.items()}
        for priority, cells in pulse.lags.items():
            added |= {f"{_CLASSES.code_of(priority)}{cell}": count for cell, count in cells.items()}
        self._add({"t": f"~pulse#{self.slot % SPREAD}", "i": _written(minute)}, minute, added)

    def name(self, minute: datetime, tenant: str, counts: Mapping[Figure, int]) -> None:
        """One write unit. Repeating it counts again."""
        key = {"t": f"~busy#{_written(minute)}", "i": tenant}
        self._add(key, minute, {_FIGURES[figure]: count for figure, count in counts.items()})

    def pulses(self, first: datetime, last: datetime) -> dict[datetime, Pulse]:
        """A Query for each partition: half a read unit for each 4 KB, some six minutes."""
        found: dict[datetime, list[Pulse]] = defaultdict(list)
        for slot in range(SPREAD):
            row = self.table.query(
                "t = :t AND i BETWEEN :first AND :last",
                t=f"~pulse#{slot}",
                first=_written(first),
                last=_written(last),
            )
            for item in row.items:
                found[from_seconds(int(item["i"]))].append(_pulse_of(item))
        return {minute: sum_of(pulses) for minute, pulses in sorted(found.items())}

    def named(self, minute: datetime) -> dict[str, Mapping[Figure, int]]:
        """One Query: half a read unit for each 4 KB, some 80 tenants."""
        found = self.table.query("t = :t", limit=MOST_NAMED, t=f"~busy#{_written(minute)}")
        return {item["i"]: _counts_of(item) for item in found.items}

    def _add(self, key: Item, minute: datetime, added: Mapping[str, int]) -> None:
        left = iter(added.items())
        while some := dict[str, Any](islice(left, _MOST_ADDED)):
            update = f"SET x = :x ADD {', '.join(f'{name} :{name}' for name in some)}"
            self.table.update(key, update=update, x=to_seconds(minute + LIFE), **some)


def _written(minute: datetime) -> str:
    return f"{to_seconds(minute):010d}"


def _counts_of(item: Item) -> dict[Figure, int]:
    return {figure: item[attribute] for attribute, figure in _BY_ATTRIBUTE.items() if attribute in item}


def _pulse_of(item: Item) -> Pulse:
    lags: dict[Priority, dict[int, int]] = defaultdict(dict)
    for name, value in item.items():
        if name[0] in _CLASSES and name[1:].isdigit():
            lags[_CLASSES.member_of(name[0])][int(name[1:])] = value
    return Pulse(counts=_counts_of(item), lags=dict(lags))
