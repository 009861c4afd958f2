"""The collections in which jobs wait to be given to their target together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from functions.domain.jobs.collection import CollectedRow, CollectionId, CollectionState, OpenRelease
from functions.domain.jobs.job import Timer


class CollectionStore(Protocol):
    """Rows of jobs that wait, and how far the releases of their collection have come."""

    def put(self, collection: CollectionId, timers: Sequence[Timer]) -> list[Timer]:
        """Keep timers until their release; those that were not written. Repeating it changes nothing."""
        ...

    def state(self, collection: CollectionId) -> CollectionState:
        """As of all writes before."""
        ...

    def note_opening(self, collection: CollectionId, opens_at: datetime, *, number: int) -> None:
        """Note when the next release is due, so that others send none, and that its tenant has this collection.

        number: of that release. Where another is the next one by now, because the note comes late, nothing is noted of it.
        """
        ...

    def note_full(self, collection: CollectionId, number: int) -> bool:
        """Note that this release is sent ahead of its time, if it is the next one; False for one that was already."""
        ...

    def places(self, collection: CollectionId, *, after: str = "", limit: int) -> list[str]:
        """The first places that are taken behind one, as of some moment before."""
        ...

    def waiting(self, collection: CollectionId, *, after: str = "", upto: str, limit: int) -> list[CollectedRow]:
        """The first rows behind a place and up to another, in the order of their places, as of all writes before."""
        ...

    def open(self, collection: CollectionId, release: OpenRelease, *, now: datetime) -> OpenRelease:
        """Choose the rows of a release, unless that was done for it or for a later one; what is chosen then."""
        ...

    def opened(self, collection: CollectionId) -> OpenRelease | None:
        """The last release of which rows were chosen, as of all writes before."""
        ...

    def rows(self, collection: CollectionId, places: Sequence[str]) -> list[CollectedRow]:
        """The rows that exist at these places, as of all writes before, in the order of their places."""
        ...

    def remove(self, collection: CollectionId, places: Sequence[str]) -> None:
        """Take out what has been given to its target. Repeating it changes nothing."""
        ...

    def advance(self, collection: CollectionId, *, number: int) -> bool:
        """A release has ended: the next one has the number after it, and is not due yet. False where one went on before."""
        ...

    def waited_for(self, *, after: str, limit: int) -> tuple[set[CollectionId], str]:
        """Collections in which something waits, among so many rows, as of some moment before; from where to go on, empty at the end.

        after: empty for the beginning, what an answer said, or anything else for any place.
        """
        ...

    def forget(self, collection: CollectionId) -> bool:
        """Delete a page of all that there is of it, whose tenant is deleted; whether there is more."""
        ...
