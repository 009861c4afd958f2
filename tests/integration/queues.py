"""Queues as moto keeps them, for what SQS does not show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def messages_of(url: str) -> Sequence[Any]:
    """All messages of a queue: those that wait, are delayed, or are hidden until they are acknowledged."""
    return _queue(url)._messages


def hidden_receipts(url: str) -> list[str]:
    """Receipts of what was received and not acknowledged."""
    return [message.receipt_handle for message in _queue(url).pending_messages if message.receipt_handle]


def _queue(url: str) -> Any:
    from moto.sqs.models import sqs_backends

    return sqs_backends["123456789012"]["us-east-1"].get_queue(url.rsplit("/", 1)[-1])
