"""How the store of schedules takes the transactions of others, which moto and DynamoDB Local do not show."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from functions.adapters import dynamodb_schedules
from functions.adapters.dynamodb_schedules import DynamoDBScheduleStore
from functions.domain.planning import Plan
from functions.domain.schedule_state import SkipReason
from functions.ports import Applied
from tests.builders import NOON, a_link, a_state, a_stored_schedule

KEY = "acme#nightly"


@dataclass
class ConflictingDynamoDB:
    """Meets other transactions so many times, or raises an error of its own."""

    conflicts: int = 0
    error: ClientError | None = None
    calls: list[str] = field(default_factory=list)

    def update_item(self, **_: Any) -> dict[str, Any]:
        self._meet("update_item", a_client_error("TransactionConflictException"))
        return {"Attributes": {"f": {"SS": ["a", "b"]}}}

    def transact_write_items(self, **_: Any) -> None:
        self._meet("transact_write_items", a_cancelled_transaction("None", "TransactionConflict"))

    def transact_get_items(self, **_: Any) -> dict[str, Any]:
        self._meet("transact_get_items", a_cancelled_transaction("TransactionConflict", "None"))
        return {"Responses": [{}, {}]}

    def _meet(self, call: str, conflict: ClientError) -> None:
        self.calls.append(call)
        if self.error is not None:
            raise self.error
        if len(self.calls) <= self.conflicts:
            raise conflict


def a_client_error(code: str, **more: Any) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": ""}, **more}
    return ClientError(response, "Any")


def a_cancelled_transaction(*reasons: str) -> ClientError:
    return a_client_error("TransactionCanceledException", CancellationReasons=[{"Code": code} for code in reasons])


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made."""
    made: list[float] = []
    monkeypatch.setattr(dynamodb_schedules.time, "sleep", made.append)
    return made


@pytest.fixture
def client() -> ConflictingDynamoDB:
    return ConflictingDynamoDB()


@pytest.fixture
def schedules(client: ConflictingDynamoDB) -> DynamoDBScheduleStore:
    return DynamoDBScheduleStore(cast("Any", client), definitions="schedules", states="schedule_state")


CALLS: dict[str, tuple[Callable[[DynamoDBScheduleStore], Any], Any]] = {
    "get": (lambda schedules: schedules.get(KEY), (None, None)),
    "change": (lambda schedules: schedules.change(a_stored_schedule(), a_state(), seen=None), True),
    "advance": (
        lambda schedules: schedules.advance(
            KEY, Plan(link=a_link()), version=1, before=a_link(), rings_at=NOON, history=1
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
    assert pauses == sorted(pauses)
    assert timedelta(seconds=sum(pauses)) < timedelta(seconds=1)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_meets_one_transaction_after_the_other_fails(
    schedules: DynamoDBScheduleStore, client: ConflictingDynamoDB, name: str
):
    client.conflicts = 5

    with pytest.raises(ClientError):
        CALLS[name][0](schedules)
    assert len(client.calls) == 5


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
