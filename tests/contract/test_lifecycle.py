"""Every event in every state, through every ledger: exactly the transitions of the table happen."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import TERMINAL, TRANSITIONS, Event, State, sources, target
from functions.ports.dead_letters import DeadLetter
from functions.ports.ledger import Applied, Claimed, Ledger, Refused
from testkit.builders import NOON, a_timer
from tests.contract.conftest import LedgerSubject

Step = Callable[[Ledger, Timer], Applied | Claimed | Refused]

LEASE_END = NOON + timedelta(seconds=15)
LONG_AFTER = NOON + timedelta(hours=1)

REPEATABLE = {(Event.CANCEL, State.CANCELLED)}
"""A cancel of a cancelled job is answered as the first was, whoever asks."""

STAYS = {(Event.PARK, State.RETRYING), (Event.PARK, State.RUNNING)}
"""A retry that is parked stays one; and what a watchdog looks after goes on while the watchdog is parked."""

WITH_A_LETTER = (Event.FAIL, Event.BURY)
"""Events that keep a dead letter, if and only if they happen."""


def test_every_event_has_a_way_into_the_ledger():
    assert set(PERFORM) == set(TRANSITIONS) == set(Event)


def test_every_state_has_a_way_to_come_about():
    assert set(ARRANGE) == set(State)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_an_event_happens_in_the_states_of_its_row_of_the_table_and_in_no_other(
    ledger_subject: LedgerSubject, event: Event, state: State
):
    ledger = ledger_subject.ledger
    timer = a_timer(attempt=2)
    ARRANGE[state](ledger, timer)
    met = ledger.get(timer.job.key)
    kept = ledger_subject.letters()

    answer = PERFORM[event](ledger, timer)

    row = ledger.get(timer.job.key)
    happens = state in sources(event) or (event, state) in REPEATABLE | STAYS
    assert len(ledger_subject.letters()) - len(kept) == (happens and event in WITH_A_LETTER)
    if happens:
        assert not isinstance(answer, Refused)
        assert row is not None
        assert row.state is (state if (event, state) in STAYS else target(event))
    else:
        assert answer == Refused(met)
        assert row == met


def test_nothing_leaves_a_terminal_state():
    assert {
        State.SUCCEEDED,
        State.FAILED,
        State.CANCELLED,
        State.EXPIRED,
        State.ATTEMPTED,
        State.SKIPPED,
        State.MOVED,
    } == TERMINAL


def _nothing(ledger: Ledger, timer: Timer) -> None:
    pass


def _register(ledger: Ledger, timer: Timer) -> Applied | Refused:
    return ledger.register(timer.job, job_id=str(job_id_of(timer.job)), fingerprint="f", owner="arranger", now=NOON)


def _run_first_attempt(ledger: Ledger, timer: Timer) -> None:
    first = Timer(job=timer.job, due_at=timer.due_at, attempt=1)
    ledger.claim(first, owner="arranger", lease_until=LEASE_END, now=NOON)


def _settled(event: Event) -> Callable[[Ledger, Timer], None]:
    def arrange(ledger: Ledger, timer: Timer) -> None:
        _run_first_attempt(ledger, timer)
        ledger.settle(timer, event, fence=1, owner="arranger", now=NOON)

    return arrange


def _failed(ledger: Ledger, timer: Timer) -> None:
    _run_first_attempt(ledger, timer)
    ledger.fail(_a_dead_letter(timer), timer.job, fence=1, owner="arranger", now=NOON)


def _attempted(ledger: Ledger, timer: Timer) -> None:
    ledger.attempt(timer, Event.ATTEMPT, owner="arranger", now=NOON)


def _skipped(ledger: Ledger, timer: Timer) -> None:
    ledger.skip(timer, reason="overlap", owner="arranger", now=NOON)


def _moved(ledger: Ledger, timer: Timer) -> None:
    ledger.move(job_id_of(timer.job), a_timer(due_at=LONG_AFTER), owner="arranger", now=NOON)


ARRANGE: dict[State, Callable[[Ledger, Timer], object]] = {
    State.ABSENT: _nothing,
    State.SCHEDULED: _register,
    State.RUNNING: _run_first_attempt,
    State.RETRYING: _settled(Event.RETRY),
    State.SUCCEEDED: _settled(Event.SUCCEED),
    State.FAILED: _failed,
    State.CANCELLED: _settled(Event.WITHDRAW),
    State.EXPIRED: _settled(Event.EXPIRE),
    State.ATTEMPTED: _attempted,
    State.SKIPPED: _skipped,
    State.MOVED: _moved,
}


def _settle(event: Event) -> Step:
    def perform(ledger: Ledger, timer: Timer) -> Applied | Refused:
        seen = ledger.get(timer.job.key) or LedgerRow(state=State.ABSENT)
        # With the row's own fence and token: only the state may refuse it. A repeated settle is a case of its own.
        owner = seen.owner if seen.state is State.RUNNING else "performer"
        return ledger.settle(timer, event, fence=seen.fence, owner=owner, now=LONG_AFTER)

    return perform


def _end_collected(event: Event) -> Step:
    def perform(ledger: Ledger, timer: Timer) -> Applied | Refused:
        following = replace(timer, attempt=3, due_at=LONG_AFTER) if event is Event.RETURN else None
        return ledger.end_collected(timer, event, owner="performer", now=LONG_AFTER, following=following)

    return perform


def _claim(ledger: Ledger, timer: Timer) -> Claimed | Refused:
    return ledger.claim(timer, owner="performer", lease_until=LONG_AFTER, now=LONG_AFTER)


def _rescue(ledger: Ledger, timer: Timer) -> Claimed | Refused:
    seen = ledger.get(timer.job.key) or LedgerRow(state=State.ABSENT)
    return ledger.rescue(timer, row=seen, owner="performer", lease_until=LONG_AFTER, now=LONG_AFTER)


def _attempt(ledger: Ledger, timer: Timer) -> Applied | Refused:
    return ledger.attempt(timer, Event.ATTEMPT, owner="performer", now=LONG_AFTER)


def _lapse(ledger: Ledger, timer: Timer) -> Applied | Refused:
    return ledger.attempt(timer, Event.LAPSE, owner="performer", now=LONG_AFTER)


def _skip(ledger: Ledger, timer: Timer) -> Applied | Refused:
    return ledger.skip(timer, reason="paused", owner="performer", now=LONG_AFTER)


def _cancel(ledger: Ledger, timer: Timer) -> Applied | Refused:
    return ledger.cancel(job_id_of(timer.job), owner="performer", now=LONG_AFTER)


def _give_up(ledger: Ledger, timer: Timer) -> Applied | Refused:
    # Of one that is gone by now.
    seen = ledger.get(timer.job.key) or LedgerRow(state=State.RUNNING, fence=1, updated_at=NOON)
    return ledger.give_up(job_id_of(timer.job), row=seen, reason="abandoned", owner="performer", now=LONG_AFTER)


def _bury(ledger: Ledger, timer: Timer) -> Applied | Refused:
    seen = ledger.get(timer.job.key)
    return ledger.bury(
        _a_dead_letter(timer, dead_at=LONG_AFTER), timer.job, row=seen, owner="performer", now=LONG_AFTER
    )


def _fail(ledger: Ledger, timer: Timer) -> Applied | Refused:
    seen = ledger.get(timer.job.key) or LedgerRow(state=State.ABSENT)
    letter = _a_dead_letter(timer, dead_at=LONG_AFTER)
    return ledger.fail(letter, timer.job, fence=seen.fence, owner="performer", now=LONG_AFTER)


def _a_dead_letter(timer: Timer, *, dead_at: datetime = NOON) -> DeadLetter:
    return DeadLetter(
        tenant=timer.job.tenant, identity=timer.job.identity, dead_at=dead_at, error="it hurts", timer=timer
    )


def _hold(ledger: Ledger, timer: Timer) -> Applied | Refused:
    seen = ledger.get(timer.job.key) or LedgerRow(state=State.ABSENT)
    return ledger.hold(timer, fence=seen.fence, owner=seen.owner, lease_until=LONG_AFTER, now=LONG_AFTER)


def _park(ledger: Ledger, timer: Timer) -> Applied | Refused:
    return ledger.park(timer, until=LONG_AFTER, now=LONG_AFTER)


def _replay(ledger: Ledger, timer: Timer) -> Applied | Refused:
    job_id = str(job_id_of(timer.job))
    return ledger.replay(timer, far=timer, job_id=job_id, fence=0, owner="performer", now=LONG_AFTER)


def _move(ledger: Ledger, timer: Timer) -> Applied | Refused:
    return ledger.move(job_id_of(timer.job), a_timer(due_at=LONG_AFTER), owner="performer", now=LONG_AFTER)


def _register_again(ledger: Ledger, timer: Timer) -> Applied | Refused:
    return ledger.register(timer.job, job_id="other", fingerprint="g", owner="performer", now=LONG_AFTER)


PERFORM: dict[Event, Step] = {
    Event.REGISTER: _register_again,
    Event.CLAIM: _claim,
    Event.RESCUE: _rescue,
    Event.ATTEMPT: _attempt,
    Event.LAPSE: _lapse,
    Event.RELEASE: _settle(Event.RELEASE),
    Event.SUCCEED: _settle(Event.SUCCEED),
    Event.RETRY: _settle(Event.RETRY),
    Event.FAIL: _fail,
    Event.EXPIRE: _settle(Event.EXPIRE),
    Event.WITHDRAW: _settle(Event.WITHDRAW),
    Event.CANCEL: _cancel,
    Event.ABANDON: _give_up,
    Event.SKIP: _skip,
    Event.BURY: _bury,
    Event.DELIVER: _end_collected(Event.DELIVER),
    Event.RETURN: _end_collected(Event.RETURN),
    Event.HOLD: _hold,
    Event.PARK: _park,
    Event.REPLAY: _replay,
    Event.MOVE: _move,
}
