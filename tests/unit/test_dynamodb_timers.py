"""How the timer store takes the faults that moto and DynamoDB Local do not have."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from functions.adapters.dynamodb_timers import DynamoDBTimerStore
from functions.domain.job import Timer
from functions.domain.timer_key import timer_key
from tests.builders import LOCAL_WHEEL, NOON, a_timer
from tests.fakes import FakeClock


@dataclass
class ScriptedDynamoDB:
    """Leaves these sort keys unprocessed, or raises."""

    unprocessed: set[str] = field(default_factory=set)
    error: Exception | None = None
    batches: list[int] = field(default_factory=list)
    transactions: list[dict[str, Any]] = field(default_factory=list)

    def put_item(self, **_: Any) -> None:
        if self.error is not None:
            raise self.error

    def transact_write_items(self, **request: Any) -> None:
        self.transactions.append(request)
        if self.error is not None:
            raise self.error

    def batch_write_item(self, *, RequestItems: dict[str, list[Any]]) -> dict[str, Any]:  # noqa: N803
        if self.error is not None:
            raise self.error
        requests = RequestItems["timers"]
        self.batches.append(len(requests))
        left = [request for request in requests if request["PutRequest"]["Item"]["s"]["S"] in self.unprocessed]
        return {"UnprocessedItems": {"timers": left}} if left else {"UnprocessedItems": {}}


@pytest.fixture
def client() -> ScriptedDynamoDB:
    return ScriptedDynamoDB()


@pytest.fixture
def store(client: ScriptedDynamoDB) -> Iterator[DynamoDBTimerStore]:
    with ThreadPoolExecutor(2) as pool:
        yield DynamoDBTimerStore(
            # Whatever places a timer makes one attempt: it goes through the writer alone.
            cast("Any", None),
            "timers",
            writer=cast("Any", client),
            wheel=LOCAL_WHEEL,
            clock=FakeClock(),
            pool=pool,
            ledger_table="ledger",
        )


def test_timers_are_written_25_at_a_time(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    assert store.put([a_timer() for _ in range(60)]) == []
    assert sorted(client.batches) == [10, 25, 25]


def test_what_a_batch_left_unprocessed_is_given_back(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    timers = [a_timer(due_at=NOON + timedelta(seconds=number)) for number in range(30)]
    client.unprocessed = {key(timers[3]), key(timers[29])}

    assert store.put(timers) == [timers[3], timers[29]]


def test_both_of_two_equal_timers_are_given_back(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    twins = [a_timer(identity="same"), a_timer(identity="same")]
    client.unprocessed = {key(twins[0])}

    assert store.put(twins) == twins


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "error",
    [
        ConnectTimeoutError(endpoint_url="https://x"),
        ClientError({"Error": {"Code": "ThrottlingException"}}, "PutItem"),
    ],
    ids=["timeout", "throttled"],
)
def test_a_write_without_an_answer_is_given_back_as_not_known_to_be_written(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB, error: Exception, count: int
):
    timers = [a_timer() for _ in range(count)]
    client.error = error

    assert store.put(timers) == timers


@pytest.mark.parametrize("count", [1, 2])
def test_a_write_that_is_wrong_is_an_error(store: DynamoDBTimerStore, client: ScriptedDynamoDB, count: int):
    client.error = ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "PutItem")

    with pytest.raises(ClientError):
        store.put([a_timer() for _ in range(count)])


def test_a_registered_timer_is_written_in_one_transaction_with_the_check_of_its_row(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB
):
    assert store.put_registered(a_timer(identity="x")) is True

    check, put = client.transactions[0]["TransactItems"]
    assert (check["ConditionCheck"]["TableName"], check["ConditionCheck"]["Key"]) == ("ledger", {"k": {"S": "acme#x"}})
    assert put["Put"]["TableName"] == "timers"


def test_a_registered_timer_whose_row_does_not_wait_is_not_written(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    client.error = a_cancelled_transaction("ConditionalCheckFailed", "None")

    assert store.put_registered(a_timer()) is False


@pytest.mark.parametrize("reason", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_registered_timer_whose_transaction_met_another_is_not_known_to_be_written(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB, reason: str
):
    client.error = a_cancelled_transaction("None", reason)

    assert store.put_registered(a_timer()) is None


def test_a_registered_timer_without_an_answer_is_not_known_to_be_written(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB
):
    client.error = ConnectTimeoutError(endpoint_url="https://x")

    assert store.put_registered(a_timer()) is None


def test_a_registered_timer_whose_transaction_is_wrong_is_an_error(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    client.error = a_cancelled_transaction("None", "ValidationError")

    with pytest.raises(ClientError):
        store.put_registered(a_timer())


def a_cancelled_transaction(*codes: str) -> ClientError:
    answer: Any = {
        "Error": {"Code": "TransactionCanceledException"},
        "CancellationReasons": [{"Code": code} for code in codes],
    }
    return ClientError(answer, "TransactWriteItems")


def key(timer: Timer) -> str:
    return timer_key(timer.job, due_at=timer.due_at)
