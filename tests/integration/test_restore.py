"""What docs/restore.md promises, rehearsed: tables restored to an instant, each a little later than the one before."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.adapters.dynamodb.tables import DEAD_LETTERS, LEDGER, SCHEDULE_STATE, SCHEDULES, SHARDS, TENANTS, TIMERS
from functions.domain.instants import EPOCH, MINUTE, SECOND, format_instant
from testkit.builders import LOCAL_WHEEL
from testkit.dynamodb_local import DynamoDBLocal
from tests.e2e.schedules import fires_of
from tests.http_sink import http_sink
from tests.integration.restoring import RestoredStage, stage_on
from tests.integration.stage import QUEUES

pytestmark = pytest.mark.dynamodb_local

INTERVAL = 10 * MINUTE
FIRST = 200
"""Seconds from the submission: far, and due before the copies are taken."""

LATER = 3_000
"""And due long after the restore."""

KEYED: dict[str, Any] = {"idempotency_key": "once", "tenant": "keyed"}


@dataclass
class Rehearsal:
    """What was submitted, and what its targets had seen when everything was lost."""

    stage: RestoredStage
    copied_from: datetime
    copied_until: datetime = EPOCH
    done_before: dict[str, int] = field(default_factory=dict)
    keys_before: dict[str, set[str]] = field(default_factory=dict)
    ended_at: datetime = EPOCH


WAITED = ("waits", "waits-at-most-once", "waits-critical", "waits-keyed")
"""Due long after; their rows were in the tables."""

SETTLED = "settled-in-time"
"""Its end was copied with the ledger."""

FORGOTTEN = "end-not-copied"
"""It succeeded after the ledger was copied."""

UNDER_WAY = "under-way"
"""Its target was being called when the ledger was copied."""

PROMOTED = ("promoted", "promoted-at-least-once")
"""Their messages waited for a worker."""

RETRYING = "retrying-soon"
"""Its second attempt was a message of the near ring alone."""

RETRYING_LATER = "retrying-later"
"""Its second attempt was a far row."""

NEAR_RETRYING = "near-retrying"
"""Submitted for at once: it has no row in the far ring, and its second attempt was a message too."""

NEAR_KEYED, NEAR, AFTER = "near-keyed", "near", "after"
"""Jobs that only a message knew, and one that came after the copies."""

JOBS = (*WAITED, SETTLED, FORGOTTEN, UNDER_WAY, *PROMOTED, RETRYING, RETRYING_LATER)


@pytest.fixture(scope="module")
def rehearsal(dynamodb_local: DynamoDBLocal) -> Iterator[Rehearsal]:
    """Jobs in every state, copies of the tables while they go on, the loss of everything, and an hour after it."""
    with pytest.MonkeyPatch.context() as patch, http_sink() as sink, stage_on(dynamodb_local, sink, patch) as stage:
        rehearsal = _until_the_loss(stage)
        stage.lose_everything()
        # Right after a fire.
        stage.travel(20 * MINUTE + INTERVAL - (stage.stage.now() - EPOCH) % INTERVAL + 5 * SECOND)
        stage.restore()
        assert stage.rewind(rehearsal.copied_from - 15 * MINUTE) == {"rewound": [0, 1], "left": []}
        stage.stage.scan()
        assert stage.stage.receive("normal"), "a worker dies with the first messages"
        stage.run_for(6 * INTERVAL, step=INTERVAL)
        rehearsal.ended_at = stage.stage.now()
        yield rehearsal


def _until_the_loss(stage: RestoredStage) -> Rehearsal:
    stage.put_schedule("ticking", every={"interval": INTERVAL.total_seconds()})
    stage.submit("waits", delay=LATER)
    stage.submit("waits-at-most-once", delay=LATER, delivery="at_most_once")
    stage.submit("waits-critical", delay=LATER, priority="critical")
    stage.submit("waits-keyed", delay=LATER, idempotency_key="far")
    quickly = {"strategy": "fixed", "attempts": 3, "base": 60, "cap": 60}
    slowly = {"strategy": "fixed", "attempts": 3, "base": 900, "cap": 900}
    stage.submit(RETRYING, fails_once=True, delay=FIRST, retry=quickly)
    stage.submit(RETRYING_LATER, fails_once=True, delay=FIRST, retry=slowly)
    stage.submit(SETTLED, delay=FIRST)
    stage.travel((FIRST + 1) * SECOND)
    stage.stage.scan()
    stage.submit(NEAR_RETRYING, fails_once=True, delay=0, retry=quickly)
    for called in (RETRYING, RETRYING_LATER, SETTLED, NEAR_RETRYING):
        stage.work(*QUEUES, until_called=called)
    stage.submit(NEAR_KEYED, delay=100, **KEYED)
    stage.submit(NEAR, delay=100)
    # A batch runs side by side: what ends after the copy of the ledger comes from another queue than what it is made during.
    stage.submit(UNDER_WAY, delay=FIRST, priority="high")
    stage.submit(FORGOTTEN, delay=FIRST, priority="critical")
    for name in PROMOTED:
        stage.submit(name, delay=FIRST, delivery="at_least_once" if name == PROMOTED[1] else "exactly_once")

    rehearsal = Rehearsal(stage, copied_from=stage.stage.now())
    stage.copy(TIMERS, SCHEDULES)
    stage.travel((FIRST + 1) * SECOND)
    stage.stage.scan()
    stage.during[f"/{UNDER_WAY}"] = lambda: stage.copy(LEDGER, SCHEDULE_STATE)
    stage.work("high", until_called=UNDER_WAY)
    stage.work("critical", until_called=FORGOTTEN)
    stage.copy(SHARDS, TENANTS, DEAD_LETTERS)
    rehearsal.copied_until = stage.stage.now()
    stage.submit(AFTER, delay=LATER)
    rehearsal.done_before = {name: stage.calls(name) for name in JOBS}
    rehearsal.keys_before = {name: stage.keys(name) for name in JOBS}
    return rehearsal


def test_no_job_that_had_a_row_in_the_far_ring_is_lost(rehearsal: Rehearsal):
    succeeded = {name: rehearsal.stage.calls(name) for name in JOBS}

    assert {name for name, count in succeeded.items() if not count} == set()
    assert succeeded[RETRYING] == rehearsal.done_before[RETRYING] + 1 == 2
    assert succeeded[RETRYING_LATER] == rehearsal.done_before[RETRYING_LATER] + 1 == 2


def test_a_retry_of_a_job_that_never_had_a_row_there_is_lost_though_the_ledger_knows_it(rehearsal: Rehearsal):
    assert rehearsal.stage.calls(NEAR_RETRYING) == 1


def test_what_had_ended_by_the_ledger_is_not_run_again(rehearsal: Rehearsal):
    assert rehearsal.done_before[SETTLED] == rehearsal.stage.calls(SETTLED) == 1


def test_what_runs_again_is_what_the_ledger_had_not_seen_the_end_of_under_the_same_key(rehearsal: Rehearsal):
    again = {name for name in JOBS if rehearsal.done_before[name] and rehearsal.stage.calls(name) > 1}

    assert again == {FORGOTTEN, UNDER_WAY, RETRYING, RETRYING_LATER}
    for name in JOBS:
        assert len(rehearsal.stage.keys(name)) == 1, name
        assert rehearsal.keys_before[name] <= rehearsal.stage.keys(name), name


def test_nothing_is_early(rehearsal: Rehearsal):
    assert rehearsal.stage.early == []


def test_schedules_go_on_and_miss_at_most_the_fires_that_only_messages_knew(rehearsal: Rehearsal):
    fires = rehearsal.stage.fires("ticking")
    first = rehearsal.copied_until + LOCAL_WHEEL.guard
    owed = set(fires_of(INTERVAL, timedelta(0), after=first, until=rehearsal.ended_at - INTERVAL))

    assert len(owed) >= 5
    assert owed <= set(fires)
    assert len(set(fires)) == len(fires)


def test_a_job_that_only_a_message_knew_is_gone_unless_its_client_asks_again(rehearsal: Rehearsal):
    stage = rehearsal.stage
    assert [stage.calls(name) for name in (NEAR_KEYED, NEAR, AFTER)] == [0, 0, 0]

    run_at = format_instant(stage.stage.now() + FIRST * SECOND)
    ids = {stage.submit(NEAR_KEYED, run_at=run_at, **KEYED) for _ in range(2)}
    stage.travel((FIRST + 1) * SECOND)
    stage.run_for(MINUTE, step=MINUTE)

    assert len(ids) == 1
    assert stage.calls(NEAR_KEYED) == 1
    assert stage.early == []
