"""Errors of no feature: what the others are kinds of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any


class TickwheelError(Exception):
    """Base of every error that Tickwheel raises on purpose."""


class InvalidInput(TickwheelError, ValueError):
    """A value from outside is refused. field: the part that is wrong, value: what was given; where that is known."""

    def __init__(self, message: str, *, field: str = "", value: Any = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value


class Undecodable(TickwheelError):
    """A stored or queued body was not written by Tickwheel, or by a newer one. Its text repeats nothing of the body."""


class NewerVersion(Undecodable):
    """A body was written by a newer Tickwheel: where two versions run side by side, another function can read it."""


class Busy(TickwheelError):
    """Rows kept changing while they were being changed, and this was not written. retry_after: when to ask again."""

    retry_after = timedelta(seconds=1)

    def __init__(self, text: str = "others keep changing what this would change: ask for it again") -> None:
        super().__init__(text)
