"""How jobs come into their collection, and how its releases are timed.

Jobs stand under their collection and not under one release: one that comes late, or while a release is under way, is simply of the
next one. A release is a job of Tickwheel's own, which the worker runs; its identity is made of the collection and a number, so that
it may be placed any number of times: by whoever puts a job while none is known to be due, by the release before, and by the sweeper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import xxhash

from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.collect import Collect
from functions.domain.jobs.collection import (
    ROW_MEMBERS,
    CollectionId,
    CollectionState,
    collection_of,
    count_of,
    due_at_of,
    members_of,
    release_of,
)
from functions.domain.jobs.job import Job, Timer
from functions.domain.schedules.collect_times import closes_at as closing_of
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.collections import CollectionStore

STALE = 5 * MINUTE
"""A release that has not come by then is sent anew by whoever enters, and by the sweeper."""

_CHECKS = 8
"""While as many jobs come in as a release takes, it is looked so often whether they are as many: by those whose identities say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collecting:
    """Collections as those see them who put jobs into them."""

    wheel: Wheel
    clock: Clock
    collections: CollectionStore

    def put(self, timers: Sequence[Timer]) -> list[Timer]:
        """Keep timers until their release; those that were not kept. Raises what the store raises."""
        return [
            timer for collection, own in _grouped(timers).items() for timer in self.collections.put(collection, own)
        ]

    def due(self, timers: Sequence[Timer]) -> list[Timer]:
        """The releases that are to be placed, now that these wait. Raises what the store raises."""
        found = (self._due(collection, own) for collection, own in _grouped(timers).items())
        return [release for release in found if release is not None]

    def note(self, collection: CollectionId, opens_at: datetime, *, number: int) -> None:
        """A release is placed, or was put off until then. After that: who dies in between leaves one too many, which does no harm."""
        self.collections.note_opening(collection, opens_at, number=number)

    def overdue(self, collection: CollectionId) -> Timer | None:
        """The release that is to be placed because none is known to come; None where one is, or nothing waits."""
        state, now = self.collections.state(collection), self.clock.now()
        if not _is_missing(state, now=now):
            return None
        first = next(iter(self.collections.waiting(collection, upto="~", limit=1)), None)
        if first is None or not first.timers:
            return None
        job = first.timers[0].job
        return release_of(job, state.number, due_at=self._opens_at(collection, job), wheel=self.wheel)

    def _due(self, collection: CollectionId, timers: Sequence[Timer]) -> Timer | None:
        job, now = timers[0].job, self.clock.now()
        collect = _collect_of(job)
        state = self.collections.state(collection)
        closes_at = max(now, closing_of(collect, min(timer.wakes_at for timer in timers)))
        if _is_missing(state, now=now):
            return release_of(
                job, state.number, due_at=min(closes_at, self._opens_at(collection, job)), wheel=self.wheel
            )
        assert state.opens_at is not None
        if state.full < state.number and _looks(timers, collect):
            full_at = self._full_at(collection, collect)
            if (
                full_at is not None
                and full_at + SECOND < state.opens_at
                and self.collections.note_full(collection, state.number)
            ):
                return release_of(job, state.number, due_at=full_at, wheel=self.wheel)
        if closes_at + SECOND < state.opens_at:
            return release_of(job, state.number, due_at=closes_at, wheel=self.wheel)
        return None

    def _opens_at(self, collection: CollectionId, job: Job) -> datetime:
        """When those are to be released that wait, of whom this is one."""
        collect, now = _collect_of(job), self.clock.now()
        places = self._first_places(collection, collect.most)
        first_due_at = due_at_of(places[0]) if places else now
        closes_at = max(now, closing_of(collect, first_due_at))
        full_at = _reaches(places, collect.most)
        return closes_at if full_at is None else min(closes_at, max(now, full_at))

    def _full_at(self, collection: CollectionId, collect: Collect) -> datetime | None:
        """When as many are due as a release takes, as far as they wait already."""
        full_at = _reaches(self._first_places(collection, collect.most), collect.most)
        return None if full_at is None else max(full_at, self.clock.now())

    def _first_places(self, collection: CollectionId, most: int) -> list[str]:
        """Those of as many jobs, and few more. Reading them costs the bytes of their rows, and a row may have many jobs."""
        places: list[str] = []
        count, limit = 0, -(-most // ROW_MEMBERS)
        while count < most:
            page = self.collections.places(collection, after=places[-1] if places else "", limit=limit)
            places += page
            count += count_of(page)
            if len(page) < limit:
                break
            # As many as are missing, if they hold as many jobs as those that were read.
            limit = -(-(most - count) * len(places) // count)
        return places


def _collect_of(job: Job) -> Collect:
    assert job.collect is not None
    return job.collect


def _grouped(timers: Sequence[Timer]) -> dict[CollectionId, list[Timer]]:
    grouped: defaultdict[CollectionId, list[Timer]] = defaultdict(list)
    for timer in timers:
        grouped[collection_of(timer.job)].append(timer)
    return grouped


def _is_missing(state: CollectionState, *, now: datetime) -> bool:
    """Whether no release is to be expected any more."""
    return state.opens_at is None or state.opens_at + STALE < now


def _looks(timers: Sequence[Timer], collect: Collect) -> bool:
    step = max(1, collect.most // _CHECKS)
    return any(xxhash.xxh3_64_intdigest(timer.job.identity.encode()) % step == 0 for timer in timers)


def _reaches(places: Sequence[str], most: int) -> datetime | None:
    """When the job is due with which there are so many."""
    count = 0
    for place in places:
        count += len(members_of(place))
        if count >= most:
            return due_at_of(place)
    return None
