"""A gate that nobody limits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime


class OpenGate:
    """Lets in whatever comes."""

    def admit(self, tenant: str, due_ats: Sequence[datetime]) -> int:
        """All of them."""
        return len(due_ats)

    def begin(self, tenant: str) -> None:
        """It may."""

    def note(self, tenant: str, due_ats: Sequence[datetime]) -> None:
        """Forgotten."""
