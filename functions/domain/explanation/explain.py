"""Why a job has not run yet, or what became of it: one typed reason, in words for people."""

from __future__ import annotations

from collections.abc import Callable

from functions.domain.explanation.facts import Explanation, Facts, Reason
from functions.domain.explanation.waiting import explain_cancel_request, explain_retry, explain_waiting
from functions.domain.explanation.wording import error_text, instant_text
from functions.domain.jobs.claims import LedgerRow, after_lease
from functions.domain.lifecycle import State


def explain(facts: Facts) -> Explanation:
    """Why a job has not run yet, or what became of it."""
    state = facts.row.state if facts.row else State.ABSENT
    return _EXPLAIN[state](facts, facts.row or LedgerRow(state=state))


def _explain_running(facts: Facts, row: LedgerRow) -> Explanation:
    until = row.lease_until
    if row.cancel_requested:
        return explain_cancel_request(facts, row)
    if row.held:
        return Explanation(
            reason=Reason.HELD,
            at=until,
            detail=(
                f"The target of attempt {row.attempt} answered 202: it last reported at {instant_text(row.updated_at)}, "
                f"and has until {instant_text(until)}."
            ),
            remedy="The target: it completes or fails the job with its fence, or its lease ends.",
        )
    if until is not None and facts.now >= after_lease(until, skew=facts.wheel.skew):
        return Explanation(
            reason=Reason.LEASED,
            at=until,
            detail=f"The worker of attempt {row.attempt} has died: its lease was over at {instant_text(until)}.",
            remedy="Another worker, which takes the attempt over as soon as its message comes back.",
        )
    return Explanation(
        reason=Reason.LEASED,
        at=until,
        detail=f"A worker has attempt {row.attempt}, until {instant_text(until)} at the latest.",
        remedy="The answer of its target; or the end of the lease, if the worker dies.",
    )


def _explain_death(_: Facts, row: LedgerRow) -> Explanation:
    return Explanation(
        reason=Reason.DEAD,
        at=row.updated_at,
        detail=f"It failed for good with attempt {row.attempt}: {error_text(row)}.",
        remedy="Mend what failed, and replay its dead letter.",
    )


def _explain_skip(_: Facts, row: LedgerRow) -> Explanation:
    return Explanation(
        reason=Reason.SKIPPED,
        at=row.updated_at,
        detail=f"This fire did not become a run: {error_text(row)}.",
        remedy="Trigger the schedule, to run it once now.",
    )


def _explain_move(_: Facts, row: LedgerRow) -> Explanation:
    return Explanation(
        reason=Reason.MOVED,
        at=row.updated_at,
        detail=f"It was rescheduled or edited, and continues as job {row.moved_to}.",
        remedy="Ask for that job.",
    )


def _ended(reason: Reason, detail: str, remedy: str) -> Callable[[Facts, LedgerRow], Explanation]:
    def explain_end(_: Facts, row: LedgerRow) -> Explanation:
        text = detail.format(attempt=row.attempt)
        return Explanation(reason=reason, at=row.updated_at, detail=text, remedy=remedy)

    return explain_end


_OVER = "Nothing: submit a new job to run it again."

_EXPLAIN: dict[State, Callable[[Facts, LedgerRow], Explanation]] = {
    State.ABSENT: explain_waiting,
    State.SCHEDULED: explain_waiting,
    State.RUNNING: _explain_running,
    State.RETRYING: explain_retry,
    State.SUCCEEDED: _ended(Reason.SUCCEEDED, "It succeeded with attempt {attempt}.", _OVER),
    State.FAILED: _explain_death,
    State.CANCELLED: _ended(Reason.CANCELLED, "It was cancelled.", _OVER),
    State.EXPIRED: _ended(Reason.EXPIRED, "It came too late to be run: its expires_after was over.", _OVER),
    State.ATTEMPTED: _ended(
        Reason.ATTEMPTED, "It was started once; how that ended is not kept of an at_most_once job.", _OVER
    ),
    State.SKIPPED: _explain_skip,
    State.MOVED: _explain_move,
}
