"""What failed for good, in memory."""

from __future__ import annotations

from datetime import datetime

from functions.ports import DeadLetter


class InMemoryDeadLetters:
    def __init__(self) -> None:
        self.letters: dict[tuple[str, datetime, str], DeadLetter] = {}

    def put(self, letter: DeadLetter) -> None:
        self.letters[letter.tenant, letter.dead_at, letter.identity] = letter
