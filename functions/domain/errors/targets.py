"""Errors about targets."""

from __future__ import annotations

from functions.domain.errors.general import TickwheelError


class InvalidPattern(TickwheelError, ValueError):
    """A pattern of the allowed targets is none, or allows nothing."""

    def __init__(self, pattern: str, remedy: str) -> None:
        super().__init__(f"targets has {pattern!r}: {remedy}")
        self.pattern = pattern


class MalformedWebhookSecret(TickwheelError):
    """The secret of the master keys is not what the stage made it; nothing of it is repeated."""

    def __init__(self, fault: str) -> None:
        super().__init__(f"the webhook secret {fault}: put one as docs/targets.md says")
