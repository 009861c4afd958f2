"""What a client has to know of a service that speaks one of AWS's JSON protocols, and what botocore's handlers ask about a call.

The names and numbers are those of botocore's models, which a test compares them with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.model import ServiceId


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One service: a botocore ServiceModel, of which its handlers use so much.

    operations: those that a client makes by itself. tokens: of an operation that takes one, its name; a call that is tried
    again has the same token, and is done once. retryable: of an operation the errors after which it is tried again, beside those
    of any service.
    is_query_compatible: it spoke another protocol before, and names its errors as it did then. has_blobs: its answers hold
    attribute values, of which some are in base64.
    """

    service_name: str
    service_id: ServiceId
    target: str
    json_version: str
    operations: tuple[str, ...]
    tokens: Mapping[str, str] = field(default_factory=dict[str, str])
    retryable: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    is_query_compatible: bool = False
    has_blobs: bool = False


@dataclass(frozen=True, slots=True)
class RetryableError:
    """A botocore Shape of an error."""

    name: str
    metadata: Mapping[str, Any] = field(default_factory=lambda: {"retryable": {"throttling": False}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A botocore OperationModel. events: the names of its events, by their first part. headers: those of every request."""

    name: str
    service_model: Service
    events: Mapping[str, str]
    headers: Mapping[str, str]
    idempotent_members: tuple[str, ...]
    error_shapes: tuple[RetryableError, ...]
    http_checksum: Mapping[str, str] = field(default_factory=dict[str, str])
    is_endpoint_discovery_operation: bool = False


DYNAMODB = Service(
    service_name="dynamodb",
    service_id=ServiceId("DynamoDB"),
    target="DynamoDB_20120810",
    json_version="1.0",
    operations=(
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "Scan",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateItem",
    ),
    tokens={"TransactWriteItems": "ClientRequestToken"},
    retryable=dict.fromkeys(
        ("BatchWriteItem", "DeleteItem", "PutItem", "UpdateItem"), ("ReplicatedWriteConflictException",)
    ),
    has_blobs=True,
)

SQS = Service(
    service_name="sqs",
    service_id=ServiceId("SQS"),
    target="AmazonSQS",
    json_version="1.0",
    operations=(
        "ChangeMessageVisibility",
        "ChangeMessageVisibilityBatch",
        "GetQueueAttributes",
        "SendMessage",
        "SendMessageBatch",
    ),
    is_query_compatible=True,
)

FIREHOSE = Service(
    service_name="firehose",
    service_id=ServiceId("Firehose"),
    target="Firehose_20150804",
    json_version="1.1",
    operations=("PutRecordBatch",),
)

_EVENTS = ("provide-client-params", "before-parameter-build", "before-call", "before-send", "needs-retry", "after-call")


def operations_of(service: Service) -> dict[str, Operation]:
    """The operations of a service, by the names of boto3's methods."""
    return {_method(name): _operation(service, name) for name in service.operations}


def _operation(service: Service, name: str) -> Operation:
    headers = {
        "X-Amz-Target": f"{service.target}.{name}",
        "Content-Type": f"application/x-amz-json-{service.json_version}",
    }
    token = service.tokens.get(name)
    return Operation(
        name=name,
        service_model=service,
        events={event: f"{event}.{service.service_id.hyphenize()}.{name}" for event in _EVENTS},
        headers=headers | ({"x-amzn-query-mode": "true"} if service.is_query_compatible else {}),
        idempotent_members=(token,) if token else (),
        error_shapes=tuple(map(RetryableError, service.retryable.get(name, ()))),
    )


def _method(operation: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
