"""How the code of the shop is tested: its submissions without a scheduler, what jobs call on moto."""

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import create_autospec

import boto3
import pytest
from moto import mock_aws
from orders import REMIND_AFTER, charge, export, remind, report

from testkit.builders import an_invocation
from tickwheel.client import Client

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Moto in place of AWS, and credentials that work nowhere else."""
    for key in KEYS:
        monkeypatch.setenv(key, "FOOBARKEY")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        yield


def message(*, amount: int, fence: int, key: str = "acme#charge-7") -> dict[str, Any]:
    """A message as a job sends it to a queue."""
    attributes = {
        "tickwheel-job-id": "j1~acme~2e~a0~1~b0~x",
        "tickwheel-tenant": "acme",
        "tickwheel-idempotency-key": key,
        "tickwheel-attempt": "1",
        "tickwheel-fence": str(fence),
    }
    return {
        "Body": json.dumps({"amount": amount}),
        "MessageAttributes": {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()},
    }


@pytest.fixture
def rows(aws: None) -> str:
    boto3.client("dynamodb").create_table(
        TableName="rows",
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return "rows"


def test_an_owner_is_reminded_after_three_days_and_once() -> None:
    client = create_autospec(Client, instance=True)  # takes only the arguments that the client takes

    remind(client, shop="acme", invoice=7)

    (call,) = client.submit.call_args_list
    assert call.kwargs["delay"] == REMIND_AFTER
    assert call.kwargs["idempotency_key"] == "remind-7"
    assert call.kwargs["payload"] == {"invoice": 7}


def test_a_job_that_is_called_twice_charges_once(rows: str) -> None:
    assert charge(message(amount=10, fence=1), table=rows)
    assert not charge(message(amount=10, fence=2), table=rows)


def test_an_attempt_that_comes_back_behind_a_later_one_changes_nothing(rows: str) -> None:
    assert report(message(amount=10, fence=1), table=rows)
    assert report(message(amount=12, fence=2), table=rows)
    assert not report(message(amount=10, fence=1), table=rows)

    kept = boto3.client("dynamodb").get_item(TableName=rows, Key={"key": {"S": "acme#charge-7"}})["Item"]
    assert kept["amount"] == {"N": "12"}


@pytest.mark.usefixtures("aws")
def test_an_export_that_runs_twice_is_one_object() -> None:
    boto3.client("s3").create_bucket(Bucket="exports")
    payload = {"bucket": "exports", "rows": [1, 2]}

    first = export(payload, an_invocation(attempt=1, fence=1))
    second = export(payload, an_invocation(attempt=2, fence=2))

    assert first == second
    (found,) = boto3.client("s3").list_objects_v2(Bucket="exports")["Contents"]
    assert found["Key"] == "acme/acme#x.json"
