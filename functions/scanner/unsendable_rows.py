"""Keep rows that cannot be sent at all as dead letters, so that they are passed and do not stop their shard."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from functions.domain.far_ring.timer_key import owner_of
from functions.domain.jobs.claims import may_claim
from functions.domain.jobs.job import Timer
from functions.domain.key_lengths import DEAD_LETTER_IDENTITY, cut
from functions.domain.targets.error_classes import NOT_PROMOTED
from functions.ports.clock import Clock
from functions.ports.dead_letters import DeadLetter, DeadLetters
from functions.ports.ledger import Ledger
from functions.ports.recorder import Journal
from functions.ports.targets import Failed
from functions.ports.timers import StoredTimer
from functions.services.jobs.ends import Ends


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsendableRows:
    """Keeps the dead letters. token: a fresh owner token."""

    clock: Clock
    ledger: Ledger
    dead_letters: DeadLetters
    ends: Ends
    journal: Journal
    token: Callable[[], str]

    def keep_unreadable(self, rows: Iterable[StoredTimer]) -> int:
        """Keep those that hold neither a timer nor an alarm; how many there are."""
        return sum(self.keep(row, row.fault) for row in rows if row.timer is None and row.alarm is None)

    def keep(self, row: StoredTimer, fault: str) -> bool:
        """Whether there is an end to count: there is none for a job that has ended before."""
        error = f"could not be promoted: {fault}"
        if row.timer is None:
            self._keep_undecodable(row, error)
            return True
        return self._keep_timer(row.timer, row, Failed(error, NOT_PROMOTED))

    def _keep_timer(self, timer: Timer, row: StoredTimer, failure: Failed) -> bool:
        """False where nothing has ended: its job had before, or a worker has had this attempt by another message."""
        job, seen, owner = timer.job, None, self.token()
        if job.is_ledgered:
            seen = self.ledger.get(job.key)
            if not may_claim(seen, attempt=timer.attempt, due_at=timer.due_at, owner=owner):
                # Perhaps by a tick that died before it was reported.
                self.ends.found(timer, seen)
                return False
        return self.ends.bury(timer, failure, row=seen, owner=owner, raw=row.raw)

    def _keep_undecodable(self, row: StoredTimer, error: str) -> None:
        """Whose job it was is not known, nor can its end be reported."""
        tenant, identity = owner_of(row.key)
        letter = DeadLetter(
            tenant=tenant,
            # It is the whole key of what Tickwheel did not write, and that of the dead letter needs room for more.
            identity=cut(identity, DEAD_LETTER_IDENTITY),
            dead_at=self.clock.now(),
            error=error,
            error_class=NOT_PROMOTED,
            raw=row.raw,
        )
        self.dead_letters.put(letter)
        self.journal.count("dead_lettered")
        self.journal.event("dead_lettered", job_id="", tenant=tenant, error=letter.error_class)
