"""What the other tests take for granted about the engine they run on."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError

from testkit.dynamodb_local import DynamoDBLocal

pytestmark = pytest.mark.dynamodb_local

KEY = {"pk": {"S": "a"}}


@pytest.fixture
def table(dynamodb_local: DynamoDBLocal) -> Iterator[str]:
    name = f"table-{uuid4()}"
    dynamodb_local.client().create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    yield name
    dynamodb_local.client().delete_table(TableName=name)


def test_a_row_of_1024_bytes_costs_one_unit_and_one_byte_more_costs_two(
    dynamodb_local: DynamoDBLocal, table: str
) -> None:
    def units(size: int) -> float:
        item = {**KEY, "v": {"B": b"x" * (size - len("pk") - len("a") - len("v"))}}
        answer = dynamodb_local.client().put_item(TableName=table, Item=item, ReturnConsumedCapacity="TOTAL")
        return answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)

    assert (units(1024), units(1025)) == (1.0, 2.0)


def test_a_lost_condition_returns_the_row_it_lost_to(dynamodb_local: DynamoDBLocal, table: str) -> None:
    client = dynamodb_local.client()
    client.put_item(TableName=table, Item={**KEY, "v": {"N": "1"}})

    with pytest.raises(ClientError) as lost:
        client.update_item(
            TableName=table,
            Key=KEY,
            UpdateExpression="SET v = :v",
            ConditionExpression="attribute_not_exists(pk)",
            ExpressionAttributeValues={":v": {"N": "2"}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )

    assert lost.value.response.get("Item") == {**KEY, "v": {"N": "1"}}


def test_a_transaction_writes_everything_or_nothing(dynamodb_local: DynamoDBLocal, table: str) -> None:
    client = dynamodb_local.client()
    client.put_item(TableName=table, Item=KEY)
    second = {"pk": {"S": "b"}}

    with pytest.raises(client.exceptions.TransactionCanceledException):
        client.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": table, "Item": second}},
                {"Put": {"TableName": table, "Item": KEY, "ConditionExpression": "attribute_not_exists(pk)"}},
            ]
        )

    assert "Item" not in client.get_item(TableName=table, Key=second)
