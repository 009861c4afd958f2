"""Many things, as many at a time as a request or a record takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import TypeVar

Part = TypeVar("Part")


def batches(
    parts: Iterable[Part], *, most: float = inf, size_of: Callable[[Part], int], most_size: float
) -> Iterator[list[Part]]:
    """All parts in their order, in as few batches as that allows. One that is too large by itself is a batch alone."""
    batch: list[Part] = []
    size = 0
    for part in parts:
        length = size_of(part)
        if batch and (len(batch) == most or size + length > most_size):
            yield batch
            batch, size = [], 0
        batch.append(part)
        size += length
    if batch:
        yield batch
