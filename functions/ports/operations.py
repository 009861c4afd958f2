"""Operations over many jobs, and what they write out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from functions.domain.operations.operation import Operation


class OperationStore(Protocol):
    """Operations, and which of them are open, oldest first."""

    def create(self, operation: Operation) -> Operation | None:
        """Keep a new operation as an open one; the one that has its id already, where there is one."""
        ...

    def get(self, tenant: str, operation_id: str) -> Operation | None:
        """The operation, as of all writes before."""
        ...

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[Operation], bool]:
        """A tenant's operations behind an id, in the order of their ids; whether there are more."""
        ...

    def open(self, *, limit: int) -> list[tuple[str, str]]:
        """Tenants and ids of operations that are not over, oldest first."""
        ...

    def take(
        self, tenant: str, operation_id: str, *, owner: str, lease_until: datetime, now: datetime, skew: timedelta
    ) -> Operation | None:
        """Take the lease of an open operation; None while another has it, or when it is over."""
        ...

    def save(self, operation: Operation, *, lease_until: datetime | None) -> Operation | None:
        """Record progress and prolong the lease, or give it back (None); what is recorded then.

        None when somebody else has taken it.
        """
        ...

    def finish(self, operation: Operation) -> bool:
        """Record how it ended; False when somebody else has taken it."""
        ...

    def stop(self, tenant: str, operation_id: str) -> Operation | None:
        """Ask that it ends at its next step; None when there is none such. Nothing happens when it is over."""
        ...


class ExportStore(Protocol):
    """The files of exports."""

    def put(self, tenant: str, operation_id: str, part: int, lines: Sequence[str]) -> None:
        """Keep a part, numbered from 1: putting it again replaces it."""
        ...

    def urls(self, tenant: str, operation_id: str, parts: int) -> list[str]:
        """Where each part may be downloaded for the next minutes."""
        ...
