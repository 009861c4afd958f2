"""Each call of the lean client, through it and through boto3: what goes over the wire, and what comes of it."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from functions.adapters import clients
from functions.adapters.system_clock import SystemClock
from functions.adapters.wire.services import DYNAMODB, SQS, operations_of
from tests.contract.conftest import ON_DYNAMODB

Calls = list[tuple[str, dict[str, Any]]]

_WITHOUT_A_NEW_SESSION: Any = {"core": {"reset_boto3_session": False}}
TOKEN = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TABLE = "rows-of-a"
OTHER = "rows-of-b"

KEY = {"k": {"S": "acme#1"}}
ITEM = {
    **KEY,
    "text": {"S": 'a "quoted" \\ é 日本 \u2028 \x01 😀'},
    "n": {"N": "-12345678901234567890"},
    "b": {"B": bytes(range(256))},
    "B": {"S": "an attribute that is called as bytes are"},
    "bs": {"BS": [b"\0", b"B"]},
    "ss": {"SS": ["a", "b"]},
    "m": {"M": {"B": {"B": b"inner"}, "BS": {"L": [{"B": b""}, {"NULL": True}, {"BOOL": False}]}}},
}
REFUSED: dict[str, Any] = {
    "ConditionExpression": "attribute_not_exists(k)",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}
MINE = {":mine": {"S": "mine"}}
PUT = {"TableName": TABLE, "Item": ITEM}

CALLS: Calls = [
    ("get_item", {"TableName": TABLE, "Key": KEY}),
    ("put_item", PUT),
    ("put_item", {**PUT, **REFUSED}),
    ("put_item", {**PUT, "ConditionExpression": "attribute_not_exists(k)"}),
    ("get_item", {"TableName": TABLE, "Key": KEY, "ConsistentRead": True}),
    (
        "update_item",
        {
            "TableName": TABLE,
            "Key": KEY,
            "UpdateExpression": "SET #o = :mine REMOVE ss ADD f :one",
            "ConditionExpression": "attribute_exists(k)",
            "ExpressionAttributeNames": {"#o": "o"},
            "ExpressionAttributeValues": {**MINE, ":one": {"N": "1"}},
            "ReturnValues": "ALL_NEW",
        },
    ),
    (
        "update_item",
        {
            "TableName": TABLE,
            "Key": KEY,
            "UpdateExpression": "SET o = :mine",
            "ExpressionAttributeValues": MINE,
            **REFUSED,
        },
    ),
    (
        "query",
        {
            "TableName": TABLE,
            "KeyConditionExpression": "k = :k",
            "ExpressionAttributeValues": {":k": KEY["k"]},
            "Limit": 1,
            "ScanIndexForward": True,
        },
    ),
    ("scan", {"TableName": TABLE, "ConsistentRead": True, "Limit": 7}),
    ("batch_get_item", {"RequestItems": {TABLE: {"Keys": [KEY, {"k": {"S": "no"}}], "ConsistentRead": True}}}),
    (
        "batch_write_item",
        {
            "RequestItems": {
                TABLE: [{"PutRequest": {"Item": {**ITEM, "k": {"S": "acme#2"}}}}, {"DeleteRequest": {"Key": KEY}}]
            }
        },
    ),
    (
        "transact_write_items",
        {"TransactItems": [{"Put": PUT}, {"Delete": {"TableName": TABLE, "Key": {"k": {"S": "x"}}}}]},
    ),
    (
        "transact_write_items",
        {
            "ClientRequestToken": "a-token",
            "TransactItems": [
                {"Put": {**PUT, **REFUSED}},
                {"ConditionCheck": {"TableName": TABLE, "Key": {"k": {"S": "no"}}, **REFUSED}},
            ],
        },
    ),
    ("transact_get_items", {"TransactItems": [{"Get": {"TableName": TABLE, "Key": KEY}}]}),
    ("delete_item", {"TableName": TABLE, "Key": KEY, "ReturnValues": "ALL_OLD"}),
    ("delete_item", {"TableName": TABLE, "Key": KEY, "ReturnValues": "ALL_OLD"}),
    ("put_item", {"TableName": TABLE, "Item": {"another": {"S": "key"}}}),
    ("get_item", {"TableName": "no-such-table", "Key": KEY}),
]

ENTRIES = [
    {
        "Id": str(number),
        "MessageBody": body,
        "DelaySeconds": number,
        "MessageGroupId": "acme",
        "MessageAttributes": {"ring": {"DataType": "String", "StringValue": "far"}},
        "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-a-b"}},
    }
    for number, body in enumerate(['{"a": 1}', "é 日本 😀 \t"])
]


def queue_calls(url: str) -> Calls:
    """Those of a ready queue. Of messages that are there, and of what is refused."""
    return [
        ("send_message_batch", {"QueueUrl": url, "Entries": ENTRIES}),
        ("send_message", {"QueueUrl": url, "MessageBody": "é", "DelaySeconds": 0}),
        ("get_queue_attributes", {"QueueUrl": url, "AttributeNames": ["ApproximateNumberOfMessages"]}),
        ("change_message_visibility", {"QueueUrl": url, "ReceiptHandle": "no", "VisibilityTimeout": 3}),
        (
            "change_message_visibility_batch",
            {"QueueUrl": url, "Entries": [{"Id": "0", "ReceiptHandle": "no", "VisibilityTimeout": 3}]},
        ),
        ("send_message_batch", {"QueueUrl": url, "Entries": [ENTRIES[0], ENTRIES[0]]}),
        ("send_message_batch", {"QueueUrl": url.replace("ready", "none"), "Entries": ENTRIES}),
    ]


class Heard:
    """What a client sends, and what comes of it. All that differs from run to run is left out."""

    def __init__(self, client: Any) -> None:
        self.sent: list[bytes] = []
        self.came: list[Any] = []
        self._client = client
        client.meta.events.register_first("before-send", self._hear)

    def make(self, calls: Calls) -> None:
        for method, params in calls:
            try:
                self.came.append(known(getattr(self._client, method)(**params)))
            except ClientError as error:
                self.came.append((known(error.response), error.operation_name, str(error)))

    def _hear(self, request: Any, **_: Any) -> None:
        # Exactly the same but for blanks between its parts, and how a letter is written that is not in ASCII.
        self.sent.append(json.dumps(json.loads(TOKEN.sub(b"token", request.body))).encode())


def known(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Without what no two answers share, and without the text of an error where it stands a second time."""
    metadata = {name: value for name, value in answer["ResponseMetadata"].items() if name not in _OWN_TO_AN_ANSWER}
    taken = [{**part, "MessageId": ""} for part in answer.get("Successful", ())]
    kept = {name: value for name, value in answer.items() if name not in ("message", "Message", "MessageId")}
    return kept | {"ResponseMetadata": metadata} | ({"Successful": taken} if taken else {})


_OWN_TO_AN_ANSWER = ("RequestId", "HTTPHeaders")


def named(value: Any, *, before: str, now: str) -> Any:
    """With another name of a table."""
    if isinstance(value, dict):
        return {
            named(name, before=before, now=now): named(each, before=before, now=now) for name, each in value.items()
        }
    if isinstance(value, list | tuple):
        return type(value)(named(each, before=before, now=now) for each in value)
    return now if value == before else value


@pytest.fixture(params=ON_DYNAMODB)
def both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Any]]:
    """boto3's client and the lean one, with an engine that has a table for each."""
    with ExitStack() as stack:
        if request.param == "moto":
            stack.enter_context(mock_aws(config=_WITHOUT_A_NEW_SESSION))
        else:
            monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", request.getfixturevalue("dynamodb_local").endpoint_url)
        theirs = boto3.Session().client("dynamodb")
        for name in (TABLE, OTHER):
            theirs.create_table(
                TableName=name,
                KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
        yield theirs, clients.dynamodb(SystemClock())
        for name in (TABLE, OTHER):
            theirs.delete_table(TableName=name)


def test_a_call_of_dynamodb_is_sent_and_answered_as_by_boto3(both: tuple[Any, Any]) -> None:
    theirs, ours = map(Heard, both)

    theirs.make(CALLS)
    ours.make(named(CALLS, before=TABLE, now=OTHER))

    assert [body.replace(OTHER.encode(), TABLE.encode()) for body in ours.sent] == theirs.sent
    for (method, _), expected, found in zip(CALLS, theirs.came, ours.came, strict=True):
        assert named(found, before=OTHER, now=TABLE) == expected, method
    assert {method for method, _ in CALLS} == set(operations_of(DYNAMODB))


def test_a_call_of_sqs_is_sent_and_answered_as_by_boto3() -> None:
    with mock_aws(config=_WITHOUT_A_NEW_SESSION):
        both = boto3.Session().client("sqs"), clients.sqs()
        calls = queue_calls(both[0].create_queue(QueueName="ready")["QueueUrl"])
        theirs, ours = map(Heard, both)
        theirs.make(calls)
        ours.make(calls)

    assert ours.sent == theirs.sent
    for (method, _), expected, found in zip(calls, theirs.came, ours.came, strict=True):
        assert counted(found) == counted(expected), method
    assert {method for method, _ in calls} == set(operations_of(SQS))


def counted(found: Any) -> Any:
    """How many messages there are is another number after the calls of the first."""
    return {**found, "Attributes": set(found["Attributes"])} if "Attributes" in found else found


def test_a_call_of_firehose_is_sent_and_answered_as_by_boto3() -> None:
    records = {"DeliveryStreamName": "audit", "Records": [{"Data": b'{"a": 1}\n'}, {"Data": bytes(range(256))}]}
    with mock_aws(config=_WITHOUT_A_NEW_SESSION):
        theirs, ours = map(Heard, (clients._client("firehose", clients._config(1, seconds=1)), clients.firehose()))
        theirs.make([("put_record_batch", records)])
        ours.make([("put_record_batch", records)])

    assert ours.sent == theirs.sent
    assert ours.came == theirs.came
