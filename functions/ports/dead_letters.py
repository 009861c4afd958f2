"""What failed for good."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from functions.domain.dead_letters.dead_letter_id import DeadLetterId
from functions.domain.instants import EPOCH, MILLISECOND, from_ms
from functions.domain.jobs.job import Timer


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """What failed for good. timer is None when the body was not written by Tickwheel; raw is what it was.

    fence: the last one that its target may have received, 0 where that is not known. replayed_at: when its replay was
    begun for the first time; the letter stays until that is done.
    """

    tenant: str
    identity: str
    dead_at: datetime
    error: str
    error_class: str = "error"
    attempt: int = 0
    job_id: str = ""
    timer: Timer | None = None
    raw: str = ""
    fence: int = 0
    replayed_at: datetime | None = None

    @property
    def letter_id(self) -> DeadLetterId:
        """Where it is kept: whole milliseconds, rounded down."""
        dead_at = from_ms((self.dead_at - EPOCH) // MILLISECOND)
        return DeadLetterId(tenant=self.tenant, dead_at=dead_at, identity=self.identity)


class DeadLetters(Protocol):
    """What failed for good, with its error, its attempts and the job."""

    def put(self, letter: DeadLetter) -> None:
        """Keep a dead letter."""
        ...

    def get(self, letter_id: DeadLetterId) -> DeadLetter | None:
        """The dead letter, as of all writes before."""
        ...

    def hours(self, tenant: str, *, since: datetime, until: datetime, limit: int) -> tuple[list[datetime], bool]:
        """Hours from `since` to `until`, both included, in which dead letters were kept, newest first; whether there may be more.

        A mark of an hour stands before its first letter does, and stays when that is gone. Dead letters of a release before
        have none.
        """
        ...

    def page(self, hour: datetime, *, before: DeadLetterId, limit: int) -> tuple[list[DeadLetter], bool]:
        """A tenant's dead letters of an hour that lie behind a place, newest first; whether there may be more."""
        ...

    def mark(self, letter_id: DeadLetterId, *, now: datetime) -> bool:
        """Note that its replay begins, unless one has before; False when the letter is gone."""
        ...

    def delete(self, letter_id: DeadLetterId) -> None:
        """Forget a dead letter; nothing happens when it is gone."""
        ...
