"""Bookings for jobs of a tenant whose rate is capped: how many it may have in each second of the next minutes.

An instant that moves on, as GCRA has it, is not enough here: shards, retries and new jobs reserve at any time for any
time, and whoever reserved for the end of the next bucket would keep everybody from its beginning. So every cell of a
second has a count of its own, and a job takes the first cell from its due time on that has room. Rates below one a
second have cells of several seconds.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, floor

from functions.domain.errors import Undecodable
from functions.domain.instants import from_seconds, to_ms, to_seconds

MOST_CELLS = 1_000
"""More than the minutes that are ahead ever have."""


@dataclass(frozen=True, slots=True)
class Timetable:
    """taken: bookings in each cell, from the cell `first` on. width: of a cell, in seconds. version: grows by each change.

    A cell is numbered by the seconds since the epoch at which it begins, divided by its width.
    """

    width: int
    first: int
    taken: tuple[int, ...] = ()
    version: int = 0


@dataclass(frozen=True, slots=True)
class Reservation:
    """bookings: the instants from which the first jobs may run, in order. timetable: with them in it."""

    bookings: tuple[datetime, ...]
    timetable: Timetable


def width_of(rate: float) -> int:
    """The width of the cells of a rate (jobs a second): a cell holds at least one job."""
    return max(1, ceil(1 / rate))


def reserve(
    due_ats: Sequence[datetime], *, seen: Timetable | None, now: datetime, rate: float, until: datetime
) -> Reservation:
    """Bookings for jobs in the order of their due times, as many as begin by `until`, in what is left of a timetable.

    In any time there are at most rate x (time + 2 cells) + 1 of them.
    """
    width = width_of(rate)
    first = to_seconds(now) // width
    taken = _upcoming(seen, width=width, first=first)
    bookings: list[datetime] = []
    number = first
    for due_at in due_ats:
        begins_at = max(due_at, now)
        # Sorted by due time: what was full for the one before is full for this one.
        number = max(number, to_seconds(begins_at) // width)
        while taken.get(number, 0) >= _room(number, rate * width):
            number += 1
        booking = max(begins_at, from_seconds(number * width))
        if booking > until:
            break
        taken[number] = taken.get(number, 0) + 1
        bookings.append(booking)
    counts = [taken.get(number, 0) for number in range(first, max(taken, default=first - 1) + 1)]
    # One that begins anew, after a while of none, is not mistaken for what somebody remembers of the one before.
    version = seen.version + 1 if seen is not None else to_ms(now)
    return Reservation(tuple(bookings), Timetable(width, first, tuple(counts), version))


def pack(counts: Iterable[int]) -> bytes:
    """Counts as an item holds them: mostly some bytes, so that a reservation costs one write unit."""
    return zlib.compress(array("I", counts).tobytes(), 1)


def unpack(packed: bytes) -> tuple[int, ...]:
    """The counts that `pack` wrote. Raises Undecodable."""
    counts = array("I")
    try:
        inflated = zlib.decompressobj().decompress(packed, MOST_CELLS * counts.itemsize)
        counts.frombytes(inflated)
    except (zlib.error, ValueError) as error:
        raise Undecodable(f"not the counts of a timetable: {error!r}") from error
    return tuple(counts)


def _upcoming(seen: Timetable | None, *, width: int, first: int) -> dict[int, int]:
    """What is taken from now on. Of a rate with other cells, each counts where it begins."""
    taken: dict[int, int] = {}
    if seen is not None:
        for number, count in enumerate(seen.taken, start=seen.first):
            cell = number * seen.width // width
            if count and cell >= first:
                taken[cell] = taken.get(cell, 0) + count
    return taken


def _room(number: int, jobs: float) -> int:
    """The room of a cell that has, on average, so many jobs: whole ones, which add up to the rate."""
    return floor((number + 1) * jobs) - floor(number * jobs)
