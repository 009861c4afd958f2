"""Keep what reached a dead-letter queue, so that no job ends without a trace.

Its worker died too often, or Tickwheel did not write it. Like the worker, write the dead letter first, then settle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.domain.claims import is_leased
from functions.domain.envelope import decode_envelope
from functions.domain.errors import Undecodable
from functions.domain.job import Timer
from functions.domain.job_id import job_id_of
from functions.domain.lifecycle import State
from functions.ports import Applied, Clock, DeadLetter, DeadLetters, Journal, Ledger

FOREIGN = "?"
"""The tenant of a body that Tickwheel did not write: no tenant can be called so."""

_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Burier:
    """Buries messages. token: a fresh owner token."""

    clock: Clock
    skew: timedelta
    ledger: Ledger
    dead_letters: DeadLetters
    journal: Journal
    token: Callable[[], str]

    def bury(self, body: str, *, message_id: str, sent_at: datetime, receive_count: int) -> bool:
        """Keep a message; False when it must come back, because a worker still has its job.

        sent_at: when the message was first sent. It names the dead letter, so that repeating this changes nothing.
        """
        try:
            timers = decode_envelope(body)
        except Undecodable as error:
            self._keep(
                DeadLetter(
                    tenant=FOREIGN, identity=message_id, dead_at=sent_at, error=f"undecodable: {error}", raw=body
                )
            )
            return True
        error = (
            f"its message was received {receive_count} times without an end: its workers died, or had no time for it"
        )
        kept = [self._bury(timer, error=error, dead_at=sent_at) for timer in timers]
        return all(kept)

    def _bury(self, timer: Timer, *, error: str, dead_at: datetime) -> bool:
        job = timer.job
        letter = DeadLetter(
            tenant=job.tenant,
            identity=job.identity,
            dead_at=dead_at,
            error=error,
            attempt=timer.attempt,
            job_id=str(job_id_of(job)),
            timer=timer,
        )
        if not job.is_ledgered:
            self._keep(letter)
            return True
        owner = self.token()
        for _ in range(_TRIES):
            now = self.clock.now()
            row = self.ledger.get(job.key)
            if row is not None and (row.is_settled or row.attempt > timer.attempt):
                self.journal.event("duplicate_dropped", job_id=letter.job_id, reason=f"the job is {row.state}")
                return True
            if row is not None and row.state is State.RETRYING and row.attempt >= timer.attempt:
                return True  # the next attempt is on its way
            if row is not None and is_leased(row, now=now, skew=self.skew):
                return False
            self._keep(letter)
            if isinstance(self.ledger.bury(job, row=row, owner=owner, now=now, error=error), Applied):
                return True
        return False

    def _keep(self, letter: DeadLetter) -> None:
        self.dead_letters.put(letter)
        self.journal.count("dead_lettered")
        self.journal.event("dead_lettered", job_id=letter.job_id, tenant=letter.tenant, error=letter.error)
