"""Submission queues in memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from functions.ports.submission_queues import SentMessage, TooLarge
from testkit.fakes.clock import FakeClock


@dataclass
class InMemorySubmissionQueues:
    """A list of messages, and a list of those that were refused. most_bytes: of a body."""

    clock: FakeClock
    messages: dict[str, SentMessage] = field(default_factory=dict)
    visible_at: dict[str, datetime] = field(default_factory=dict)
    refused: list[SentMessage] = field(default_factory=list)
    most_bytes: int = 1_048_576
    fails: Callable[[], None] = lambda: None
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def send(self, body: str, *, tenant: str = "acme", **attributes: str) -> str:
        """What a tenant does; the id of the message."""
        message = self._message(tenant, body, attributes)
        self.messages[message.message_id] = message
        self.visible_at[message.message_id] = self.clock.instant
        return message.message_id

    def receive(self, limit: int = 10) -> list[SentMessage]:
        """What is visible, hidden from others for three minutes."""
        now = self.clock.instant
        names = [name for name, at in self.visible_at.items() if at <= now][:limit]
        for name in names:
            seen = self.messages[name]
            self.messages[name] = replace(seen, receive_count=seen.receive_count + 1)
            self.visible_at[name] = now + timedelta(minutes=3)
        return [self.messages[name] for name in names]

    def delete(self, message_id: str) -> None:
        del self.messages[message_id], self.visible_at[message_id]

    def hide(self, message: SentMessage, wait: timedelta) -> None:
        self.visible_at[message.message_id] = self.clock.instant + wait

    def send_on(self, tenant: str, body: str, attributes: Mapping[str, str]) -> None:
        self._check(body)
        self.send(body, tenant=tenant, **attributes)

    def refuse(self, tenant: str, body: str, attributes: Mapping[str, str]) -> None:
        self._check(body)
        self.refused.append(self._message(tenant, body, attributes))

    def _check(self, body: str) -> None:
        self.fails()
        if len(body.encode()) > self.most_bytes:
            raise TooLarge

    def _message(self, tenant: str, body: str, attributes: Mapping[str, str]) -> SentMessage:
        number = next(self._numbers)
        return SentMessage(
            message_id=f"m{number}",
            tenant=tenant,
            body=body,
            receipt=f"r{number}",
            sent_at=self.clock.instant,
            sender="AROAEXAMPLE:session",
            receive_count=0,
            attributes={name: value for name, value in attributes.items() if value},
        )
