"""Forget dead letters that nobody needs any more, and the payloads that they have kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from functions.api.dead_letters import Found, LetterFilter, LetterFinder
from functions.api.replay import MOST_LETTERS, chunks_of
from functions.domain.job import Timer
from functions.domain.letter_id import LetterId
from functions.domain.lifecycle import State
from functions.ports import Clock, DeadLetter, DeadLetters, Journal, Ledger, PayloadStore


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPurged:
    """The letter stays: a store failed. fault: the kind of its error."""

    letter_id: LetterId
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Purges:
    """What came of a part of the letters that are meant. found: that part, as far as it was worked through."""

    found: Found
    failed: Sequence[NotPurged]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purger:
    """Purges dead letters. Purging one again changes nothing.

    side_by_side: maps a function over items at the same time, answers in order. caller: who asks, for the audit line.
    """

    clock: Clock
    finder: LetterFinder
    dead_letters: DeadLetters
    ledger: Ledger
    payloads: PayloadStore
    journal: Journal
    side_by_side: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

    def purge(self, letter_id: LetterId, *, caller: str) -> None:
        """Forget one letter, whether it is there or not."""
        letter = self.dead_letters.get(letter_id)
        if letter is not None:
            self._purge(letter)
        purged = [letter] if letter is not None else []
        self._note(purged, failed=[], tenant=letter_id.tenant, caller=caller)

    def purge_part(self, wanted: LetterFilter, *, after: str, caller: str) -> Purges:
        """Forget a bounded part of the letters that are meant. Raises InvalidInput."""
        found = self.finder.find(wanted, begin=self.finder.begin(wanted, after=after), limit=MOST_LETTERS)
        errors: list[NotPurged | None] = []
        for letters in chunks_of(found.letters, clock=self.clock):
            errors += self.side_by_side(self._purge_safely, letters)
        found = found.cut(len(errors))
        failed = [error for error in errors if error is not None]
        purged = [letter for letter, error in zip(found.letters, errors, strict=True) if error is None]
        self._note(purged, failed=failed, tenant=wanted.tenant, caller=caller, filter=wanted.describe())
        return Purges(found=found, failed=failed)

    def _purge_safely(self, letter: DeadLetter) -> NotPurged | None:
        """One letter's fault must not keep the others back."""
        try:
            self._purge(letter)
        except Exception as error:  # noqa: BLE001  told to the one that it belongs to
            self.journal.event("purge_failed", letter=str(letter.letter_id), error=f"{type(error).__name__}: {error}")
            return NotPurged(letter_id=letter.letter_id, fault=type(error).__name__)
        return None

    def _purge(self, letter: DeadLetter) -> None:
        # The payload first: without its letter nobody would know of it.
        pointer = self._last_needed(letter.timer) if letter.timer is not None else None
        if pointer is not None:
            self.payloads.delete(pointer)
        self.dead_letters.delete(letter.letter_id)

    def _last_needed(self, timer: Timer) -> str | None:
        """The payload that nobody needs but this letter.

        That of an occurrence is its schedule's; that of a job which has gone on is needed by its next attempt.
        """
        job = timer.job
        if job.payload.pointer is None or job.occurrence is not None:
            return None
        row = self.ledger.get(job.key) if job.is_ledgered else None
        has_ended_here = row is None or (row.state is State.FAILED and row.attempt <= timer.attempt)
        return job.payload.pointer if has_ended_here else None

    def _note(
        self, purged: Sequence[DeadLetter], *, failed: Sequence[NotPurged], tenant: str, caller: str, **asked: object
    ) -> None:
        """One line for the audit."""
        self.journal.count("dead_letters_purged", len(purged))
        self.journal.event(
            "dead_letters_purged",
            caller=caller,
            tenant=tenant,
            **asked,
            matched=len(purged) + len(failed),
            purged=len(purged),
            failed=len(failed),
            letters=[str(letter.letter_id) for letter in purged],
        )
