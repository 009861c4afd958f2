"""Gather what is known of a job, and say why it has not run yet, or what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from functions.api.jobs.find import Finder, JobInWheel
from functions.domain.errors import TickwheelError
from functions.domain.explanation.explain import explain
from functions.domain.explanation.facts import Explanation, Facts
from functions.domain.far_ring.cursor import ClassCursor, has_passed
from functions.domain.far_ring.timer_key import timer_key
from functions.domain.instants import MILLISECOND
from functions.domain.jobs.collection import CollectionId, collection_in, parse_collection
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import JobId, attempt_id
from functions.domain.jobs.occurrence import fire_of
from functions.domain.lifecycle import State
from functions.domain.schedules.firing import next_fire
from functions.domain.schedules.state import ScheduleState
from functions.domain.targets.breaker import guarded_destination
from functions.domain.targets.flows import parse_flow_id
from functions.domain.tenants.backlog import Backlog
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.collections import CollectionStore
from functions.ports.schedules import ScheduleStore, StoredSchedule
from functions.ports.shards import ShardStore
from functions.ports.targets import BreakerStore
from functions.ports.tenants import TenantPlans
from functions.ports.timers import TimerStore
from functions.services.far_ring.flow_reader import FlowReader

_OPEN = (State.SCHEDULED, State.RETRYING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainer:
    """Explains jobs. backlogs: what of a tenant waits for its cap, None where it has none."""

    wheel: Wheel
    clock: Clock
    finder: Finder
    timers: TimerStore
    schedules: ScheduleStore
    breakers: BreakerStore
    shards: ShardStore
    plans: TenantPlans
    flow_reader: FlowReader
    collections: CollectionStore
    backlogs: Callable[[str], Backlog | None] = lambda _: None

    def explain(self, job_id: JobId) -> tuple[JobInWheel, Explanation]:
        """What is known of a job under its last id, and why. Raises JobNotFound."""
        found = self.finder.find(job_id)
        is_open = found.state in _OPEN
        stored, schedule = self._schedule_of(found.job_id) if is_open else (None, None)
        place = attempt_id(found.job_id, found.due_at, wheel=self.wheel)
        timer = self.timers.get(place) if is_open else None
        target = timer.job.target if timer else stored.schedule.job.target if stored else None
        breaker_until, is_closed = self._breaker_of(found.job_id.tenant, target) if target else (None, False)
        behind = self._behind(place, timer) if timer is not None else None
        facts = Facts(
            job_id=found.job_id,
            now=self.clock.now(),
            wheel=self.wheel,
            row=found.row if found.state is not None else None,
            timer=timer,
            nominal_at=_nominal_of(found.job_id, timer, stored),
            schedule=schedule,
            breaker_until=breaker_until,
            is_breaker_closed=is_closed,
            plan=self.plans.of(found.job_id.tenant) if is_open else None,
            behind=behind,
            backlog=self.backlogs(found.job_id.tenant) if behind is not None else None,
        )
        collection = self._collection_of(found) if is_open else None
        if collection is not None:
            facts = replace(facts, collection=self.collections.state(collection))
        elif is_open and facts.waits_for_flow:
            wait = self.flow_reader.wait_of(found.job_id, parse_flow_id(facts.waits_for_flow))
            facts = replace(facts, flow_wait=wait)
        return found, explain(facts)

    def _behind(self, place: JobId, timer: Timer) -> ClassCursor | None:
        """How far its class has been scanned, if that has not come to its row in an open bucket."""
        if place.bucket > self.wheel.horizon(now=self.clock.now()):
            return None
        cursors = self.shards.cursors([place.shard]).get(place.shard)
        key = timer_key(timer.job, due_at=timer.due_at)
        if cursors is None or has_passed(cursors, place.bucket, key):
            return None
        return cursors[place.priority]

    def _breaker_of(self, tenant: str, target: str) -> tuple[datetime | None, bool]:
        """Until when it keeps jobs away; whether it is closed."""
        destination = guarded_destination(target)
        if not destination:
            return None, False  # its attempt will say why it cannot be called
        breaker = self.breakers.get(tenant, destination)
        return (breaker.until, False) if breaker else (None, True)

    def _collection_of(self, found: JobInWheel) -> CollectionId | None:
        """Of which collection it is, as far as its row or its id says so."""
        noted = parse_collection(found.row.waits_for)
        return noted or collection_in(found.job_id.tenant, found.job_id.identity)

    def _schedule_of(self, job_id: JobId) -> tuple[StoredSchedule | None, ScheduleState | None]:
        fire = fire_of(job_id.identity)
        return self.schedules.get(f"{job_id.tenant}#{fire[0]}") if fire else (None, None)


def _nominal_of(job_id: JobId, timer: Timer | None, stored: StoredSchedule | None) -> datetime | None:
    """When the rule of a fire says that it fires, as far as that is known."""
    if timer is not None and timer.job.occurrence is not None:
        return timer.job.occurrence.nominal_at
    fire = fire_of(job_id.identity)
    if fire is None or fire[1] is None or fire[2] or stored is None:
        return None
    try:
        decided = next_fire(stored.schedule, after=fire[1] - MILLISECOND)
    except TickwheelError:
        return None  # a definition that cannot be computed
    return decided.nominal_at if decided is not None and decided.at == fire[1] else None
