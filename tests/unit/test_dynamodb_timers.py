"""How the timer store takes the faults that moto and DynamoDB Local do not have."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from functions.adapters.dynamodb_timers import DynamoDBTimerStore
from tests.builders import LOCAL_WHEEL, NOON, a_timer
from tests.fakes import FakeClock, sort_key


@dataclass
class ScriptedDynamoDB:
    """Leaves these sort keys unprocessed, or raises."""

    unprocessed: set[str] = field(default_factory=set)
    error: Exception | None = None
    batches: list[int] = field(default_factory=list)

    def put_item(self, **_: Any) -> None:
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
        yield DynamoDBTimerStore(cast("Any", client), "timers", wheel=LOCAL_WHEEL, clock=FakeClock(), pool=pool)


def test_timers_are_written_25_at_a_time(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    assert store.put([a_timer() for _ in range(60)]) == []
    assert sorted(client.batches) == [10, 25, 25]


def test_what_a_batch_left_unprocessed_is_given_back(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    timers = [a_timer(due_at=NOON + timedelta(seconds=number)) for number in range(30)]
    client.unprocessed = {sort_key(timers[3]), sort_key(timers[29])}

    assert store.put(timers) == [timers[3], timers[29]]


def test_both_of_two_equal_timers_are_given_back(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    twins = [a_timer(identity="same"), a_timer(identity="same")]
    client.unprocessed = {sort_key(twins[0])}

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
