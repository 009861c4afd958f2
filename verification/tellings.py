"""Whether each end of a job was told to its callbacks: a part of the checker that knows nothing of how callbacks are put."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from functions.domain.jobs.job import Delivery
from functions.domain.lifecycle import State
from verification.history import Call, History, Job, Row, Telling

NAMES_OF: Mapping[str, frozenset[str]] = {
    "succeeded": frozenset({"on_success", "on_end"}),
    "failed": frozenset({"on_failure", "on_end"}),
    "expired": frozenset({"on_failure", "on_end"}),
    "cancelled": frozenset({"on_end"}),
}
"""Who is told of which end, as docs/jobs.md promises it."""

Expect = Callable[[str, bool, str], None]
"""Key, whether it is kept, and what is to be said where it is not."""


def telling_of(key: str, payload: str | None, at: datetime | None) -> Telling:
    """What the call of a callback said. key: of the callback's own job. at: when it was called, None where nobody was reached."""
    body: dict[str, Any] = json.loads(payload or "{}")
    told = body.get("job", {})
    parts = str(told.get("id", "")).split("~")
    about = f"{told.get('tenant')}#{parts[-1]}"
    return Telling(key=key, name=str(body.get("callback")), about=about, state=str(told.get("state")), at=at)


def tellings_of(calls: Iterable[Call]) -> list[Telling]:
    """What the calls of callbacks said."""
    return [telling_of(call.key, call.payload, call.called_at) for call in calls]


def check_tellings(history: History, calls: Mapping[str, Sequence[Call]], expect: Expect) -> None:
    """Look at every job that asked for callbacks, and at everything that was told."""
    jobs = {job.key: job for job in history.jobs}
    told: dict[str, list[Telling]] = defaultdict(list)
    for telling in history.tellings:
        told[telling.about].append(telling)
    for about, tellings in told.items():
        for telling in tellings:
            _check_telling(telling, jobs.get(about), history.rows.get(about), expect)
    letters = {letter.key for letter in history.letters}
    for job in history.jobs:
        row, tellings = history.rows.get(job.key), told[job.key]
        if not job.callbacks:
            continue
        if job.delivery is Delivery.AT_LEAST_ONCE:
            is_success = any(call.is_success for call in calls.get(job.key, ()))
            is_cancelled = row is not None and row.state is State.CANCELLED
            has_ended = is_success or is_cancelled or job.key in letters
            _check_untracked(job, tellings, has_ended=has_ended, is_success=is_success, expect=expect)
        else:
            _check_tracked(job, row, tellings, len([each for each in history.replays if each.key == job.key]), expect)


def _check_telling(telling: Telling, job: Job | None, row: Row | None, expect: Expect) -> None:
    is_asked = job is not None and telling.name in job.callbacks
    expect(telling.about, is_asked, f"{telling.name} was told, and nobody had asked for it: {telling}")
    is_fit = telling.name in NAMES_OF.get(telling.state, ())
    expect(telling.about, is_fit, f"{telling.name} was told of {telling.state}: {telling}")
    if job is not None and job.delivery is Delivery.EXACTLY_ONCE and telling.at is not None:
        ends = [since for since, _ in row.over] if row is not None else []
        ends += [row.settled_at] if row is not None and row.settled_at is not None else []
        is_behind = bool(ends) and min(ends) <= telling.at
        expect(telling.about, is_behind, f"was told before the end, at {ends}: {telling}")


def _check_tracked(job: Job, row: Row | None, tellings: Sequence[Telling], replays: int, expect: Expect) -> None:
    state = row.state.value if row is not None else ""
    told = {
        name: len({telling.key for telling in tellings if (telling.name, telling.state) == (name, state)})
        for name in NAMES_OF.get(state, frozenset()) & job.callbacks
    }
    most = 1 + replays if state == "failed" else 1
    # What failed for good, and went on by a replay, has told of that failure.
    others = [telling for telling in tellings if telling.state != state]
    is_right = all(1 <= count <= most for count in told.values())
    is_right = is_right and all(telling.state == "failed" for telling in others) and len(others) <= 2 * replays
    expect(job.key, is_right, f"ended as {state or 'nothing'}, which was told by {told} jobs: {list(tellings)}")


def _check_untracked(
    job: Job, tellings: Sequence[Telling], *, has_ended: bool, is_success: bool, expect: Expect
) -> None:
    if "on_end" in job.callbacks and has_ended and job.is_accepted:
        keys = {telling.key for telling in tellings if telling.name == "on_end"}
        expect(job.key, bool(keys), f"ended, and nobody was told: {list(tellings)}")
    for telling in tellings:
        is_true = telling.state != "succeeded" or is_success
        expect(job.key, is_true, f"never succeeded, and told that it did: {telling}")
