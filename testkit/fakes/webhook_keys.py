"""The master keys of a stage, given."""

from __future__ import annotations

from dataclasses import dataclass

from functions.domain.targets.webhooks import WebhookKey

MASTER = WebhookKey("k1", b"m" * 64)


@dataclass
class GivenWebhookKeys:
    """What the secret says at the moment."""

    keys: tuple[WebhookKey, ...] = (MASTER,)

    def masters(self) -> tuple[WebhookKey, ...]:
        return self.keys

    def read(self) -> tuple[WebhookKey, ...]:
        return self.keys
