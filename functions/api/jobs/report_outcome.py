"""Reports of a target that answered 202: it is alive, it is done, or it has failed.

It speaks with the fence of its attempt. Once another attempt has taken over, that is refused: whatever it does from
then on is not settled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from functions.api.jobs.known_ids import KnownIds
from functions.domain.audit import Action, ActionName
from functions.domain.errors import AlreadySettled, JobBusy, JobNotFound, NotHeld, StaleFence, TickwheelError
from functions.domain.far_ring.timer_record import decode_timer
from functions.domain.jobs.claims import LEASE_MARGIN, LedgerRow
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.lifecycle import Event, State
from functions.ports.clock import Clock
from functions.ports.ledger import Applied, Ledger, Refused
from functions.ports.recorder import AuditTrail
from functions.ports.targets import Failed
from functions.services.jobs.result_keeper import ResultKeeper
from functions.services.jobs.settler import Claim, Settler

TARGET_FAILED = "target_failed"
"""The class of the error of an attempt whose target answered 202 and reported later that it failed."""

USUAL_LEASE = timedelta(seconds=60)
"""The lease of a heartbeat that names none, while its worker has not noted the timeout yet."""

_FAILED = (State.RETRYING, State.FAILED, State.CANCELLED)
"""What the failure of an attempt leads to."""

_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeReports:
    """Takes the words of targets. Repeating any of them is safe, and is answered as the first was.

    token: a fresh owner token: of two requests that say the same at once, one ends the attempt. caller: who says it,
    for the audit trail. known: which ids Tickwheel gave, which is known from the row that is read or written anyway.

    Raises NotHeld, StaleFence, AlreadySettled, JobNotFound, JobBusy.
    """

    clock: Clock
    ledger: Ledger
    known: KnownIds
    settler: Settler
    result_keeper: ResultKeeper
    token: Callable[[], str]
    audit: AuditTrail

    def heartbeat(self, job_id: JobId, *, fence: int, lease: timedelta | None = None) -> LedgerRow:
        """Prolong the lease; the row, which says until when, and whether a cancel was requested meanwhile."""
        self._check_kind(job_id)
        if lease is None:
            row = self.ledger.get(job_id.key)
            is_held = row is not None and bool(row.held)
            lease = _timer_of(job_id, row).job.timeout + LEASE_MARGIN if is_held and row else USUAL_LEASE
        now = self.clock.now()
        # As long by the stores' clocks, by which workers go, where this one is behind them.
        lease_until = now + lease + max(timedelta(0), -self.clock.offset())
        answer = self.ledger.extend(
            job_id, fence=fence, lease_until=lease_until, now=now, needs_id=not self.known.has_check(job_id)
        )
        if isinstance(answer, Refused):
            self._check(job_id, answer.row)
            raise _objection(job_id, answer.row, fence=fence)
        return answer

    def complete(self, job_id: JobId, *, fence: int, result: str, caller: str = "") -> None:
        """The target has taken the job. result: a JSON text."""
        self._check_kind(job_id)
        for _ in range(_TRIES):
            row = self.ledger.get(job_id.key)
            self._check(job_id, row)
            if row is not None and (row.state, row.fence) == (State.SUCCEEDED, fence):
                # Whoever said it first may have got no answer, and its line may be lost.
                self.settler.ends.report_again(job_id, row)
                self._note(ActionName.JOB_COMPLETE, job_id, row.state, row.state, fence=fence, caller=caller)
                return
            running = _running(job_id, row, fence=fence)
            # Only for whoever has the attempt: others could fill the bucket.
            kept = self.result_keeper.keep(job_id, result)
            if running.held:
                timer, claim = _timer_of(job_id, running), self._claim_of(running)
                is_ended = self.settler.end(timer, claim, Event.SUCCEED, result=kept)
            else:
                # Its worker has not noted yet that it is held; then it notes this end, as its own.
                answer = self.ledger.complete(
                    job_id, fence=fence, result=kept.text, whole=kept.pointer, now=self.clock.now()
                )
                is_ended = isinstance(answer, Applied)
            if is_ended:
                self._note(ActionName.JOB_COMPLETE, job_id, State.RUNNING, State.SUCCEEDED, fence=fence, caller=caller)
                return
        raise JobBusy(str(job_id))

    def fail(self, job_id: JobId, *, fence: int, failure: Failed, caller: str = "") -> State:
        """The target has failed: it is tried again as the policy says, or is a dead letter. The state that follows."""
        self._check_kind(job_id)
        for _ in range(_TRIES):
            row = self.ledger.get(job_id.key)
            self._check(job_id, row)
            if row is not None and row.state in _FAILED and row.fence == fence:
                self.settler.ends.report_again(job_id, row)
                self._note(ActionName.JOB_FAIL, job_id, row.state, row.state, fence=fence, caller=caller)
                return row.state
            running = _running(job_id, row, fence=fence)
            if not running.held:
                raise NotHeld(
                    str(job_id),
                    "is still with its worker, which is about to note that its target answered 202: ask again",
                    is_soon=True,
                )
            if self.settler.fail(_timer_of(job_id, running), self._claim_of(running), failure):
                row = self.ledger.get(job_id.key)
                # Its next attempt may have begun already.
                state = row.state if row is not None and row.fence == fence else State.RETRYING
                self._note(ActionName.JOB_FAIL, job_id, State.RUNNING, state, fence=fence, caller=caller)
                return state
        raise JobBusy(str(job_id))

    def _check(self, job_id: JobId, row: LedgerRow | None) -> None:
        """The id is that of its row. Raises JobNotFound. Without a row there is no attempt to speak for, whoever gave the id."""
        if row is not None:
            self.known.check_with(job_id, row)

    def _check_kind(self, job_id: JobId) -> None:
        if job_id.delivery is not Delivery.EXACTLY_ONCE:
            self.known.check(job_id)
            raise NotHeld(
                str(job_id),
                f"is {job_id.delivery}: only the target of an exactly_once job may report later how it ended",
            )

    def _claim_of(self, row: LedgerRow) -> Claim:
        """The attempt as this request ends it: with the worker's token it would take another's write for its own."""
        assert row.lease_until is not None  # a running row has one
        return Claim(owner=self.token(), fence=row.fence, lease_until=row.lease_until, tried=row.tried)

    def _note(self, action: ActionName, job_id: JobId, before: State, after: State, *, fence: int, caller: str) -> None:
        self.audit.note(
            Action(
                action=action,
                caller=caller,
                tenant=job_id.tenant,
                subject=str(job_id),
                before={"state": before.value, "fence": fence},
                after={"state": after.value},
            )
        )


def _running(job_id: JobId, row: LedgerRow | None, *, fence: int) -> LedgerRow:
    if row is None or row.state is not State.RUNNING or row.fence != fence:
        raise _objection(job_id, row, fence=fence)
    return row


def _objection(job_id: JobId, row: LedgerRow | None, *, fence: int) -> TickwheelError:
    """Why the attempt with this fence is not the one that is running."""
    if row is None:
        return JobNotFound(str(job_id))
    if row.is_settled:
        return AlreadySettled(str(job_id), state=row.state)
    return StaleFence(str(job_id), fence=fence, state=row.state)


def _timer_of(job_id: JobId, row: LedgerRow) -> Timer:
    return decode_timer(row.held, tenant=job_id.tenant)
