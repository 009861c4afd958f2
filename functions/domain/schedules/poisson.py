"""Events that come independently of each other, and can be recomputed from any instant on.

A Poisson process has no memory, so time can be cut into cells, each with a generator of its own: what happened in one
says nothing about the next. Inside a cell the gaps are drawn by inversion, -ln(1 - u) / rate (Devroye, "Non-Uniform
Random Variate Generation", 1986, chapter X.1).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import lru_cache
from math import log1p

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_LAST_MS = 253_402_300_799_999
"""The end of the calendar, 9999-12-31T23:59:59.999Z."""

_FEWEST = 8
"""A cell is an hour, or so often twice as long that this many events are expected in it: empty cells cost time too."""


def events(uid: str, *, per_day: float, since_ms: int) -> Iterator[int]:
    """Milliseconds since the epoch of the events from `since_ms` (inclusive) on, in order, until the calendar ends.

    per_day: how many on average. Two events may fall on the same millisecond.
    """
    length = _HOUR_MS
    while per_day * length < _FEWEST * _DAY_MS:
        length *= 2
    cell = since_ms // length
    while cell * length <= _LAST_MS:
        yield from (ms for ms in _cell(uid, per_day, length, cell) if since_ms <= ms <= _LAST_MS)
        cell += 1


@lru_cache(maxsize=250)
def _cell(uid: str, per_day: float, length: int, cell: int) -> tuple[int, ...]:
    # A text seeds through SHA-512, whatever the version of Python; `random()` is the one method whose values are promised.
    draw = random.Random(f"{uid}#{cell}").random  # noqa: S311  not a secret
    found: list[int] = []
    passed = 0.0
    while True:
        passed -= log1p(-draw()) * _DAY_MS / per_day
        if passed >= length:
            return tuple(found)
        found.append(cell * length + int(passed))
