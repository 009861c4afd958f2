"""What is promised about collections: a release gives what waits, each job until it has ended, and nothing that was cancelled before."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.collection import CollectionId, collection_of, release_in
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.lifecycle import State
from functions.ports.targets import Outcome, Pending, Succeeded
from testkit.world.accepted import Expected
from testkit.world.collected import named_in
from testkit.world.fires import Run
from testkit.world.process import Process
from testkit.world.stores import KeptByAll

_ALL = 10_000


@dataclass
class _Release:
    """A call of a release. members: runs of its jobs, by their ids."""

    run: Run
    members: dict[str, Run] = field(default_factory=dict[str, Run])


class CollectionPromises:
    """What releases have given. runs: of all jobs, by their keys. is_used: somebody has submitted a job that is collected."""

    def __init__(
        self,
        stores: KeptByAll,
        expect: Callable[[bool, str], None],
        *,
        jobs: Mapping[str, Expected],
        runs: dict[str, list[Run]],
    ) -> None:
        self.is_used = False
        self._stores = stores
        self._expect = expect
        self._jobs = jobs
        self._runs = runs
        self._releases: dict[CollectionId, list[_Release]] = {}
        self._given: set[str] = set()
        self._cancelled: dict[str, int] = {}

    def keys_of(self, timer: Timer) -> set[str]:
        """The key of a job, and those of the releases that have given its collection."""
        found = self._releases.get(collection_of(timer.job), ()) if timer.job.collect is not None else ()
        return {timer.job.key, *(parse_job_id(release.run.job_id).key for release in found)}

    def ledger_changed(self, key: str, old: LedgerRow | None, row: LedgerRow) -> None:
        """A row was written: a success follows the answer of a target."""
        was = old.state if old is not None else State.ABSENT
        if row.state is State.CANCELLED and was is not State.CANCELLED:
            self._cancelled[key] = self._stores.history.moment
        if key in self._given and row.state is State.SUCCEEDED and was is not State.SUCCEEDED:
            is_taken = any(run.is_success for run in self._runs.get(key, ()))
            self._expect(is_taken, f"ended without having been taken: {key}")

    def begin(self, timer: Timer, run: Run, payload: str | None, process: Process, *, called_at: datetime) -> None:
        """A target is called; of a release, each of its jobs must be one to be given now."""
        named = release_in(timer.job)
        if named is None:
            return
        collection, _ = named
        others = self._releases.setdefault(collection, [])
        live = [other.run.job_id for other in others if other.run.is_live]
        self._expect(not live, f"two releases at the same time: {run.job_id} and {live}")
        release = _Release(run)
        others.append(release)
        entries: list[dict[str, Any]] = json.loads(payload or "[]")
        self._expect(bool(entries), f"a release of nothing: {run.job_id}")
        for entry in entries:
            self._expect(entry["id"] not in release.members, f"twice in a release: {entry['id']}")
            self._check(collection, entry, process, called_at)
            release.members[entry["id"]] = Run(
                job_id=entry["id"],
                attempt=entry["attempt"],
                fence=run.fence,
                clock=run.clock,
                lease_until=run.lease_until,
            )
        for job_id, member in release.members.items():
            key = parse_job_id(job_id).key
            self._given.add(key)
            self._runs.setdefault(key, []).append(member)

    def answered(self, run: Run, outcome: Outcome) -> None:
        """A caller has received what the target of its release says."""
        now = self._stores.clock.instant
        for release in [release for each in self._releases.values() for release in each if release.run is run]:
            answer = outcome.answer if isinstance(outcome, Succeeded) else ""
            failed = named_in(answer)
            for job_id, member in release.members.items():
                is_named = not failed.isdisjoint((job_id, parse_job_id(job_id).key))
                member.ended_at = now
                member.is_success = isinstance(outcome, Succeeded | Pending) and not is_named

    def are_empty(self) -> bool:
        """Whether nobody waits in any collection."""
        return not self.is_used or not self._waited_for()

    def check_empty(self) -> None:
        """All is over: nobody waits any more, and nothing is left of who has ended."""
        left = self._waited_for() if self.is_used else set[CollectionId]()
        rows = [row.place for each in left for row in self._stores.collections.waiting(each, upto="~", limit=_ALL)]
        self._expect(not rows, f"left in their collections: {rows}")

    def _waited_for(self) -> set[CollectionId]:
        return self._stores.collections.waited_for(after="", limit=_ALL)[0]

    def _check(self, collection: CollectionId, entry: dict[str, Any], process: Process, called_at: datetime) -> None:
        job_id = parse_job_id(entry["id"])
        row, expected = self._stores.ledger.rows.get(job_id.key), self._jobs.get(entry["id"])
        runs = self._runs.get(job_id.key, ())
        self._expect(job_id.tenant == collection.tenant, f"tenants mixed: {entry['id']}")
        self._expect(entry["key"] == job_id.key, f"another key: {entry['id']} with {entry['key']}")
        if row is not None and row.state is State.CANCELLED:
            # A cancel during its release is answered that it may have been given.
            is_told = expected is not None and expected.is_cancelled
            is_late = is_told or process.began > self._cancelled[job_id.key]
            self._expect(not is_late, f"given after its cancel: {entry['id']}")
        else:
            is_over = row is not None and row.is_settled
            self._expect(not is_over, f"given after its end: {entry['id']} is {row}")
        self._expect(not any(other.is_live for other in runs), f"two live runs: {entry['id']}")
        is_forward = all(other.attempt <= entry["attempt"] for other in runs)
        self._expect(is_forward, f"attempts ran backwards: {entry['id']}")
        # Somebody may have let it run at once: then the row in its collection says so.
        due = [
            timer.due_at
            for each in self._stores.collections.waiting(collection, upto="~", limit=_ALL)
            for timer in each.timers or ()
            if (timer.job.key, timer.attempt) == (job_id.key, entry["attempt"])
        ]
        due += [row.due_at] if row is not None and row.state is State.RETRYING and row.due_at is not None else []
        is_due = any(called_at >= due_at for due_at in due)
        self._expect(is_due, f"early: {entry['id']} at {called_at}, due {due}")
        if expected is not None:
            is_same = entry["payload"] == json.loads(expected.submission.payload or "null")
            self._expect(is_same, f"given with another payload: {entry['id']}")
