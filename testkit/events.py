"""The events that AWS hands to a Lambda, as small as they may be."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode


@dataclass(frozen=True, slots=True)
class Context:
    """What a Lambda receives about its own invocation."""

    remaining_ms: int = 60_000
    function_name: str = "function"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:function"
    aws_request_id: str = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


def a_request(
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: dict[str, str] | None = None,
    raw: str | None = None,
    is_base64: bool = False,
    route_key: str | None = None,
    query: dict[str, Any] | None = None,
    caller: str | None = None,
    token: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """An HTTP API event, payload version 2.0.

    raw: the body as text, instead of a value to be written as JSON. caller: the ARN of who signed it.
    token: the claims of the token that came with it instead.
    """
    text = raw if raw is not None else json.dumps(body) if body is not None else None
    if text is not None and is_base64:
        text = base64.b64encode(text.encode()).decode()
    return {
        "version": "2.0",
        "routeKey": route_key or f"{method} {path}",
        "rawPath": path,
        "rawQueryString": urlencode(query or {}),
        **({"queryStringParameters": {name: str(value) for name, value in query.items()}} if query else {}),
        "headers": {"content-type": "application/json", **(headers or {})},
        "requestContext": {
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1"},
            "requestId": "request-1",
            "stage": "$default",
            **({"authorizer": {"iam": {"userArn": caller}}} if caller else {}),
            **({"authorizer": {"jwt": {"claims": token, "scopes": None}}} if token is not None else {}),
        },
        "body": text,
        "isBase64Encoded": is_base64,
    }


def an_sqs_event(messages: list[Any], *, queue: str, receive_count: int | None = None) -> dict[str, Any]:
    """The event of an SQS event source mapping, made from what `receive_message` gave."""
    return {
        "Records": [
            {
                "messageId": message["MessageId"],
                "receiptHandle": message["ReceiptHandle"],
                "body": message["Body"],
                "attributes": {
                    "ApproximateReceiveCount": str(receive_count or message["Attributes"]["ApproximateReceiveCount"]),
                    "SentTimestamp": message["Attributes"]["SentTimestamp"],
                    "SenderId": "AROAEXAMPLE:session",
                    "ApproximateFirstReceiveTimestamp": message["Attributes"]["ApproximateFirstReceiveTimestamp"],
                },
                "messageAttributes": {
                    name: {"stringValue": attribute["StringValue"], "dataType": attribute["DataType"]}
                    for name, attribute in message.get("MessageAttributes", {}).items()
                },
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
            }
            for message in messages
        ]
    }
