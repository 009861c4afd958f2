"""Keep what reached a dead-letter queue, so that no job ends without a trace.

Its workers died of it, or Tickwheel did not write it. A job that is not proven to be the cause is placed again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.auditing import UNAUDITED, tell_again
from functions.domain.audit import Ending
from functions.domain.claims import WORKER_DIED, Again, Bury, Defer, Drop, LedgerRow, Rescue, Watch, judge_claim
from functions.domain.envelope import decode_envelope
from functions.domain.errors import NotPlaced, Undecodable
from functions.domain.job import Timer
from functions.domain.job_id import job_id_of
from functions.domain.lifecycle import Event, State
from functions.domain.pulse import Figure
from functions.domain.reviving import lost_attempt
from functions.domain.usage import Usage, letter_units
from functions.foreign import Keeper
from functions.occurrences import Occurrences
from functions.placing import Placer
from functions.ports import (
    Applied,
    Audit,
    Clock,
    DeadLetter,
    DeadLetters,
    Journal,
    Ledger,
    PendingCounter,
    PulseCounter,
    TenantPlans,
    UsageCounter,
)
from functions.tally import UNCOUNTED

_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Burier:
    """Buries messages. token: a fresh owner token."""

    clock: Clock
    skew: timedelta
    ledger: Ledger
    dead_letters: DeadLetters
    placer: Placer
    occurrences: Occurrences
    journal: Journal
    token: Callable[[], str]
    plans: TenantPlans
    usage: UsageCounter = UNCOUNTED
    pending: PendingCounter = UNCOUNTED
    pulse: PulseCounter = UNCOUNTED
    audit: Audit = UNAUDITED

    def bury(self, body: str, *, message_id: str, seen_at: datetime, receive_count: int) -> bool:
        """Keep a message; False when it must come back, because a worker still has its job.

        seen_at: when this queue first gave it out. It names the dead letter, so that repeating this changes nothing.
        """
        try:
            timers = decode_envelope(body)
        except Undecodable as error:
            keeper = Keeper(dead_letters=self.dead_letters, journal=self.journal)
            keeper.keep(body, message_id=message_id, seen_at=seen_at, error=error)
            return True
        error = f"its message was received {receive_count} times without an end: its workers died"
        kept = [self._bury(timer, error=error, dead_at=seen_at) for timer in timers]
        return all(kept)

    def _bury(self, timer: Timer, *, error: str, dead_at: datetime) -> bool:
        job = timer.job
        if self.plans.of(job.tenant).is_deleted:
            self.journal.event("job_forgotten", job_id=str(job_id_of(job)), tenant=job.tenant)
            self.journal.count("forgotten")
            return True
        letter = DeadLetter(
            tenant=job.tenant,
            identity=job.identity,
            dead_at=dead_at,
            error=error,
            error_class=WORKER_DIED,
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
            verdict = judge_claim(row, attempt=timer.attempt, due_at=timer.due_at, owner=owner, now=now, skew=self.skew)
            match verdict:
                case Drop(reason):
                    self._revive(timer, row, now=now)
                    self.journal.event("duplicate_dropped", job_id=letter.job_id, attempt=timer.attempt, reason=reason)
                    tell_again(self.audit, job_id_of(job), row, now=now, attempt=timer.attempt, target=job.target)
                    return True
                case Defer():
                    return False
                case Watch(until, is_watchdog):
                    self._requeue(timer.put_off(until=until, is_watchdog=is_watchdog))
                    return True
                case Again() | Rescue():
                    # Its queue was not served, or its workers died of other jobs: a fresh message goes on where it was,
                    # and its own deaths stay counted.
                    self._requeue(timer)
                    return True
                case Bury():
                    if job.occurrence is not None:
                        self.occurrences.before_failure(timer, job.occurrence)
                    letter = replace(letter, fence=row.fence if row is not None else 0)
                    if isinstance(self.ledger.bury(letter, job, row=row, owner=owner, now=now), Applied):
                        self._note(letter)
                        if job.occurrence is not None:
                            self.occurrences.after_settling(timer, job.occurrence, Event.BURY)
                        return True
        return False

    def _revive(self, timer: Timer, row: LedgerRow | None, *, now: datetime) -> None:
        """This message may be all that is left of its job."""
        lost = lost_attempt(timer, row, now=now)
        if lost is not None:
            self._place(lost)
            self.journal.event("revived", job_id=str(job_id_of(timer.job)), attempt=lost.attempt)

    def _requeue(self, timer: Timer) -> None:
        self._place(timer)
        self.journal.event("requeued", job_id=str(job_id_of(timer.job)), attempt=timer.attempt)
        self.journal.count("requeued")

    def _place(self, timer: Timer) -> None:
        placement = self.placer.place([timer])[0]
        if placement.ring is None:
            raise NotPlaced([placement.fault])

    def _keep(self, letter: DeadLetter) -> None:
        self.dead_letters.put(letter)
        self._note(letter)

    def _note(self, letter: DeadLetter) -> None:
        self.journal.count("dead_lettered")
        if letter.timer is not None:
            self.usage.add(letter.tenant, Usage(failed=1, units=letter_units(letter.timer)))
            self.pending.leave(letter.timer.job)
            self.pulse.count(Figure.FAILED, letter.tenant)
            self.audit.note(
                Ending(
                    job_id=job_id_of(letter.timer.job),
                    outcome=State.FAILED,
                    attempt=letter.attempt,
                    ended_at=letter.dead_at,
                    due_at=letter.timer.due_at,
                    target=letter.timer.job.target,
                    error_class=letter.error_class,
                )
            )
        self.journal.event("dead_lettered", job_id=letter.job_id, tenant=letter.tenant, error=letter.error_class)
