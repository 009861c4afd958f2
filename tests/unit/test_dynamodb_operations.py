"""How the store of operations takes the transactions of others, which moto and DynamoDB Local do not show."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from functions.adapters.dynamodb.operations import DynamoDBOperationStore
from functions.adapters.dynamodb.table import Table
from functions.domain.operations.operation import JobFilter, Operation, OperationKind, OperationState
from functions.domain.operations.record import encode_operation
from testkit.builders import NOON
from tests.unit.conflicts import ConflictingDynamoDB, a_cancelled_transaction, a_client_error

OPERATION = Operation(
    operation_id="o1",
    action=OperationKind.CANCEL,
    wanted=JobFilter(tenant="acme", due_from=NOON),
    caller="ann",
    created_at=NOON,
    state=OperationState.RUNNING,
    owner="me",
)

pytestmark = pytest.mark.usefixtures("pauses")
ENDED = replace(OPERATION, state=OperationState.DONE, ended_at=NOON)
RECORD = encode_operation(OPERATION)
ROW = {"t": "acme", "i": "operation#o1", "s": "running", "o": "me", "j": RECORD.asked, "g": RECORD.progress}

CALLS: dict[str, tuple[Callable[[DynamoDBOperationStore], Any], Any]] = {
    "create": (lambda operations: operations.create(OPERATION), None),
    "take": (
        lambda operations: operations.take(
            "acme", "o1", owner="me", lease_until=NOON, now=NOON, skew=timedelta(seconds=5)
        ),
        OPERATION,
    ),
    "save": (lambda operations: operations.save(OPERATION, lease_until=None), OPERATION),
    "finish": (lambda operations: operations.finish(ENDED), True),
    "stop": (lambda operations: operations.stop("acme", "o1"), OPERATION),
}


@pytest.fixture
def client() -> ConflictingDynamoDB:
    return ConflictingDynamoDB(attributes={name: {"S": value} for name, value in ROW.items()})


@pytest.fixture
def operations(client: ConflictingDynamoDB) -> DynamoDBOperationStore:
    return DynamoDBOperationStore(Table(cast("Any", client), "tenants"))


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_meets_a_transaction_on_its_row_is_made_again(
    operations: DynamoDBOperationStore, client: ConflictingDynamoDB, name: str
):
    call, answer = CALLS[name]
    client.conflicts = 4

    assert call(operations) == answer
    assert len(client.calls) == 5


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("error", [a_client_error("ValidationException"), a_cancelled_transaction("ValidationError")])
def test_any_other_error_is_raised_at_once(
    operations: DynamoDBOperationStore, client: ConflictingDynamoDB, name: str, error: ClientError
):
    client.error = error

    with pytest.raises(ClientError):
        CALLS[name][0](operations)
    assert len(client.calls) == 1
