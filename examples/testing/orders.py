"""The code of a shop that uses Tickwheel: it submits a job, and has a queue and a handler that jobs call."""

import json
from datetime import timedelta
from typing import Any

import boto3
from botocore.exceptions import ClientError

from tickwheel.client import Client

REMIND_AFTER = timedelta(days=3)
CHARGES = "https://sqs.us-east-1.amazonaws.com/123456789012/charges"


def remind(client: Client, *, shop: str, invoice: int) -> str:
    """Has the owner of an invoice reminded in three days. Twice is the same as once: the key is the invoice's."""
    submission = client.submit(
        "https://shop.example/hooks/remind",
        tenant=shop,
        payload={"invoice": invoice},
        delay=REMIND_AFTER,
        idempotency_key=f"remind-{invoice}",
    )
    return submission.id


def charge(message: dict[str, Any], *, table: str) -> bool:
    """Charges what a message of the queue asks for. Returns False for a job that has been charged before.

    message: as SQS gives it, with its attributes. table: of the charges, with the partition key `key`. Every attempt of a job has the
    same key.
    """
    return _put(message, table=table, condition="attribute_not_exists(#key)")


def report(message: dict[str, Any], *, table: str) -> bool:
    """Keeps the figures that a message has. Returns False for an attempt that was thought dead and comes back behind a later one.

    The later attempt has the larger fence, and its figures stay.
    """
    return _put(message, table=table, condition="attribute_not_exists(#key) OR fence < :fence")


def _put(message: dict[str, Any], *, table: str, condition: str) -> bool:
    attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    row = {
        "key": {"S": attributes["tickwheel-idempotency-key"]},
        "fence": {"N": attributes["tickwheel-fence"]},
        "amount": {"N": str(json.loads(message["Body"])["amount"])},
    }
    values = {"ExpressionAttributeValues": {":fence": row["fence"]}} if ":fence" in condition else {}
    try:
        boto3.client("dynamodb").put_item(
            TableName=table,
            Item=row,
            ConditionExpression=condition,
            ExpressionAttributeNames={"#key": "key"},
            **values,
        )
    except ClientError as error:
        if error.response["Error"]["Code"] == "ConditionalCheckFailedException":
            return False
        raise
    return True


def export(payload: Any, invocation: Any) -> Any:
    """Writes a shop's export into its bucket, under the name of the job: the same job writes the same object again."""
    name = f"{invocation.tenant}/{invocation.idempotency_key}.json"
    boto3.client("s3").put_object(Bucket=payload["bucket"], Key=name, Body=json.dumps(payload["rows"]).encode())
    return {"object": name}
