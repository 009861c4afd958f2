"""What releases give their targets, what a target answers to that, and what is promised about it in a world."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from functions.domain.instants import parse_instant
from functions.domain.jobs.collection import CollectionId, OpenRelease, members_of, release_in
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import parse_job_id
from functions.ports.collections import CollectionStore
from functions.ports.targets import Failed, Outcome, Pending, Succeeded

_RELEASE = re.compile(r"b-[0-9a-f]{16}-[0-9]+")

FAILS = {"flaky": 1, "stubborn": 2}
"""How many first attempts of a job fail."""


@dataclass(frozen=True, slots=True)
class Given:
    """A job as its release gives it. payload: JSON."""

    key: str
    job_id: str
    attempt: int
    scheduled_at: datetime
    payload: str


def is_release(identity: str) -> bool:
    """Whether a job is one of Tickwheel's own that gives others to their target."""
    return _RELEASE.fullmatch(identity) is not None


def given_in(timer: Timer, payload: str | None) -> list[Given] | None:
    """The jobs that a call gives to its target; None where it is the call of a single job."""
    if release_in(timer.job) is None:
        return None
    entries: list[dict[str, Any]] = json.loads(payload or "[]")
    return [
        Given(
            key=entry["key"],
            job_id=entry["id"],
            attempt=entry["attempt"],
            scheduled_at=parse_instant(entry["scheduled_at"]),
            payload=json.dumps(entry["payload"], separators=(",", ":")),
        )
        for entry in entries
    ]


def fails(target: str, attempt: int) -> bool:
    """Whether a target says no to this attempt of a job."""
    return "broken" in target or attempt <= next((count for kind, count in FAILS.items() if kind in target), 0)


def answer_to(target: str, given: Sequence[Given]) -> Outcome:
    """What a target answers that takes jobs together: it names those that have failed, in either of the two ways, or fails as a whole."""
    if "broken" in target:
        return Failed("the target said no")
    failed = [each for each in given if fails(target, each.attempt)]
    if "lasting" in target:
        return Pending()
    if "stubborn" in target:
        text = json.dumps({"batchItemFailures": [{"itemIdentifier": each.job_id} for each in failed]})
    else:
        text = json.dumps({"failed": [{"key": each.key, "error": "not yet"} for each in failed]})
    return Succeeded(text, text)


def named_in(answer: str) -> set[str]:
    """The ids or keys of the jobs that an answer names as failed."""
    said = json.loads(answer) if answer else {}
    named = {each.get("id") or each["key"] for each in said.get("failed", ())}
    return named | {each["itemIdentifier"] for each in said.get("batchItemFailures", ())}


def collections_in_use(collections: CollectionStore) -> set[CollectionId]:
    """Those in which something waits."""
    found: set[CollectionId] = set()
    after = ""
    while True:
        page, after = collections.waited_for(after=after, limit=10_000)
        found |= page
        if not after:
            return found


def opened_in(collections: CollectionStore) -> Iterator[tuple[CollectionId, OpenRelease]]:
    """The releases whose jobs were chosen last."""
    for collection in sorted(collections_in_use(collections), key=str):
        release = collections.opened(collection)
        if release is not None:
            yield collection, release


class ReleasedJobs:
    """Which jobs were given by which release. expect: notes a violation."""

    def __init__(self, expect: Callable[[bool, str], None]) -> None:
        self._expect = expect
        self._releases: defaultdict[str, set[str]] = defaultdict(set)
        self.members: defaultdict[str, set[str]] = defaultdict(set)

    def opened(self, collection: CollectionId, release: OpenRelease) -> None:
        """The jobs of a release were chosen."""
        key = f"{collection.tenant}#b-{collection.digest}-{release.number}"
        for place in release.places:
            for identity in members_of(place):
                self._releases[f"{collection.tenant}#{identity}"].add(key)
                self.members[key].add(f"{collection.tenant}#{identity}")

    def begin(self, timer: Timer, given: Sequence[Given]) -> None:
        """A release calls its target."""
        for each in given:
            is_chosen = timer.job.key in self._releases.get(each.key, ())
            self._expect(is_chosen, f"was given by a release that it was not chosen for: {each.key} by {timer.job.key}")
            self._expect(parse_job_id(each.job_id).key == each.key, f"the id and the key of a job differ: {each}")

    def releases_of(self, key: str) -> set[str]:
        """The keys of the releases for which a job was chosen."""
        return self._releases.get(key, set())
