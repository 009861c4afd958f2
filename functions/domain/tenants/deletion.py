"""The deletion of a tenant with all that there is of it: part by part, once nobody can add to it any more.

A tenant that is being deleted accepts nothing, and its jobs are dropped where they are found. But a process may not know that yet, for a
minute at most, and what it has begun continues for as long as its function may run. After both, and with clocks apart by SKEW, nothing follows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from functions.domain.errors import Undecodable
from functions.domain.instants import from_ms, to_ms
from functions.domain.tenants.changes import EFFECTIVE_AFTER


class DeletionStage(StrEnum):
    """What there is of a tenant, in the order in which it is deleted.

    operations: the open ones. timers: far rows of jobs. schedules: with their states and alarm rows. states: of schedules
    that were deleted before. objects: payloads and exports. breakers: among everybody's. flows: their rooms, orders and permits, and its jobs in the rooms of the stage's. rows: whatever the tenants table has of it, last the marks of
    days, by which its far rows are found. ledger: by far the most expensive.
    """

    OPERATIONS = "operations"
    TIMERS = "timers"
    SCHEDULES = "schedules"
    STATES = "states"
    OBJECTS = "objects"
    LETTERS = "letters"
    BREAKERS = "breakers"
    FLOWS = "flows"
    ROWS = "rows"
    LEDGER = "ledger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """How far the deletion of a tenant has come. since: when its status said so.

    part: what is being deleted, None when all is. after: where in it, in words of its store. deleted: rows and objects so
    far, by parts. keeps_ledger: its ledger rows go by their ttl. owner, lease_until: who carries it on.
    """

    tenant: str
    since: datetime
    keeps_ledger: bool = False
    part: DeletionStage | None = DeletionStage.OPERATIONS
    after: str = ""
    deleted: Mapping[str, int] = field(default_factory=dict[str, int])
    owner: str = ""
    lease_until: datetime | None = None

    def advanced(self, *, deleted: int, after: str | None) -> Deletion:
        """After another page of its part. after: where the next one begins, None at the end of the part."""
        assert self.part is not None  # it is not over
        counts = {**self.deleted, self.part.value: self.deleted.get(self.part.value, 0) + deleted}
        if after is not None:
            return replace(self, after=after, deleted=counts)
        parts = [part for part in DeletionStage if part is not DeletionStage.LEDGER or not self.keeps_ledger]
        following = parts[parts.index(self.part) + 1 :]
        return replace(self, part=following[0] if following else None, after="", deleted=counts)


def begins_at(since: datetime, *, longest: timedelta, skew: timedelta) -> datetime:
    """When nobody can write anything of a tenant any more. longest: how long any function of the stage may run."""
    return since + EFFECTIVE_AFTER + longest + skew


def encode_deletion(deletion: Deletion) -> str:
    """A deletion as its row holds it, without its lease."""
    values: dict[str, Any] = {
        "since": to_ms(deletion.since),
        "keeps_ledger": deletion.keeps_ledger,
        "part": deletion.part.value if deletion.part is not None else None,
        "after": deletion.after,
        "deleted": dict(deletion.deleted),
    }
    return json.dumps(values, separators=(",", ":"))


def decode_deletion(text: str, *, tenant: str) -> Deletion:
    """The deletion that `encode_deletion` wrote. Raises Undecodable."""
    try:
        given = json.loads(text)
        return Deletion(
            tenant=tenant,
            since=from_ms(given["since"]),
            keeps_ledger=given["keeps_ledger"],
            part=DeletionStage(given["part"]) if given["part"] is not None else None,
            after=given["after"],
            deleted=given["deleted"],
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise Undecodable(f"not a deletion: {error!r}") from error
