"""The checker on histories made by hand: a good one of each kind, and what each invariant finds in a bad one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.job import Delivery
from functions.domain.jobs.occurrence import identity_of
from functions.domain.lifecycle import State
from functions.domain.targets.flows import FlowLimits, NamedFlow, parse_rate
from testkit.builders import NOON
from verification.checker import Invariant, judge
from verification.history import (
    Answer,
    Call,
    Cancel,
    DeadLetterSeen,
    Fires,
    History,
    Job,
    Member,
    Release,
    Replay,
    Row,
    Telling,
)
from verification.tellings import telling_of

KEY = "acme#invoice"
FIRE = f"acme#{identity_of('nightly', NOON)}"
AT_LEAST, AT_MOST = Delivery.AT_LEAST_ONCE, Delivery.AT_MOST_ONCE


def a_job(delivery: Delivery = Delivery.EXACTLY_ONCE, **overrides: Any) -> Job:
    return Job(**{"key": KEY, "tenant": "acme", "delivery": delivery, "due_at": NOON, "payload": "1", **overrides})


def fires(**overrides: Any) -> Fires:
    fields = {"delivery": Delivery.EXACTLY_ONCE, "payload": "1", "due": frozenset({NOON})}
    return Fires(**{"key": "acme#nightly", "tenant": "acme", **fields, **overrides})


def a_call(number: int = 1, answer: Answer = Answer.EFFECT, **overrides: Any) -> Call:
    """The call of that attempt, under a fence of the same number, as many seconds after the job was due."""
    fields = {
        "key": KEY,
        "tenant": "acme",
        "attempt": number,
        "fence": number,
        "scheduled_at": NOON,
        "called_at": NOON + number * SECOND,
        "until": NOON + (number + 0.5) * SECOND,
        "payload": "1",
        "answer": answer,
    }
    return Call(**{**fields, **overrides})


def a_row(state: State = State.SUCCEEDED, number: int = 1, **overrides: Any) -> Row:
    fields = {"key": KEY, "state": state, "attempt": number, "fence": number}
    return Row(**{**fields, "settled_at": NOON + (number + 0.5) * SECOND, **overrides})


def a_history(asked: Job | Fires, calls: Sequence[Call] = (), row: Row | None = None, **overrides: Any) -> History:
    """Of one job, or one schedule."""
    fields: dict[str, Any] = {"letters": (), "cancels": (), "ended_at": NOON + timedelta(hours=1)}
    return History(
        **{
            **fields,
            "jobs": [asked] if isinstance(asked, Job) else [],
            "fires": [asked] if isinstance(asked, Fires) else [],
            "calls": calls,
            "rows": {row.key: row} if row else {},
            **overrides,
        }
    )


COLLECTED = a_job(collect=Collect(key="export", window=MINUTE), target="https://example.com/")
STUMBLE = a_call(1, Answer.FAILED)
LETTER = DeadLetterSeen(KEY, "http_503")
CANCELLED = Cancel(KEY, NOON + SECOND / 2, is_final=True)
STOPPED = replace(CANCELLED, is_final=False)
REPLAY = Replay(KEY, NOON + 4 * SECOND)
REPLAYED = a_row(number=5, over=[(NOON + 2 * SECOND, NOON + 4 * SECOND)])
"""It had failed for good two seconds after noon."""
OF_FIRE: dict[str, Any] = {"key": FIRE}
TELLS = a_job(callbacks=frozenset({"on_success", "on_end"}))


def told(name: str, *, state: str = "succeeded", at: Any = NOON + MINUTE, key: str = "") -> Telling:
    return Telling(key=key or f"acme#{name}", name=name, about=KEY, state=state, at=at)


def of_a_flow(flow: NamedFlow, *calls: Call, **overrides: Any) -> History:
    """Jobs that name a flow, each with one of the calls."""
    keys = [f"acme#job-{number}" for number in range(len(calls))]
    return History(
        jobs=[a_job(key=key, flow=flow) for key in keys],
        fires=[],
        calls=[replace(call, key=key, attempt=1, fence=1) for key, call in zip(keys, calls, strict=True)],
        rows={
            key: a_row(State.SUCCEEDED if call.is_success else State.EXPIRED, key=key, settled_at=NOON + MINUTE)
            for key, call in zip(keys, calls, strict=True)
        },
        **{"letters": (), "cancels": (), "ended_at": NOON + timedelta(hours=1), **overrides},
    )


IN_ORDER = NamedFlow(key="in-order", limits=FlowLimits(is_ordered=True))


def in_order(*runs: tuple[Job, Sequence[Call], Row], **overrides: Any) -> History:
    """Jobs of an ordered flow."""
    return History(
        jobs=[job for job, _, _ in runs],
        fires=[],
        calls=sorted((call for _, calls, _ in runs for call in calls), key=lambda call: call.called_at),
        rows={row.key: row for _, _, row in runs},
        **{"letters": (), "cancels": (), "ended_at": NOON + timedelta(hours=3), **overrides},
    )


def a_turn(
    name: str, *seconds: float, due: float = 0, known: float | None = -1, until: float
) -> tuple[Job, list[Call], Row]:
    """A job that is called so many seconds after noon, the last time with success, and ends then. due, known: by seconds, too."""
    key, due_at = f"acme#{name}", NOON + due * SECOND
    calls = [
        a_call(
            number,
            Answer.EFFECT if number == len(seconds) else Answer.FAILED,
            key=key,
            scheduled_at=due_at,
            called_at=NOON + at * SECOND,
            until=NOON + (at + 0.1) * SECOND,
        )
        for number, at in enumerate(seconds, start=1)
    ]
    known_at = NOON + known * SECOND if known is not None else None
    job = a_job(key=key, due_at=due_at, flow=IN_ORDER, known_at=known_at)
    state = State.SUCCEEDED if seconds else State.CANCELLED
    return job, calls, a_row(state, max(1, len(seconds)), key=key, settled_at=NOON + until * SECOND)


ONE_AT_ONCE = NamedFlow(key="bounded", limits=FlowLimits(concurrency=1))
SLOW = NamedFlow(key="rated", limits=FlowLimits(rate=parse_rate("60/min"), burst=2))

GOOD = {
    "runs when the one before it in its flow has ended": of_a_flow(ONE_AT_ONCE, a_call(1), a_call(2)),
    "runs while a target that answered 202 goes on": of_a_flow(
        ONE_AT_ONCE, a_call(1, until=NOON + MINUTE, is_held=True), a_call(2)
    ),
    "has its turn after another": in_order(a_turn("a", 1, 5, until=6), a_turn("b", 6, due=1, until=7)),
    "has its turn in the moment in which that of another is over": in_order(
        a_turn("b", 5, due=1, until=6), a_turn("a", 5, until=5)
    ),
    "has its turn before one that nobody knew of yet": in_order(
        a_turn("a", 9, due=0, known=5, until=10), a_turn("b", 4, due=1, until=8)
    ),
    "has its turn before one of which no client knows": in_order(
        a_turn("a", 9, due=0, known=None, until=10), a_turn("b", 4, due=1, until=8)
    ),
    "has its turn before one that was known a moment before": in_order(
        a_turn("a", 9, due=0, known=3, until=10), a_turn("b", 4, due=1, until=8), slack=2 * SECOND
    ),
    "has its turn after one that was cancelled": in_order(a_turn("a", until=3), a_turn("b", 4, due=1, until=8)),
    "has its turn before one that passed for lost": in_order(
        a_turn("a", 3_700, until=3_701), a_turn("b", 3_600, due=1, until=3_650)
    ),
    "had its turn before it stalled": in_order(
        a_turn("a", 9, until=10), a_turn("b", 5, due=1, until=8), disturbed=frozenset({"acme#b"})
    ),
    "comes with the burst of its flow": of_a_flow(SLOW, a_call(), a_call(), a_call(2)),
    "comes by another clock": of_a_flow(SLOW, *[a_call()] * 4, slack=2 * SECOND),
    "comes late because its worker stalled": of_a_flow(SLOW, *[a_call()] * 3, disturbed=frozenset({"acme#job-2"})),
    "has time left when it is tried again": a_history(
        a_job(ends_by=NOON + 4 * SECOND), [STUMBLE, a_call(3)], a_row(number=3)
    ),
    "takes too long": a_history(
        a_job(ends_by=NOON + SECOND), [], a_row(State.FAILED, 0), letters=[DeadLetterSeen(KEY, "run_deadline")]
    ),
    "tells of its success": a_history(TELLS, [a_call()], a_row(), tellings=[told("on_success"), told("on_end")]),
    "tells of its failure and of the success of its replay": a_history(
        TELLS,
        [STUMBLE, a_call(5)],
        REPLAYED,
        replays=[REPLAY],
        tellings=[
            told("on_end", state="failed", at=NOON + 3 * SECOND, key="c3"),
            told("on_success", at=NOON + MINUTE),
            told("on_end", at=NOON + MINUTE),
        ],
    ),
    "tells of its cancel": a_history(
        TELLS, [], a_row(State.CANCELLED), cancels=[CANCELLED], tellings=[told("on_end", state="cancelled")]
    ),
    "tells in a dead letter": a_history(
        TELLS, [a_call()], a_row(), tellings=[told("on_success", at=None), told("on_end", at=None)]
    ),
    "keeps no row and tells of its success": a_history(
        replace(TELLS, delivery=AT_LEAST), [a_call()], tellings=[told("on_success"), told("on_end")]
    ),
    "is given by a release": a_history(
        COLLECTED,
        row=a_row(fence=0),
        releases=[
            Release(
                key="acme#release",
                tenant="acme",
                target=COLLECTED.target,
                fence=1,
                called_at=NOON + SECOND,
                until=NOON + 1.5 * SECOND,
                members=[Member(KEY, 1, NOON, "1", Answer.EFFECT)],
            )
        ],
    ),
    "succeeds": a_history(a_job(), [a_call()], a_row()),
    "succeeds at the second attempt": a_history(a_job(), [STUMBLE, a_call(2)], a_row(number=2)),
    "is rescued after its effect": a_history(
        a_job(),
        [a_call(1), a_call(2, Answer.KNOWN, attempt=1)],
        a_row(number=2, attempt=1),
        disturbed=frozenset({KEY}),
    ),
    "has a zombie whom its target refuses": a_history(
        a_job(), [a_call(2, attempt=1), a_call(3, Answer.STALE, attempt=1, fence=1)], a_row(number=2, attempt=1)
    ),
    "fails for good": a_history(a_job(), [STUMBLE], a_row(State.FAILED), letters=[LETTER]),
    "kills its workers": a_history(
        a_job(), [a_call(1, Answer.NONE)], a_row(State.FAILED), letters=[LETTER], disturbed=frozenset({KEY})
    ),
    "meets a breaker": a_history(a_job(), [], a_row(State.FAILED), letters=[DeadLetterSeen(KEY, "breaker_open")]),
    "expires": a_history(a_job(), [], a_row(State.EXPIRED)),
    "is cancelled": a_history(a_job(), [], a_row(State.CANCELLED), cancels=[CANCELLED]),
    "is asked to stop while it runs": a_history(a_job(), [a_call()], a_row(), cancels=[STOPPED]),
    "was not accepted": a_history(a_job(is_accepted=False)),
    "comes by a clock that is ahead": a_history(a_job(), [a_call(called_at=NOON - SECOND, ahead=SECOND)], a_row()),
    "keeps no row": a_history(a_job(AT_LEAST), [a_call(), a_call(2, Answer.KNOWN, attempt=1)]),
    "keeps no row and fails": a_history(a_job(AT_LEAST), [STUMBLE], letters=[LETTER]),
    "keeps no row and expires": a_history(a_job(AT_LEAST, expires_at=NOON + MINUTE)),
    "keeps no row and is cancelled in silence": a_history(
        a_job(AT_LEAST), cancels=[replace(CANCELLED, answered_at=None)]
    ),
    "is started once": a_history(a_job(AT_MOST), [a_call(fence=0)], a_row(State.ATTEMPTED, fence=0)),
    "is started once its run has taken as long as it may": a_history(
        a_job(AT_MOST, ends_by=NOON + SECOND), [], a_row(State.ATTEMPTED, fence=0, settled_at=NOON + 2 * SECOND)
    ),
    "is started by a worker that dies": a_history(
        a_job(AT_MOST), [], a_row(State.ATTEMPTED, fence=0), disturbed=frozenset({KEY})
    ),
    "is started two weeks late, while its destination is left alone": a_history(
        a_job(AT_MOST), [], a_row(State.ATTEMPTED, fence=0, settled_at=NOON + timedelta(days=14))
    ),
    "is run before its time by its owner": a_history(
        a_job(hastened_at=NOON - MINUTE), [a_call(called_at=NOON - SECOND)], a_row()
    ),
    "is replayed after its failure": a_history(a_job(), [STUMBLE, a_call(5)], REPLAYED, replays=[REPLAY]),
    "fails again after its replay": a_history(
        a_job(),
        [STUMBLE, a_call(5, Answer.FAILED)],
        replace(REPLAYED, state=State.FAILED),
        letters=[LETTER],
        replays=[REPLAY],
    ),
    "was asked to stop too late, and is replayed": a_history(
        a_job(),
        [STUMBLE, a_call(5), a_call(6, Answer.KNOWN)],
        replace(REPLAYED, attempt=6, fence=6, settled_at=NOON + MINUTE),
        replays=[REPLAY],
        cancels=[STOPPED],
        disturbed=frozenset({KEY}),
    ),
    "has a target that answers 202 and falls silent": a_history(
        a_job(), [a_call(1, Answer.PENDING), a_call(2)], a_row(number=2)
    ),
    "is a fire": a_history(fires(), [a_call(**OF_FIRE)], a_row(**OF_FIRE)),
    "is a fire that is skipped": a_history(fires(), [], a_row(State.SKIPPED, 0, **OF_FIRE)),
    "is a fire that need not be": a_history(
        fires(due=frozenset(), possible=frozenset({NOON})), [a_call(**OF_FIRE)], a_row(**OF_FIRE)
    ),
    "is a fire without a row": a_history(fires(delivery=AT_LEAST), [a_call(**OF_FIRE)]),
}

BAD = {
    "was to be given by a release and never was": (Invariant.COLLECTIONS_KEPT, a_history(COLLECTED, row=a_row())),
    "has its turn while that of another goes on": (
        Invariant.ORDER_KEPT,
        in_order(a_turn("a", 1, 5, until=6), a_turn("b", 3, due=1, until=4)),
    ),
    "has its turn before the end of another is known": (
        Invariant.ORDER_KEPT,
        in_order(a_turn("a", 1, until=6), a_turn("b", 5, due=1, until=7)),
    ),
    "has its turn before one that was due before": (
        Invariant.ORDER_KEPT,
        in_order(a_turn("a", 9, until=10), a_turn("b", 5, due=1, until=8)),
    ),
    "is begun after its run should have ended": (
        Invariant.DEADLINES_KEPT,
        a_history(a_job(ends_by=NOON + SECOND), [STUMBLE, a_call(3)], a_row(number=3)),
    ),
    "tells nobody of its success": (Invariant.CALLBACKS_KEPT, a_history(TELLS, [a_call()], a_row())),
    "tells one of two": (
        Invariant.CALLBACKS_KEPT,
        a_history(TELLS, [a_call()], a_row(), tellings=[told("on_end")]),
    ),
    "tells one twice": (
        Invariant.CALLBACKS_KEPT,
        a_history(TELLS, [a_call()], a_row(), tellings=[told("on_success"), told("on_end"), told("on_end", key="c2")]),
    ),
    "tells of another end": (
        Invariant.CALLBACKS_KEPT,
        a_history(TELLS, [a_call()], a_row(), tellings=[told("on_success"), told("on_end", state="failed")]),
    ),
    "tells before it has ended": (
        Invariant.CALLBACKS_KEPT,
        a_history(
            a_job(callbacks=frozenset({"on_end"})), [a_call()], a_row(), tellings=[told("on_end", at=NOON + SECOND)]
        ),
    ),
    "tells whom it should not": (
        Invariant.CALLBACKS_KEPT,
        a_history(a_job(), [a_call()], a_row(), tellings=[told("on_end")]),
    ),
    "keeps no row and tells nobody": (
        Invariant.CALLBACKS_KEPT,
        a_history(replace(TELLS, delivery=AT_LEAST), [a_call()]),
    ),
    "keeps no row and tells of a success that there was not": (
        Invariant.CALLBACKS_KEPT,
        a_history(replace(TELLS, delivery=AT_LEAST), [STUMBLE], letters=[LETTER], tellings=[told("on_end")]),
    ),
    "runs while another of its flow does": (
        Invariant.FLOWS_KEPT,
        of_a_flow(ONE_AT_ONCE, a_call(1, until=NOON + MINUTE), a_call(2)),
    ),
    "is one more than the rate of its flow": (Invariant.FLOWS_KEPT, of_a_flow(SLOW, a_call(), a_call(), a_call())),
    "has no row": (Invariant.NOTHING_LOST, a_history(a_job())),
    "waits for ever": (Invariant.NOTHING_LOST, a_history(a_job(), [STUMBLE], a_row(State.RETRYING, settled_at=None))),
    "keeps no row and is not called": (Invariant.NOTHING_LOST, a_history(a_job(AT_LEAST))),
    "keeps no row and is given up": (Invariant.NOTHING_LOST, a_history(a_job(AT_LEAST), [STUMBLE])),
    "comes early": (Invariant.NOTHING_EARLY, a_history(a_job(), [a_call(called_at=NOON - SECOND)], a_row())),
    "comes earlier than its clock is ahead": (
        Invariant.NOTHING_EARLY,
        a_history(a_job(), [a_call(called_at=NOON - 2 * SECOND, ahead=SECOND)], a_row()),
    ),
    "names another time": (Invariant.NOTHING_EARLY, a_history(a_job(), [a_call(scheduled_at=NOON - SECOND)], a_row())),
    "comes before its owner lets it run": (
        Invariant.NOTHING_EARLY,
        a_history(a_job(hastened_at=NOON - SECOND), [a_call(called_at=NOON - 2 * SECOND)], a_row()),
    ),
    "is called when it has failed, before its replay": (
        Invariant.ONE_EFFECT,
        a_history(a_job(), [STUMBLE, a_call(3, Answer.FAILED), a_call(5)], REPLAYED, replays=[REPLAY]),
    ),
    "keeps its letter after its replay": (
        Invariant.DEAD_LETTERS_ACCOUNTED,
        a_history(a_job(), [STUMBLE, a_call(5)], REPLAYED, letters=[LETTER], replays=[REPLAY]),
    ),
    "goes on between its stop and its replay": (
        Invariant.CANCELS_KEPT,
        a_history(
            a_job(),
            [STUMBLE, a_call(2, Answer.FAILED), a_call(5)],
            replace(REPLAYED, over=()),
            replays=[REPLAY],
            cancels=[STOPPED],
        ),
    ),
    "has succeeded and its target got another answer": (
        Invariant.ENDS_AGREE,
        a_history(a_job(), [a_call(1, Answer.PENDING)], a_row()),
    ),
    "is called when it is settled": (
        Invariant.ONE_EFFECT,
        a_history(
            a_job(),
            [a_call(1), a_call(2, Answer.KNOWN, attempt=1)],
            a_row(attempt=1, fence=2),
            disturbed=frozenset({KEY}),
        ),
    ),
    "succeeds twice for no reason": (
        Invariant.ONE_EFFECT,
        a_history(a_job(), [a_call(1), a_call(2, Answer.KNOWN, attempt=1)], a_row(number=2, attempt=1)),
    ),
    "is started twice": (
        Invariant.ONE_EFFECT,
        a_history(
            a_job(AT_MOST),
            [a_call(1), a_call(2, Answer.KNOWN)],
            a_row(State.ATTEMPTED),
            disturbed=frozenset({KEY}),
        ),
    ),
    "is called while it runs": (
        Invariant.ONE_AT_A_TIME,
        a_history(
            a_job(),
            [a_call(1, Answer.NONE, until=NOON + MINUTE), a_call(2)],
            a_row(number=2),
            disturbed=frozenset({KEY}),
        ),
    ),
    "is called with the same fence": (
        Invariant.FENCES_GROW,
        a_history(a_job(), [STUMBLE, a_call(2, fence=1)], a_row(number=2)),
    ),
    "goes back to an attempt before": (
        Invariant.FENCES_GROW,
        a_history(
            a_job(),
            [a_call(1, Answer.FAILED, attempt=2), a_call(2, Answer.FAILED, attempt=1)],
            a_row(State.FAILED, 2),
            letters=[LETTER],
        ),
    ),
    "fails without a letter": (Invariant.DEAD_LETTERS_ACCOUNTED, a_history(a_job(), [STUMBLE], a_row(State.FAILED))),
    "fails with two": (
        Invariant.DEAD_LETTERS_ACCOUNTED,
        a_history(a_job(), [STUMBLE], a_row(State.FAILED), letters=[LETTER, LETTER]),
    ),
    "succeeds with a letter": (
        Invariant.DEAD_LETTERS_ACCOUNTED,
        a_history(a_job(), [a_call()], a_row(), letters=[LETTER]),
    ),
    "has the payload of another": (Invariant.TENANTS_APART, a_history(a_job(), [a_call(payload="2")], a_row())),
    "is called for another tenant": (Invariant.TENANTS_APART, a_history(a_job(), [a_call(tenant="umbrella")], a_row())),
    "calls for nobody": (
        Invariant.TENANTS_APART,
        a_history(a_job(), [a_call(), a_call(key="acme#other")], a_row()),
    ),
    "has a row of nobody's": (
        Invariant.TENANTS_APART,
        a_history(a_job(), [a_call()], rows={KEY: a_row(), "acme#other": a_row(key="acme#other")}),
    ),
    "runs after its cancel": (Invariant.CANCELS_KEPT, a_history(a_job(), [a_call()], a_row(), cancels=[CANCELLED])),
    "keeps no row and runs after its cancel": (
        Invariant.CANCELS_KEPT,
        a_history(a_job(AT_LEAST), [a_call()], cancels=[CANCELLED]),
    ),
    "goes on when it was asked to stop": (
        Invariant.CANCELS_KEPT,
        a_history(a_job(), [STUMBLE, a_call(2)], a_row(number=2), cancels=[STOPPED]),
    ),
    "has succeeded without a call": (Invariant.ENDS_AGREE, a_history(a_job(), [], a_row())),
    "has succeeded after a failure": (Invariant.ENDS_AGREE, a_history(a_job(), [STUMBLE], a_row())),
    "is behind its target": (Invariant.ENDS_AGREE, a_history(a_job(), [a_call(attempt=1, fence=2)], a_row())),
    "is a dead letter that was never called": (
        Invariant.ENDS_AGREE,
        a_history(a_job(), [], a_row(State.FAILED), letters=[LETTER]),
    ),
    "is a dead letter after its effect": (
        Invariant.ENDS_AGREE,
        a_history(a_job(), [a_call()], a_row(State.FAILED), letters=[LETTER]),
    ),
    "has expired after its effect": (Invariant.ENDS_AGREE, a_history(a_job(), [a_call()], a_row(State.EXPIRED))),
    "is attempted without a call before its deadline": (
        Invariant.ENDS_AGREE,
        a_history(a_job(AT_MOST, ends_by=NOON + 2 * MINUTE), [], a_row(State.ATTEMPTED, settled_at=NOON + 2 * SECOND)),
    ),
    "is attempted without a call": (Invariant.ENDS_AGREE, a_history(a_job(AT_MOST), [], a_row(State.ATTEMPTED))),
    "is a fire that does not come": (Invariant.SCHEDULES_KEPT, a_history(fires())),
    "is a fire without a row that does not come": (Invariant.SCHEDULES_KEPT, a_history(fires(delivery=AT_LEAST))),
    "is a fire that nobody owes": (
        Invariant.SCHEDULES_KEPT,
        a_history(fires(due=frozenset()), [a_call(**OF_FIRE)], a_row(**OF_FIRE)),
    ),
}


@pytest.mark.parametrize("case", GOOD)
def test_nothing_is_found_when_a_job(case: str) -> None:
    assert judge(GOOD[case]).violations == []


@pytest.mark.parametrize("case", BAD)
def test_just_that_invariant_is_broken_when_a_job(case: str) -> None:
    invariant, history = BAD[case]

    assert [violation.invariant for violation in judge(history).violations] == [invariant]


def test_every_invariant_is_broken_by_one_of_them_and_looked_at_in_a_good_one() -> None:
    assert {invariant for invariant, _ in BAD.values()} == set(Invariant)
    assert {invariant for history in GOOD.values() for invariant in judge(history).checks} == set(Invariant)


def test_a_violation_says_what_was_seen() -> None:
    (violation,) = judge(BAD["has succeeded after a failure"][1]).violations

    assert violation.key == KEY
    assert violation.text == (
        "is succeeded at attempt 1, fence 1, ''; its target saw attempt 1 with fence 1 at 12:00:01.000000 (failed)"
    )


def test_what_a_callback_was_told_is_read_from_its_payload():
    payload = (
        '{"callback":"on_end","job":{"id":"j1~acme~2e~ttzw00~1~n0p8ww00~invoice","tenant":"acme","state":"failed"}}'
    )

    assert telling_of("acme#c", payload, NOON) == told("on_end", state="failed", at=NOON, key="acme#c")
