"""Keep what reached a dead-letter queue, so that no job ends without a trace.

Its workers died of it, or Tickwheel did not write it. A job that is not proven to be the cause is placed again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.domain.errors import Undecodable
from functions.domain.far_ring.flow_turn import is_turn
from functions.domain.far_ring.timer_record import decode_envelope
from functions.domain.far_ring.warming import BODY
from functions.domain.jobs.claims import (
    MAX_REQUEUES,
    Again,
    Bury,
    Defer,
    Drop,
    LedgerRow,
    Rescue,
    Watch,
    decide_claim,
    has_worn_out,
    lost_attempt,
)
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.targets.error_classes import WORKER_DIED
from functions.ports.clock import Clock
from functions.ports.ledger import Ledger
from functions.ports.recorder import Journal
from functions.ports.targets import Failed
from functions.ports.tenants import TenantPlans
from functions.services.far_ring.flow_turns import FlowTurns
from functions.services.far_ring.placer import Placer
from functions.services.jobs.ends import Ends
from functions.services.jobs.foreign_messages import ForeignMessages

_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadMessageHandler:
    """Keeps the messages of dead-letter queues. foreign: keeps what is no message of Tickwheel's. token: a fresh owner token."""

    clock: Clock
    skew: timedelta
    ledger: Ledger
    foreign: ForeignMessages
    placer: Placer
    ends: Ends
    journal: Journal
    token: Callable[[], str]
    plans: TenantPlans
    flow_turns: FlowTurns

    def bury(self, body: str, *, message_id: str, seen_at: datetime, receive_count: int) -> bool:
        """Keep a message; False when it must come back, because a worker still has its job.

        seen_at: when this queue first gave it out. It names the dead letter, so that repeating this changes nothing.
        """
        if body == BODY:
            return True  # it has no job
        try:
            timers = decode_envelope(body)
        except Undecodable as error:
            self.foreign.keep(body, message_id=message_id, seen_at=seen_at, error=error)
            return True
        error = f"its message was received {receive_count} times without an end: its workers died"
        for turn in filter(is_turn, timers):
            self.flow_turns.send_anew(turn)
        kept = [self._bury(timer, error=error, dead_at=seen_at) for timer in timers if not is_turn(timer)]
        return all(kept)

    def _bury(self, timer: Timer, *, error: str, dead_at: datetime) -> bool:
        job = timer.job
        if self.plans.of(job.tenant).is_deleted:
            self.ends.forgotten(timer)
            return True
        failure, owner = Failed(error, WORKER_DIED), self.token()
        if not job.is_ledgered:
            return self._bury_without_a_row(timer, failure, owner=owner, dead_at=dead_at)
        for _ in range(_TRIES):
            now = self.clock.now()
            row = self.ledger.get(job.key)
            match decide_claim(row, attempt=timer.attempt, due_at=timer.due_at, owner=owner, now=now, skew=self.skew):
                case Drop(reason):
                    self._revive(timer, row, now=now)
                    job_id = job_id_of(job)
                    self.journal.event("duplicate_dropped", job_id=str(job_id), attempt=timer.attempt, reason=reason)
                    self.ends.found(timer, row)
                    return True
                case Defer():
                    return False
                case Watch(until, is_watchdog):
                    self._requeue(timer.put_off(until=until, is_watchdog=is_watchdog))
                    return True
                case Again() | Rescue():
                    # Its queue was not served, or its workers died of other jobs: a fresh message continues where it was,
                    # and its own deaths stay counted.
                    self._requeue(timer)
                    return True
                case Bury():
                    if self.ends.bury(timer, failure, row=row, owner=owner, dead_at=dead_at):
                        return True
        return False

    def _bury_without_a_row(self, timer: Timer, failure: Failed, *, owner: str, dead_at: datetime) -> bool:
        # Few starts: hardly any of its receives came to a worker.
        is_worn_out = has_worn_out(self.ledger.starts_of(timer))
        if is_worn_out or self.ledger.note_requeue(timer, now=self.clock.now()) > MAX_REQUEUES:
            return self.ends.bury(timer, failure, row=None, owner=owner, dead_at=dead_at)
        self._requeue(timer)
        return True

    def _revive(self, timer: Timer, row: LedgerRow | None, *, now: datetime) -> None:
        """This message may be all that is left of its job."""
        lost = lost_attempt(timer, row, now=now)
        if lost is not None:
            self.placer.place_one(lost)
            self.journal.event("revived", job_id=str(job_id_of(timer.job)), attempt=lost.attempt)

    def _requeue(self, timer: Timer) -> None:
        self.placer.place_one(timer)
        self.journal.event("requeued", job_id=str(job_id_of(timer.job)), attempt=timer.attempt)
        self.journal.count("requeued")
