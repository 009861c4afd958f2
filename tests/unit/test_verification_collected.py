"""The checker on jobs that were given together, made by hand: what it lets pass, and what it finds, one thing at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.instants import HOUR, MINUTE, SECOND
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.job import Delivery
from functions.domain.lifecycle import State
from testkit.builders import NOON
from verification.checker import Invariant, judge
from verification.collected import closes_at
from verification.history import Answer, Call, Cancel, DeadLetterSeen, History, Job, Member, Release, Replay, Row

EXPORT = Collect(key="export", window=MINUTE, most=2)
TARGET = "https://fine.example.com/"


def a_job(name: str, *, due: float = 0, known: float | None = 0, **overrides: Any) -> Job:
    """A job that is collected. due, known: seconds after noon."""
    return Job(
        **{
            "key": f"acme#{name}",
            "tenant": "acme",
            "delivery": Delivery.EXACTLY_ONCE,
            "due_at": NOON + due * SECOND,
            "payload": f'"{name}"',
            "known_at": NOON + known * SECOND if known is not None else None,
            "collect": EXPORT,
            "target": TARGET,
            "is_prompt": True,
            **overrides,
        }
    )


def a_member(
    name: str, answer: Answer = Answer.EFFECT, *, attempt: int = 1, due: float = 0, **overrides: Any
) -> Member:
    member = Member(f"acme#{name}", attempt, NOON + due * SECOND, f'"{name}"', answer)
    return replace(member, **overrides)


def a_release(at: float, *members: Member, number: int = 1, until: float = 0.5, **overrides: Any) -> Release:
    """One that is called so many seconds after noon, and is at it until so many after that."""
    called_at = NOON + at * SECOND
    fields = {"key": f"acme#release-{number}", "tenant": "acme", "target": TARGET, "fence": 1}
    fields |= {"called_at": called_at, "until": called_at + until * SECOND, "members": members}
    return Release(**{**fields, **overrides})


def a_row(name: str, at: float, state: State = State.SUCCEEDED, attempt: int = 1, **overrides: Any) -> Row:
    """Of a job that ended so many seconds after noon."""
    fields = {"key": f"acme#{name}", "state": state, "attempt": attempt, "fence": 0}
    return Row(**{**fields, "settled_at": NOON + at * SECOND, **overrides})


def together(jobs: Sequence[Job], releases: Sequence[Release], rows: Sequence[Row], **overrides: Any) -> History:
    fields: dict[str, Any] = {"letters": (), "cancels": (), "calls": (), "ended_at": NOON + HOUR, "lateness": MINUTE}
    return History(
        **{
            **fields,
            "jobs": jobs,
            "fires": (),
            "releases": releases,
            "rows": {row.key: row for row in rows},
            **overrides,
        }
    )


A, B, C = a_job("a"), a_job("b"), a_job("c")
ROWS = (a_row("a", 61), a_row("b", 61))
PAIR = together([A, B], [a_release(60, a_member("a"), a_member("b"))], ROWS)
"""Two jobs that are given together when their window closes."""

FAILED = a_member("a", Answer.FAILED)
LETTER = DeadLetterSeen("acme#a", "member_failed")
RETRIED = together(
    [A], [a_release(60, FAILED), a_release(90, a_member("a", attempt=2), number=2)], [a_row("a", 91, attempt=2)]
)
TAKEN_OVER = together(
    [A, B],
    [
        a_release(60, a_member("a"), a_member("b", Answer.NONE), until=20),
        a_release(80, a_member("b"), fence=2),
    ],
    [a_row("a", 79), a_row("b", 81)],
    disturbed=frozenset({"acme#release-1"}),
)
"""A worker dies when it has written the first of two ends."""

GOOD = {
    "are given together": PAIR,
    "are given in two calls, one after the other": together(
        [A, B, C],
        [a_release(60, a_member("a"), a_member("b")), a_release(60.5, a_member("c"), number=2)],
        [*ROWS, a_row("c", 61)],
    ),
    "are given before their window closes": replace(PAIR, releases=[a_release(5, a_member("a"), a_member("b"))]),
    "are tried again by the release that follows": RETRIED,
    "are given by another worker": TAKEN_OVER,
    "are of a worker that has died, whose target refuses what it sends": replace(
        TAKEN_OVER, releases=[*TAKEN_OVER.releases, a_release(82, a_member("a"), is_taken=False)]
    ),
    "fail for good": together([A], [a_release(60, FAILED)], [a_row("a", 61, State.FAILED)], letters=[LETTER]),
    "fail with their workers": together(
        [A], [], [a_row("a", 61, State.FAILED)], letters=[DeadLetterSeen("acme#a", "worker_died")], lateness=None
    ),
    "are cancelled": together(
        [A], [], [a_row("a", 5, State.CANCELLED)], cancels=[Cancel("acme#a", NOON + 6 * SECOND, is_final=True)]
    ),
    "are cancelled too late": together(
        [A],
        [a_release(60, a_member("a"))],
        [a_row("a", 59.9, State.CANCELLED)],
        cancels=[Cancel("acme#a", NOON + 61 * SECOND, is_final=False)],
    ),
    "are replayed": together(
        [A],
        [a_release(60, FAILED), a_release(200, a_member("a", attempt=4), number=2)],
        [a_row("a", 201, attempt=4, over=((NOON + 61 * SECOND, NOON + 100 * SECOND),))],
        replays=[Replay("acme#a", NOON + 100 * SECOND)],
    ),
    "come when their tenant is not paused any more": replace(
        PAIR,
        releases=[a_release(900, a_member("a"), a_member("b"))],
        rows={row.key: replace(row, settled_at=NOON + 901 * SECOND) for row in ROWS},
        lateness=None,
    ),
    "come as late as faults let them": replace(
        PAIR,
        releases=[a_release(119, a_member("a"), a_member("b"))],
        rows={row.key: replace(row, settled_at=NOON + 120 * SECOND) for row in ROWS},
    ),
    "are known late": together([a_job("a", known=100)], [a_release(150, a_member("a"))], [a_row("a", 151)]),
    "are run before their time by their owner": together(
        [a_job("a", due=600, hastened_at=NOON)], [a_release(60, a_member("a", due=600))], [a_row("a", 61)]
    ),
}

BAD = {
    "is called by itself": replace(
        PAIR,
        calls=[
            Call(
                key="acme#a",
                tenant="acme",
                attempt=1,
                fence=1,
                scheduled_at=NOON,
                called_at=NOON + SECOND,
                until=NOON + 2 * SECOND,
                payload='"a"',
                answer=Answer.KNOWN,
            )
        ],
    ),
    "is given with a stranger": replace(PAIR, jobs=[A], rows={"acme#a": ROWS[0]}),
    "is given with those of another tenant": replace(PAIR, jobs=[A, replace(B, tenant="globex")]),
    "is given with those of other terms": replace(PAIR, jobs=[A, replace(B, collect=replace(EXPORT, key="digest"))]),
    "is given to another target": replace(
        PAIR, releases=[replace(PAIR.releases[0], target="https://other.example.com/")]
    ),
    "is given in too large a call": replace(
        PAIR,
        jobs=[A, B, C],
        releases=[a_release(60, *(a_member(name) for name in "abc"))],
        rows={row.key: row for row in (*ROWS, a_row("c", 61))},
    ),
    "is given before it is due": replace(PAIR, jobs=[A, replace(B, due_at=NOON + 61 * SECOND)]),
    "is given for another time": replace(
        PAIR, releases=[a_release(60, a_member("a"), a_member("b", scheduled_at=NOON - SECOND))]
    ),
    "is given with another payload": replace(
        PAIR, releases=[a_release(60, a_member("a"), a_member("b", payload='"c"'))]
    ),
    "is given late": replace(
        PAIR,
        releases=[a_release(121, a_member("a"))],
        jobs=[A],
        rows={"acme#a": a_row("a", 122)},
    ),
    "is given when its collection is given already": replace(
        PAIR, releases=[a_release(60, a_member("a")), a_release(60.1, a_member("b"), number=2)]
    ),
    "is given by another worker with the same fence": replace(
        TAKEN_OVER, releases=[TAKEN_OVER.releases[0], replace(TAKEN_OVER.releases[1], fence=1)]
    ),
    "is new in a call that is made again": replace(
        TAKEN_OVER,
        jobs=[A, B, C],
        releases=[TAKEN_OVER.releases[0], a_release(80, a_member("b"), a_member("c"), fence=2)],
        rows={**TAKEN_OVER.rows, "acme#c": a_row("c", 81)},
    ),
    "is given after its end": replace(
        TAKEN_OVER,
        releases=[TAKEN_OVER.releases[0], a_release(80, a_member("a", Answer.KNOWN), a_member("b"), fence=2)],
    ),
    "is done twice": replace(
        PAIR,
        jobs=[A],
        releases=[a_release(60, a_member("a")), a_release(60.6, a_member("a", Answer.KNOWN), number=2)],
        rows={"acme#a": a_row("a", 61)},
    ),
    "has succeeded without being given": together([replace(A, is_prompt=False)], [], [a_row("a", 61)]),
    "has succeeded although its target named it": replace(PAIR, releases=[a_release(60, FAILED, a_member("b"))]),
    "has succeeded at another attempt": replace(PAIR, rows={**PAIR.rows, "acme#a": a_row("a", 61, attempt=2)}),
    "has failed although its target took it": replace(
        PAIR, rows={**PAIR.rows, "acme#a": a_row("a", 61, State.FAILED)}, letters=[LETTER]
    ),
    "is cancelled and was done": replace(
        PAIR,
        rows={**PAIR.rows, "acme#a": a_row("a", 61, State.CANCELLED)},
        cancels=[Cancel("acme#a", NOON + 62 * SECOND, is_final=True)],
    ),
    "has an attempt too many": replace(RETRIED, releases=[a_release(60, a_member("a", attempt=2))]),
    "has a release that gives nobody": replace(PAIR, releases=[*PAIR.releases, a_release(70, number=2)]),
    "is given twice in one call": replace(
        PAIR,
        jobs=[A],
        releases=[a_release(60, a_member("a"), a_member("a", Answer.KNOWN))],
        rows={"acme#a": a_row("a", 61)},
        disturbed=frozenset({"acme#a"}),
    ),
    "goes on after its cancel": together(
        [A],
        [a_release(60, FAILED), a_release(90, a_member("a", Answer.FAILED, attempt=2), number=2)],
        [a_row("a", 70, State.CANCELLED)],
        cancels=[Cancel("acme#a", NOON + 71 * SECOND, is_final=True)],
    ),
}


@pytest.mark.parametrize("case", GOOD)
def test_nothing_is_found_when_jobs_of_a_collection(case: str) -> None:
    assert judge(GOOD[case]).violations == []
    assert judge(GOOD[case]).checks[Invariant.COLLECTIONS_KEPT] > 0


@pytest.mark.parametrize("case", BAD)
def test_just_that_is_found_when_a_job_of_a_collection(case: str) -> None:
    found = judge(BAD[case]).violations

    assert [violation.invariant for violation in found] == [Invariant.COLLECTIONS_KEPT], found


def test_a_job_that_is_never_given_is_lost_and_late() -> None:
    found = judge(together([A], [], [])).violations

    assert [violation.invariant for violation in found] == [Invariant.NOTHING_LOST, Invariant.COLLECTIONS_KEPT]


@pytest.mark.parametrize(
    ("collect", "closes"),
    [
        (Collect(key="k", window=HOUR), NOON + HOUR),
        (Collect(key="k", at="*/10 * * * *"), NOON + 10 * MINUTE),
        (Collect(key="k", at="0 7 * * *", timezone="Europe/Berlin"), NOON + 18 * HOUR),
        (Collect(key="k", at="0 7 * * *", window=HOUR), NOON + HOUR),
        (Collect(key="k", at="0 0 1 1 *"), NOON + timedelta(days=31)),
    ],
)
def test_a_window_closes_by_whatever_comes_first(collect: Collect, closes: datetime) -> None:
    assert closes_at(collect, NOON) == closes
