"""Errors about operations."""

from __future__ import annotations

from datetime import timedelta

from functions.domain.errors.general import TickwheelError


class OperationNotFound(TickwheelError):
    """A tenant has no such operation, or it ended long ago."""

    def __init__(self, tenant: str, operation_id: str) -> None:
        super().__init__(f"tenant {tenant} has no operation {operation_id[:80]}: look at the list of its operations")


class TooManyOperations(TickwheelError):
    """A tenant has as many open operations as it may have. retry_after: when one of them may have ended."""

    def __init__(self, tenant: str, *, limit: int, retry_after: timedelta) -> None:
        super().__init__(
            f"tenant {tenant} has {limit} operations that are not over, which is the most there may be: wait for the end "
            "of one, or stop one"
        )
        self.retry_after = retry_after
