"""How the store of schedules takes the transactions of others, which moto and DynamoDB Local do not show."""

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from functions.adapters.dynamodb.schedules import TRIES_OF_SUMS, DynamoDBScheduleStore
from functions.adapters.dynamodb.table import Table
from functions.domain.errors import Busy, ScheduleBusy
from functions.domain.schedules.due_fires import DueFires
from functions.domain.schedules.load import Share
from functions.domain.schedules.state import SkipReason
from functions.ports.ledger import Applied
from functions.runtime.deadline import ANSWER_WITHIN
from testkit.builders import NOON, a_link, a_state, a_stored_schedule
from tests.unit.conflicts import ConflictingDynamoDB, a_cancelled_transaction, a_client_error

pytestmark = pytest.mark.usefixtures("pauses")

KEY = "acme#nightly"


@pytest.fixture
def client() -> ConflictingDynamoDB:
    return ConflictingDynamoDB(attributes={"f": {"SS": ["a", "b"]}})


@pytest.fixture
def schedules(client: ConflictingDynamoDB) -> DynamoDBScheduleStore:
    return a_store(client)


CALLS: dict[str, tuple[Callable[[DynamoDBScheduleStore], Any], Any]] = {
    "get": (lambda schedules: schedules.get(KEY), (None, None)),
    "change": (lambda schedules: schedules.change(a_stored_schedule(), a_state(), seen=None), True),
    "advance": (
        lambda schedules: schedules.advance(
            KEY, DueFires(link=a_link()), version=1, before=a_link(), alarm_at=NOON, history=1
        ),
        Applied(),
    ),
    "take_slot": (lambda schedules: schedules.take_slot(KEY, "me", seen=a_state(), now=NOON), True),
    "wait_for_slot": (lambda schedules: schedules.wait_for_slot(KEY, "me", seen=a_state(), now=NOON), True),
    "note_skip": (lambda schedules: schedules.note_skip(KEY, SkipReason.PAUSED, fire_at=NOON), None),
    "note_failure": (lambda schedules: schedules.note_failure(KEY, "a"), 2),
    "forget_failures": (lambda schedules: schedules.forget_failures(KEY), None),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_meets_a_transaction_on_its_row_is_made_again(
    schedules: DynamoDBScheduleStore, client: ConflictingDynamoDB, pauses: list[float], name: str
):
    call, answer = CALLS[name]
    client.conflicts = 4

    assert call(schedules) == answer
    assert len(client.calls) == 5
    assert timedelta(seconds=sum(pauses)) < timedelta(seconds=1)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_meets_one_transaction_after_the_other_fails(
    schedules: DynamoDBScheduleStore, client: ConflictingDynamoDB, name: str
):
    client.conflicts = 5

    with pytest.raises(Busy):
        CALLS[name][0](schedules)
    assert len(client.calls) == 5


def test_a_change_of_what_a_tenant_comes_to_waits_for_its_turn_as_long_as_a_request_may(
    client: ConflictingDynamoDB, pauses: list[float], monkeypatch: pytest.MonkeyPatch
):
    schedules = a_store(client, tries_of_sums=TRIES_OF_SUMS)
    monkeypatch.setattr(random, "uniform", lambda _least, most: most)
    counted = replace(a_state(), share=Share(a_state().version, 60))
    client.conflicts = TRIES_OF_SUMS - 1

    assert schedules.change(a_stored_schedule(), counted, seen=None)
    assert len(client.calls) == TRIES_OF_SUMS
    assert ANSWER_WITHIN / 2 < sum(pauses) < 0.8 * ANSWER_WITHIN

    client.conflicts = 2 * TRIES_OF_SUMS
    with pytest.raises(ScheduleBusy, match="nightly"):
        schedules.change(a_stored_schedule(), counted, seen=None)
    assert len(client.calls) == 2 * TRIES_OF_SUMS


def test_a_change_that_no_request_waits_for_holds_nobody_up(
    schedules: DynamoDBScheduleStore, client: ConflictingDynamoDB, pauses: list[float]
):
    client.conflicts = TRIES_OF_SUMS

    with pytest.raises(ScheduleBusy, match="nightly"):
        schedules.change(a_stored_schedule(), replace(a_state(), share=Share(a_state().version, 60)), seen=None)

    assert sum(pauses) < 1


def test_those_that_found_do_not_meet_again_at_the_same_moment(
    schedules: DynamoDBScheduleStore, client: ConflictingDynamoDB, pauses: list[float]
):
    client.conflicts = 2
    for _ in range(10):
        client.calls.clear()
        schedules.change(a_stored_schedule(), a_state(), seen=None)

    assert len(set(pauses)) == len(pauses) == 20


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("error", [a_client_error("ValidationException"), a_cancelled_transaction("ValidationError")])
def test_any_other_error_is_raised_at_once(
    schedules: DynamoDBScheduleStore, client: ConflictingDynamoDB, pauses: list[float], name: str, error: ClientError
):
    client.error = error

    with pytest.raises(ClientError):
        CALLS[name][0](schedules)
    assert (len(client.calls), pauses) == (1, [])


def test_a_change_that_is_refused_beside_a_conflict_is_refused(
    schedules: DynamoDBScheduleStore, client: ConflictingDynamoDB, pauses: list[float]
):
    client.error = a_cancelled_transaction("TransactionConflict", "ConditionalCheckFailed")

    assert not schedules.change(a_stored_schedule(), a_state(), seen=None)
    assert pauses == []


def a_store(client: ConflictingDynamoDB, **options: Any) -> DynamoDBScheduleStore:
    schedules, states = Table(cast("Any", client), "schedules"), Table(cast("Any", client), "schedule_state")
    return DynamoDBScheduleStore(schedules, states, **options)
