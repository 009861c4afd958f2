"""Waiting for what another process does, with a failure that says what was seen instead."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 180.0
"""Seconds until a wait is a failure: enough on a machine of which others use the processors."""

_MOST_SHOWN = 12


class NotInTime(AssertionError):
    """seen: the last reading."""

    def __init__(self, message: str, *, seen: object) -> None:
        super().__init__(message)
        self.seen = seen


def eventually(
    read: Callable[[], T], holds: Callable[[T], object], *, within: float = PATIENCE, what: str, pause: float = 0.1
) -> T:
    """The first reading that holds. `within` (s) only bounds a failure: it is no promise about time. Raises NotInTime."""
    began = time.monotonic()
    seen: list[str] = []
    while True:
        reading = read()
        if holds(reading):
            return reading
        elapsed = time.monotonic() - began
        if not seen or not seen[-1].endswith(f" {reading!r}"):
            seen.append(f"  after {elapsed:5.1f} s: {reading!r}")
        if elapsed > within:
            shown = "\n".join([f"{what}: not within {within:g} s; seen was", *seen[-_MOST_SHOWN:]])
            raise NotInTime(shown, seen=reading)
        time.sleep(pause)
