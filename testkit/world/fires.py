"""What is promised about each fire of a schedule: asked when it calls its target, and when it is skipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.occurrence import UNBOUND, Occurrence
from functions.domain.jobs.overlap import Overlap
from functions.domain.lifecycle import State
from functions.domain.schedules.schedule import Misfire
from functions.domain.schedules.state import SkipReason, Status
from testkit.world.carriers import carriers
from testkit.world.expected import interval_of, is_fire
from testkit.world.process import Process, ProcessClock
from testkit.world.stores import KeptByAll
from testkit.world.truth import Truth, Version

TRIGGERED = ":trigger:"
_NEVER = 1_000_000_000
_POLICIES = {
    SkipReason.OVERLAP: Overlap.FORBID,
    SkipReason.BUFFER_FULL: Overlap.BUFFER_ONE,
    SkipReason.REPLACED: Overlap.REPLACE,
}


@dataclass
class Run:
    """One call of a target. ended_at: by the world's clock."""

    job_id: str
    attempt: int
    fence: int
    clock: ProcessClock
    lease_until: datetime
    ended_at: datetime | None = None
    is_success: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether its caller has received its end."""
        return self.ended_at is not None

    @property
    def is_live(self) -> bool:
        """Whether it may still be at it: when its worker is dead, the target need not know."""
        return not self.has_ended and self.clock.now() < self.lease_until


@dataclass(frozen=True)
class _Started:
    key: str
    run: Run
    occurrence: Occurrence
    life: int
    called_at: datetime


class Fires:
    """What has become of each fire, and whether that is in order."""

    def __init__(self, stores: KeptByAll, truth: Truth, expect: Callable[[bool, str], None]) -> None:
        self._stores = stores
        self._truth = truth
        self._expect = expect
        self._refused: set[tuple[str, datetime]] = set()
        self.recorded: dict[str, set[tuple[int, datetime]]] = {}
        self._sent: dict[str, dict[int, Job]] = {}
        self._overlaps: dict[str, set[Overlap]] = {}
        self._claimed: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._evicted: dict[str, int] = {}
        self._replayed: set[str] = set()
        self._slots: dict[str, list[tuple[int, str]]] = {}
        self._places: dict[str, list[tuple[int, str]]] = {}
        self._started: dict[str, list[_Started]] = {}

    def sent(self, timer: Timer) -> None:
        """A message of a fire is on its way."""
        occurrence = timer.job.occurrence
        if occurrence is not None:
            self._sent.setdefault(timer.job.key, {})[occurrence.version] = timer.job
            self._overlaps.setdefault(timer.job.key, set()).add(occurrence.overlap)

    def refused(self, timer: Timer) -> None:
        """A queue has said that it will never take it."""
        occurrence = timer.job.occurrence
        if occurrence is not None:
            self._refused.add((f"{timer.job.tenant}#{occurrence.schedule_id}", occurrence.fire_at))

    def placed_of(self, key: str, version: int) -> set[datetime]:
        """The fires of which messages have been sent for a version."""
        jobs = [
            by_version[version] for name, by_version in self._sent.items() if _of(name, key) and version in by_version
        ]
        return {job.occurrence.fire_at for job in jobs if job.occurrence is not None}

    def ends_of(self, key: str) -> list[datetime]:
        """When the fires of a schedule came to their ends; one that was refused, at once."""
        rows = [row for name, row in self._stores.ledger.rows.items() if _of(name, key) and TRIGGERED not in name]
        ends = [row.updated_at for row in rows if row.is_settled and row.updated_at is not None]
        return [*ends, *(at for of, at in self._refused if of == key)]

    def calls_of(self, key: str) -> dict[datetime, datetime]:
        """When each fire of a schedule called its target, at last."""
        return {started.occurrence.fire_at: started.called_at for started in self._started.get(key, ())}

    def may_wait(self, key: str) -> bool:
        """Whether a fire may wait for ever: for runs that replace each other, or for one that has been left behind."""
        if Overlap.BUFFER_ONE not in self._overlaps.get(key, ()):
            return False
        schedule_key = key.partition(":")[0]
        holder = _since(self._slots.get(schedule_key, []), _NEVER)
        is_left = any(self._is_left(schedule_key, other) for other in holder)
        return is_left or self._truth.last(schedule_key).schedule.overlap is Overlap.REPLACE

    def took_slot(self, key: str, job_id: str) -> None:
        """A run has the slot of its schedule."""
        self._slots.setdefault(key, []).append((self._stores.history.moment, parse_job_id(job_id).key))

    def waits_for_slot(self, key: str, job_id: str) -> None:
        """A fire is the one that waits for the slot of its schedule."""
        self._places.setdefault(key, []).append((self._stores.history.moment, parse_job_id(job_id).key))

    def ledger_changed(self, key: str, old: LedgerRow | None, row: LedgerRow, process: Process) -> None:
        """A row has been written."""
        if key not in self._sent:
            return
        moment = self._stores.history.moment
        if row.state is State.RUNNING:
            self._claimed.setdefault(key, moment)
        if not row.is_settled:
            self._settled.pop(key, None)  # a replay lets it go on: it may have the slot of its schedule again
        elif not (old and old.is_settled):
            self._settled[key] = moment
            if row.state is State.SKIPPED:
                self._check_skip(key, row, process)
        if row.cancel_requested and not (old and old.cancel_requested):
            self._evicted[key] = row.fence

    def replayed(self, key: str) -> None:
        """An operator lets it go on, whatever had replaced it, and whatever else of its schedule runs."""
        self._evicted.pop(key, None)
        self._replayed.add(key)

    def begin(
        self, timer: Timer, run: Run, payload: str | None, process: Process, *, called_at: datetime, is_again: bool
    ) -> None:
        """A fire calls its target: all that must be true at that moment. is_again: not for the first time."""
        job, occurrence = timer.job, timer.job.occurrence
        assert occurrence is not None
        key = f"{job.tenant}#{occurrence.schedule_id}"
        name = f"{job.key} of version {occurrence.version}"
        # What was received before a change, or has begun, may go on.
        goes_on = run.attempt > 1 or is_again or self._claimed.get(job.key, _NEVER) < process.began
        last, is_bound = self._truth.last(key), occurrence.version > UNBOUND
        is_stopped = last.status is Status.DELETED or (last.status is Status.PAUSED and is_bound)
        is_allowed = not is_stopped or goes_on or process.began < last.committed
        self._expect(is_allowed, f"ran after it was {last.status}: {name}")
        is_of_former_life = self._truth.is_deleted(key, after=abs(occurrence.version), before=process.began)
        self._expect(goes_on or is_bound or not is_of_former_life, f"ran after its schedule was deleted: {name}")
        self._expect(called_at >= occurrence.fire_at, f"early: {name} at {called_at}")
        self._expect(run.fence <= self._evicted.get(job.key, run.fence), f"tried again after it was replaced: {name}")
        started = self._started.setdefault(key, [])
        begun_by = {other.occurrence.version for other in started if other.key == job.key}
        goes_on = goes_on and (not begun_by or occurrence.version in begun_by)
        decided_by, _ = self._truth.of(key, abs(occurrence.version))
        started.append(_Started(job.key, run, occurrence, decided_by.life if decided_by else 0, called_at))
        if is_bound:
            self._check_decided(key, name, occurrence, payload, process, goes_on=goes_on)
        if occurrence.overlap in (Overlap.FORBID, Overlap.BUFFER_ONE):
            self._check_alone(started[-1], started[:-1])

    def _check_decided(
        self, key: str, name: str, occurrence: Occurrence, payload: str | None, process: Process, *, goes_on: bool
    ) -> None:
        version, later = self._truth.of(key, occurrence.version)
        if version is None or not version.is_active:
            self._note(f"extra: no such version decides: {name}")
            return
        schedule, at = version.schedule, occurrence.fire_at
        is_its_own = not later or at <= later[0].since or goes_on or process.began < later[0].committed
        self._expect(is_its_own, f"a stale fire ran: {name}")
        given = schedule.job.payload
        text = given.text if given.pointer is None else self._stores.payloads.objects.get(given.pointer)
        self._expect(payload == text, f"ran with another payload: {name}")
        self._expect(at > version.since, f"extra: decided by the version before it: {name}")
        if schedule.is_end_to_start:
            self._check_order(key, name, version, at)
        else:
            self._expect(is_fire(schedule, at), f"extra: no rule names {name}")
        if schedule.max_runs is not None:
            count = sum(other <= at for other in self._counted(key, version))
            self._expect(count <= schedule.max_runs, f"max_runs exceeded: {name} is number {count}")

    def _note(self, violation: str) -> None:
        self._expect(False, violation)  # noqa: FBT003

    def _check_order(self, key: str, name: str, version: Version, at: datetime) -> None:
        base = at - interval_of(version.schedule)
        self._expect(base in (version.since, *self.ends_of(key)), f"extra: it follows the end of nothing: {name}")
        for other in self._started[key]:
            before = other.occurrence.fire_at
            if other.occurrence.version == version.number and before < at and (key, before) not in self._refused:
                row = self._stores.ledger.rows.get(other.key)
                has_ended = row is not None and row.is_settled and row.updated_at is not None and row.updated_at <= base
                self._expect(has_ended, f"did not wait for the end of {other.key}: {name}")

    def _counted(self, key: str, version: Version) -> set[datetime]:
        """The fires of this life of a schedule that have run, without those that a change was overtaken by.

        Where what is late is dropped, a step that follows one that died before it recorded may drop what that one placed:
        only what was recorded counts.
        """
        versions = [other for other in self._truth.versions[key] if other.life == version.life]
        drops = any(
            other.schedule.misfire is not Misfire.FIRE_ALL or other.schedule.max_lateness is not None
            for other in versions
        )
        found: set[datetime] = set()
        for started in self._started[key]:
            decided_by, later = self._truth.of(key, started.occurrence.version)
            at = started.occurrence.fire_at
            is_its_own = decided_by in versions and (not later or at <= later[0].since)
            if is_its_own and (not drops or (started.occurrence.version, at) in self.recorded.get(key, ())):
                found.add(at)
        return found

    def _check_alone(self, mine: _Started, others: list[_Started]) -> None:
        for other in others:
            if self._replayed & {mine.key, other.key}:
                continue
            is_in_the_way = other.key != mine.key and other.life == mine.life and other.run.is_live
            if is_in_the_way and other.occurrence.overlap is not Overlap.ALLOW and other.key not in self._evicted:
                self._note(f"two live runs of one schedule: {other.key} and {mine.key}")

    def _check_skip(self, key: str, row: LedgerRow, process: Process) -> None:
        schedule_key, reason = key.partition(":")[0], row.error.partition(":")[0]
        if reason == SkipReason.PAUSED:
            was_stopped = self._truth.was_stopped(schedule_key, since=process.began)
            self._expect(was_stopped, f"skipped although its schedule was active: {key}")
            return
        if row.error.endswith("its schedule has changed"):
            counts = any(
                self._truth.counts(schedule_key, job.occurrence) for job in self._sent[key].values() if job.occurrence
            )
            self._expect(not counts, f"skipped although its version stands: {key}")
            return
        overlaps = self._overlaps[key]
        self._expect(_POLICIES.get(SkipReason(reason)) in overlaps, f"skipped although it is {overlaps}: {key}")
        taken = self._places if reason == SkipReason.BUFFER_FULL else self._slots
        others = _since(taken.get(schedule_key, []), process.began) - {key}
        in_the_way = {other for other in others if self._settled.get(other, _NEVER) > process.began}
        self._expect(bool(in_the_way), f"skipped although no run was in its way: {key}")
        carried = carriers(self._stores)
        is_real = any(
            other in carried or other in self._settled or self._is_left(schedule_key, other) for other in in_the_way
        )
        self._expect(is_real or not in_the_way, f"skipped for a run that there is not: {key} for {in_the_way}")

    def _is_left(self, key: str, other: str) -> bool:
        """Whether a run that has the slot may have been left behind with it by two changes.

        Its worker has died, and a version in between, of which nothing is known any more, may have decided it again.
        """
        return any(len(self._truth.of(key, version)[1]) > 1 for version in self._sent.get(other, ()))


def _since(taken: list[tuple[int, str]], moment: int) -> set[str]:
    """Those who have had it since then, with the one who had it then."""
    before = [key for at, key in taken if at <= moment][-1:]
    return {*before, *(key for at, key in taken if at > moment)}


def _of(name: str, key: str) -> bool:
    return name.startswith(f"{key}:")
