"""Forget dead letters that nobody needs any more, and the payloads that they have kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from functions.api.dead_letters.finder import DeadLetterFilter, DeadLetterFinder, DeadLetterPage
from functions.api.dead_letters.replay import MOST_DEAD_LETTERS, chunks_of
from functions.domain.audit import Action, ActionName
from functions.domain.dead_letters.dead_letter_id import DeadLetterId
from functions.domain.faults import fault_of
from functions.domain.jobs.claims import LedgerRow, awaits_replay
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import State
from functions.ports.clock import Clock
from functions.ports.dead_letters import DeadLetter, DeadLetters
from functions.ports.ledger import Cancelled, Ledger
from functions.ports.payloads import PayloadStore
from functions.ports.recorder import AuditTrail, Journal
from functions.services.jobs.ends import Ends

PURGED = "purged"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotPurged:
    """The dead letter stays: a store failed. fault: the kind of its error."""

    letter_id: DeadLetterId
    fault: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Purges:
    """What came of a part of the letters that are selected. found: that part, as far as it was worked through."""

    found: DeadLetterPage
    failed: Sequence[NotPurged]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purger:
    """Purges dead letters. Purging one again changes nothing. token: a fresh owner token.

    side_by_side: maps a function over items at the same time, answers in order. caller: who asks, for the audit line.
    """

    clock: Clock
    finder: DeadLetterFinder
    dead_letters: DeadLetters
    ledger: Ledger
    payloads: PayloadStore
    ends: Ends
    journal: Journal
    token: Callable[[], str]
    side_by_side: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
    audit: AuditTrail

    def purge(self, letter_id: DeadLetterId, *, caller: str) -> None:
        """Forget one dead letter, whether it is there or not."""
        letter = self.dead_letters.get(letter_id)
        if letter is not None:
            self._purge(letter)
        purged = [letter] if letter is not None else []
        self._note(purged, failed=[], tenant=letter_id.tenant, caller=caller, letter=str(letter_id))

    def purge_part(self, wanted: DeadLetterFilter, *, after: str, caller: str) -> Purges:
        """Forget a bounded part of the letters that are selected. Raises InvalidInput."""
        found = self.finder.find(wanted, begin=self.finder.begin(wanted, after=after), limit=MOST_DEAD_LETTERS)
        errors: list[NotPurged | None] = []
        for letters in chunks_of(found.letters, clock=self.clock):
            errors += self.side_by_side(self._purge_safely, letters)
        found = found.cut(len(errors))
        failed = [error for error in errors if error is not None]
        purged = [letter for letter, error in zip(found.letters, errors, strict=True) if error is None]
        self._note(purged, failed=failed, tenant=wanted.tenant, caller=caller, filter=wanted.describe())
        return Purges(found=found, failed=failed)

    def _purge_safely(self, letter: DeadLetter) -> NotPurged | None:
        """One dead letter's fault must not keep the others back."""
        try:
            self._purge(letter)
        except Exception as error:  # noqa: BLE001  reported for the one that it belongs to
            self.journal.event("purge_failed", dead_letter=str(letter.letter_id), error=fault_of(error))
            return NotPurged(letter_id=letter.letter_id, fault=type(error).__name__)
        return None

    def _purge(self, letter: DeadLetter) -> None:
        # The dead letter last: without it nobody would know of its payload, nor of a replay that was not finished.
        if letter.timer is not None:
            is_needed = self._goes_on(letter, letter.timer)
            pointer, occurrence = letter.timer.job.payload.pointer, letter.timer.job.occurrence
            # That of an occurrence is its schedule's.
            if pointer is not None and occurrence is None and not is_needed:
                self.payloads.delete(pointer)
        self.dead_letters.delete(letter.letter_id)

    def _goes_on(self, letter: DeadLetter, timer: Timer) -> bool:
        """Whether the job may have continued since, and so need its payload for its next attempt."""
        row = self.ledger.get(timer.job.key) if timer.job.is_ledgered else None
        if row is None:
            return letter.replayed_at is not None
        if self._stop_its_replay(letter, timer, row):
            return False
        return row.state is not State.CANCELLED and (row.state is not State.FAILED or row.attempt > timer.attempt)

    def _stop_its_replay(self, letter: DeadLetter, timer: Timer, row: LedgerRow) -> bool:
        """Whether its replay had not begun to run, and will not."""
        is_waiting = awaits_replay(row, failed_attempt=timer.attempt, job_id=letter.job_id)
        if letter.replayed_at is None or not is_waiting:
            return False
        job_id, now = job_id_of(timer.job), self.clock.now()
        answer = self.ledger.cancel(job_id, owner=self.token(), now=now, row=row)
        if not isinstance(answer, Cancelled):
            return False
        self.ends.cancelled(job_id, answer, reason="its dead letter was purged", timer=timer)
        return True

    def _note(
        self,
        purged: Sequence[DeadLetter],
        *,
        failed: Sequence[NotPurged],
        tenant: str,
        caller: str,
        letter: str = "",
        **asked: object,
    ) -> None:
        """One line for the audit trail. letter: the one that was asked for, where it was one."""
        self.journal.count("dead_letters_purged", len(purged))
        counts = {
            **asked,
            "matched": len(purged) + len(failed),
            "purged": len(purged),
            "failed": len(failed),
            "dead_letters": [str(letter.letter_id) for letter in purged],
        }
        self.journal.event("dead_letters_purged", caller=caller, tenant=tenant, **counts)
        self.audit.note(
            Action(action=ActionName.DEAD_LETTERS_PURGE, caller=caller, tenant=tenant, subject=letter, after=counts)
        )
