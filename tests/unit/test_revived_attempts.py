"""An attempt whose message was lost, and an earlier message of the same job that comes again."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from functions.domain.claims import LONG_OVERDUE, LedgerRow, overdue_attempt
from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.job_id import job_id_of
from functions.domain.lifecycle import State
from functions.ports import Failed, Succeeded
from tests.builders import NOON, a_timer
from tests.unit.test_execute import a_message
from tests.unit.world import World

LONG_AGO = NOON - LONG_OVERDUE - MILLISECOND


@pytest.mark.parametrize(
    ("row", "attempt"),
    [
        (LedgerRow(state=State.RETRYING, attempt=1, due_at=LONG_AGO), 2),
        (LedgerRow(state=State.RETRYING, attempt=4, due_at=LONG_AGO), 5),
        (LedgerRow(state=State.SCHEDULED, attempt=2, due_at=LONG_AGO), 2),
        (LedgerRow(state=State.RETRYING, attempt=1, due_at=LONG_AGO + MILLISECOND), None),
        (LedgerRow(state=State.RETRYING, attempt=1, due_at=LONG_AGO, parked_until=NOON), None),
        (LedgerRow(state=State.RETRYING, attempt=1, due_at=LONG_AGO, parked_until=LONG_AGO), 2),
        (LedgerRow(state=State.RUNNING, attempt=1, due_at=LONG_AGO), None),
        (LedgerRow(state=State.FAILED, attempt=1, due_at=LONG_AGO), None),
        (LedgerRow(state=State.RETRYING, attempt=1), None),
        (None, None),
    ],
)
def test_only_an_attempt_that_should_have_come_long_ago_may_be_lost(row: LedgerRow | None, attempt: int | None):
    assert overdue_attempt(row, now=NOON) == attempt


@pytest.fixture
def world() -> World:
    """A job has failed once, and the message of its second attempt was lost."""
    world = World()
    world.targets.answer = lambda *_: Failed("down", "http_503")
    world.work(a_message(a_timer(identity="x")))
    assert world.row(a_timer(identity="x").job).state is State.RETRYING
    world.ready.messages.clear()
    world.targets.answer = lambda *_: Succeeded("{}")
    return world


def test_a_message_of_the_first_attempt_revives_the_second(world: World):
    world.clock.tick(timedelta(hours=1))

    assert world.work(a_message(a_timer(identity="x"), "again")) == []
    world.receive_and_work()

    row = world.row(a_timer(identity="x").job)
    assert (row.state, row.attempt) == (State.SUCCEEDED, 2)
    assert [call.attempt for call in world.calls] == [1, 2]
    assert [event["attempt"] for event in world.events("revived")] == [2]


def test_what_is_revived_beside_its_own_message_still_runs_once(world: World):
    world.clock.tick(timedelta(hours=1))
    world.work(a_message(a_timer(identity="x"), "again"))

    own = a_timer(identity="x").revived(attempt=2, due_at=world.clock.now())
    world.work(a_message(own, "its own"))
    world.receive_and_work()

    assert [call.attempt for call in world.calls] == [1, 2]


def test_a_duplicate_that_comes_in_time_revives_nothing(world: World):
    due_at: datetime | None = world.row(a_timer(identity="x").job).due_at
    assert due_at is not None
    world.clock.tick(due_at + LONG_OVERDUE - world.clock.now())

    world.work(a_message(a_timer(identity="x"), "again"))

    assert world.ready.messages == {}
    assert world.events("revived") == []


def test_a_revived_attempt_is_granted_and_waits_for_nothing():
    watchdog = replace(a_timer(attempt=2), is_granted=False, not_before=NOON + timedelta(hours=1))

    revived = watchdog.revived(attempt=2, due_at=NOON)

    assert (revived.is_granted, revived.wakes_at, revived.attempt) == (True, NOON, 2)
    assert str(job_id_of(revived.job)) == str(job_id_of(watchdog.job))
    assert revived.backoff >= SECOND
