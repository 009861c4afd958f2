"""How executions end: one function for each end, which reports it to everything that needs to know.

| reported to | what is reported |
|---|---|
| log | `job_settled`; `fire_skipped` of a skip; `dead_lettered` beside it where a dead letter is kept |
| metrics | one more of the outcome; of the dead letters |
| usage | one more that has succeeded or failed, and the write units of a dead letter |
| pending | a job less waits, once for each time that somebody asked for it |
| pulse | one more of what it has a figure for |
| audit | a line, under a name that is the same whenever it is written |
| schedule | that a run of it has come to its end, and how |
| callbacks | how it has ended, by a job of its own for each |

The process that has written an end calls its function at once, and no other does. Where it dies in between, the audit
trail gets its line from the next process that finds the row, by `report_again`, and the schedule learns of it by the alarm
of its chain; callbacks are put by whoever finds the row by its message; counts in the memory of a process die with it. A repetition that changes no row is reported to the audit
trail alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from functions.domain.audit import Ending, ending_of
from functions.domain.far_ring.write_units import dead_letter_units
from functions.domain.jobs.callback_jobs import Outcome
from functions.domain.jobs.claims import LedgerRow, is_unchanged
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import JobId, job_id_of
from functions.domain.jobs.results import NO_RESULT, KeptResult
from functions.domain.lifecycle import State
from functions.domain.schedules.state import SkipReason
from functions.domain.stage.pulse import Figure
from functions.domain.tenants.usage import Usage
from functions.ports.clock import Clock
from functions.ports.dead_letters import DeadLetter, DeadLetters
from functions.ports.ledger import Applied, Cancelled, Ledger, Refused
from functions.ports.recorder import AuditTrail, Journal, PendingCounter, PulseCounter, UsageCounter
from functions.ports.targets import Failed
from functions.services.jobs.callback_caller import CallbackCaller
from functions.services.schedules.run_ends import RunEnds
from functions.services.schedules.stops import Stops

RETRIED = "retried"
"""What an attempt is counted as that another one follows: it has ended, its execution has not."""

_COUNTED = frozenset({Figure.SUCCEEDED, Figure.RETRIED, Figure.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Reports how executions have ended, and writes failures for good. runs: what an end means for a schedule."""

    clock: Clock
    ledger: Ledger
    dead_letters: DeadLetters
    runs: RunEnds
    callbacks: CallbackCaller
    stops: Stops
    journal: Journal
    usage: UsageCounter
    pending: PendingCounter
    pulse: PulseCounter
    audit: AuditTrail

    def succeeded(self, timer: Timer, *, began_at: datetime | None, result: KeptResult = NO_RESULT) -> None:
        """Its target has taken it. began_at: when the attempt began, where that is known."""
        self._ended(timer, State.SUCCEEDED, began_at=began_at, result=result)

    def expired(self, timer: Timer) -> None:
        """It came too late to be run."""
        self._ended(timer, State.EXPIRED)

    def withdrawn(self, timer: Timer, failure: Failed | None, *, began_at: datetime | None) -> None:
        """A cancel was requested while an attempt ran, and no other follows. failure: of that attempt."""
        self._ended(timer, State.CANCELLED, failure=failure, began_at=began_at)

    def cancelled(
        self,
        job_id: JobId,
        answer: Cancelled,
        *,
        reason: str = "",
        spares_schedule: bool = False,
        timer: Timer | None = None,
    ) -> None:
        """Its tombstone was written, or what stands for one. answer: what that found.

        spares_schedule: its schedule asks, and needs no report. timer: of the job, where no message of it is on its way
        that would find the tombstone and put its callbacks.
        """
        self.stops.cancelled(job_id, answer, reason=reason)
        if not (spares_schedule or answer.is_repeated):
            self.runs.cancelled(job_id)
        if timer is not None:
            self.callbacks.ended(timer, Outcome(state=State.CANCELLED, attempts=0, ended_at=self.clock.now()))

    def skipped(self, timer: Timer, reason: SkipReason | str) -> None:
        """A fire does not run. reason: a text where its schedule, which may be another by now, is not to count it."""
        self.stops.skipped(timer, str(reason))
        self.journal.count(State.SKIPPED.value)
        if isinstance(reason, SkipReason):
            self.runs.skipped(timer, reason)

    def fail(
        self, timer: Timer, failure: Failed, *, fence: int, owner: str, began_at: datetime | None, tried: str = ""
    ) -> Applied | Refused:
        """Its last attempt, which runs under this fence, has failed for good: it is kept as a dead letter.

        tried: its failed attempts by then, as its row is to keep them.

        Refused when somebody else has the attempt by now: then nothing has ended. An at_most_once job has ended with its
        start; whoever chose that gets no second start, and so no dead letter to replay.
        """
        job = timer.job
        if self._pauses(timer) and job.delivery is Delivery.EXACTLY_ONCE:
            row = self.ledger.get(job.key)
            if row is None or (row.state, row.fence) != (State.RUNNING, fence):
                return Refused(row)
        self.runs.failing(timer)
        if job.delivery is Delivery.AT_MOST_ONCE:
            self._ended(timer, State.FAILED, failure=failure, began_at=began_at)
            return Applied()
        letter = _letter(timer, failure, dead_at=self.clock.now(), fence=fence)
        if job.delivery is Delivery.AT_LEAST_ONCE:
            self.dead_letters.put(letter)
        else:
            answer = self.ledger.fail(letter, job, fence=fence, owner=owner, now=self.clock.now(), tried=tried)
            if isinstance(answer, Refused):
                return answer
        self._kept(timer, failure, began_at=began_at)
        return Applied()

    def bury(
        self,
        timer: Timer,
        failure: Failed,
        *,
        row: LedgerRow | None,
        owner: str,
        dead_at: datetime | None = None,
        raw: str = "",
        tried: str = "",
    ) -> bool:
        """No attempt of it can be made, or its workers have died of it: it is kept as a dead letter.

        False when its row is not the one that was seen any more: then nothing has ended. dead_at: now, where it is not
        said. raw: the row or the message in which it was found. tried: its failed attempts by then, as its row is to keep them.
        """
        if row is not None and row.is_settled:
            return False
        if self._pauses(timer) and not is_unchanged(self.ledger.get(timer.job.key), row):
            return False
        self.runs.failing(timer)
        now = self.clock.now()
        letter = _letter(timer, failure, dead_at=dead_at or now, fence=row.fence if row is not None else 0, raw=raw)
        if not timer.job.is_ledgered:
            self.dead_letters.put(letter)
        elif isinstance(self.ledger.bury(letter, timer.job, row=row, owner=owner, now=now, tried=tried), Refused):
            return False
        self._kept(timer, failure, ended_at=letter.dead_at)
        return True

    def retried(self, timer: Timer, failure: Failed | None) -> None:
        """An attempt has ended, and another one follows."""
        self._report_attempt(timer, RETRIED, failure)

    def forgotten(self, timer: Timer) -> None:
        """Its tenant is deleted: nothing is left to report it to."""
        self.journal.event("job_forgotten", job_id=str(job_id_of(timer.job)), tenant=timer.job.tenant)
        self.journal.count("forgotten")

    def report_again(self, job_id: JobId, row: LedgerRow | None, *, attempt: int = 0, target: str = "") -> None:
        """Somebody found the row of an execution that has ended: whoever ended it may have died before its line was sent.

        attempt, target: of the message that led to it. Nothing happens for one that has not ended.
        """
        again = ending_of(job_id, row, now=self.clock.now(), attempt=attempt, target=target) if row else None
        if again is not None:
            self.audit.note(again)

    def found(self, timer: Timer, row: LedgerRow | None) -> None:
        """A message found the row of its execution, and has nothing left to do. Before it is acknowledged. Raises NotPlaced."""
        self.report_again(job_id_of(timer.job), row, attempt=timer.attempt, target=timer.job.target)
        self.callbacks.found(timer, row)

    def _pauses(self, timer: Timer) -> bool:
        """Whether its row is looked at first: no schedule is to be paused for a run that has ended, or that another worker has."""
        occurrence = timer.job.occurrence
        return timer.job.is_ledgered and occurrence is not None and occurrence.pause_after > 0

    def _kept(
        self, timer: Timer, failure: Failed, *, began_at: datetime | None = None, ended_at: datetime | None = None
    ) -> None:
        job = timer.job
        self.journal.count("dead_lettered")
        self.journal.event("dead_lettered", job_id=str(job_id_of(job)), tenant=job.tenant, error=failure.error_class)
        self.usage.add(job.tenant, Usage(units=dead_letter_units(timer)))
        self._ended(timer, State.FAILED, failure=failure, began_at=began_at, ended_at=ended_at)

    def _ended(
        self,
        timer: Timer,
        outcome: State,
        *,
        failure: Failed | None = None,
        began_at: datetime | None = None,
        ended_at: datetime | None = None,
        result: KeptResult = NO_RESULT,
    ) -> None:
        job, job_id = timer.job, job_id_of(timer.job)
        self._report_attempt(timer, outcome.value, failure)
        if outcome in (State.SUCCEEDED, State.FAILED):
            self.usage.add(job.tenant, Usage(**{outcome: 1}))
        self.pending.leave(job_id, asked_for=timer.asked_for)
        self.audit.note(
            Ending(
                job_id=job_id,
                outcome=outcome,
                attempt=timer.attempt,
                ended_at=ended_at or self.clock.now(),
                due_at=timer.due_at,
                began_at=began_at,
                target=job.target,
                error_class=failure.error_class if failure else "",
            )
        )
        error_class = failure.error_class if failure else ""
        self.runs.ended(timer, outcome, ended_at=ended_at or self.clock.now(), error_class=error_class)
        if job.callbacks:
            self.callbacks.ended(
                timer,
                Outcome(
                    state=outcome,
                    attempts=timer.attempt,
                    ended_at=ended_at or self.clock.now(),
                    spent=timer.spent,
                    result=result,
                    error=failure.error if failure else "",
                ),
            )

    def _report_attempt(self, timer: Timer, outcome: str, failure: Failed | None) -> None:
        self.journal.event(
            "job_settled",
            job_id=str(job_id_of(timer.job)),
            tenant=timer.job.tenant,
            outcome=outcome,
            attempt=timer.attempt,
            # Only its class: what a target or a handler says may hold what its payload does.
            **({"error": failure.error_class} if failure else {}),
        )
        self.journal.count(outcome)
        if outcome in _COUNTED:
            self.pulse.count(Figure(outcome), timer.job.tenant)


def _letter(timer: Timer, failure: Failed, *, dead_at: datetime, fence: int, raw: str = "") -> DeadLetter:
    job = timer.job
    return DeadLetter(
        tenant=job.tenant,
        identity=job.identity,
        dead_at=dead_at,
        error=failure.error,
        error_class=failure.error_class,
        attempt=timer.attempt,
        job_id=str(job_id_of(job)),
        timer=timer,
        raw=raw,
        fence=fence,
    )
