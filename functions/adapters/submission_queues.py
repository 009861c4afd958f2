"""Submission queues on SQS: two standard queues for each tenant that may send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from functions.domain.instants import SECOND, from_ms
from functions.domain.jobs.submission_queues import queue_name, refused_name, tenant_of
from functions.ports.submission_queues import SentMessage, TooLarge

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_MOST_BYTES = 1_048_576
"""https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html"""


class SqsSubmissionQueues:
    """urls, refused_urls: of the queues; the last part of each is a name that has its tenant in it."""

    def __init__(self, client: SQSClient, *, stage: str, urls: Sequence[str], refused_urls: Sequence[str]) -> None:
        self._client = client
        self._stage = stage
        self._urls = {url.rsplit("/", 1)[-1]: url for url in (*urls, *refused_urls)}

    def hide(self, message: SentMessage, wait: timedelta) -> None:
        """A request."""
        self._client.change_message_visibility(
            QueueUrl=self._urls[queue_name(self._stage, message.tenant)],
            ReceiptHandle=message.receipt,
            VisibilityTimeout=-(-wait // SECOND),
        )

    def send_on(self, tenant: str, body: str, attributes: Mapping[str, str]) -> None:
        """A request for each 64 KB."""
        self._send(queue_name(self._stage, tenant), body, attributes)

    def refuse(self, tenant: str, body: str, attributes: Mapping[str, str]) -> None:
        """A request for each 64 KB."""
        self._send(refused_name(self._stage, tenant), body, attributes)

    def _send(self, name: str, body: str, attributes: Mapping[str, str]) -> None:
        size = len(body.encode()) + sum(
            len(part.encode()) for key, value in attributes.items() for part in (key, _TYPE, value)
        )
        if size > _MOST_BYTES:
            raise TooLarge(f"{size} bytes")
        self._client.send_message(
            QueueUrl=self._urls[name],
            MessageBody=body,
            MessageAttributes={
                key: {"DataType": _TYPE, "StringValue": value} for key, value in attributes.items() if value
            },
        )


_TYPE = "String"


def queue_of(record: Mapping[str, Any]) -> str:
    """The name of the queue that an event source mapping brings a message from."""
    return record["eventSourceARN"].rsplit(":", 1)[-1]


def sent_message(record: Mapping[str, Any], *, stage: str) -> SentMessage:
    """A message as an event source mapping of Lambda brings it. Raises ValueError for one of no submission queue."""
    given = record["attributes"]
    return SentMessage(
        message_id=record["messageId"],
        tenant=tenant_of(stage, queue_of(record)),
        body=record["body"],
        receipt=record["receiptHandle"],
        sent_at=from_ms(int(given["SentTimestamp"])),
        sender=given.get("SenderId", ""),
        receive_count=int(given["ApproximateReceiveCount"]),
        attributes={
            name: attribute["stringValue"]
            for name, attribute in record.get("messageAttributes", {}).items()
            if attribute.get("stringValue")
        },
    )
