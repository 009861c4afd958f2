"""The queues that jobs are sent to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """A message of a tenant's submission queue. receipt: of this receive. sent_at: when SQS took it.

    sender: the unique id of the user or role that sent it, as SQS says. attributes: those that are texts.
    """

    message_id: str
    tenant: str
    body: str
    receipt: str
    sent_at: datetime
    sender: str
    receive_count: int
    attributes: Mapping[str, str] = field(default_factory=dict)


class SubmissionQueues(Protocol):
    """A queue for each tenant that may send, and one beside it for what was refused."""

    def hide(self, message: SentMessage, wait: timedelta) -> None:
        """Let a received message come again only then."""
        ...

    def send_on(self, tenant: str, body: str, attributes: Mapping[str, str]) -> None:
        """Send what is left of a message to the same queue. Raises TooLarge; otherwise it is in the queue for good."""
        ...

    def refuse(self, tenant: str, body: str, attributes: Mapping[str, str]) -> None:
        """Keep what is refused where the tenant finds it. Raises TooLarge; otherwise it is in the queue for good."""
        ...


class TooLarge(Exception):
    """A message with more bytes than a queue takes."""
