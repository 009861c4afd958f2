"""How a check ends that has not seen what it looked for."""

from __future__ import annotations


class Wrong(Exception):
    """seen, expected: for people."""

    def __init__(self, seen: object, *, expected: str) -> None:
        super().__init__(f"{seen}; expected: {expected}")
        self.seen = str(seen)
        self.expected = expected


class NotPossible(Exception):
    """The text says why it cannot be looked at here."""
