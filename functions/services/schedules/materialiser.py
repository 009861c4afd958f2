"""The one way in which a schedule's chain of fires continues: for a change, a promotion, an end and a sweep alike.

The state row's link is the truth about the next fire; its alarm row in the far ring is only a clock. What is near is
placed, then the alarm of the next fire that is far, then the state is advanced: always place, then record. Fire times
and identities are deterministic, so a step that is repeated, by whomever, overwrites what it wrote or is dropped by the
ledger, and an advance that loses changes nothing: whoever won has placed the same fires before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from math import inf
from typing import Any

from functions.domain.errors import TooCostly
from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.faults import fault_of
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import job_id_of, parse_job_id
from functions.domain.jobs.occurrence import identity_of
from functions.domain.schedules.due_fires import (
    DueFires,
    alarm_at,
    decide,
    figures_of,
    link_after_run,
    occurrence_job,
    shard_of,
)
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.shifts import waited_for_opening
from functions.domain.schedules.slots import given_up_at, is_abandoned
from functions.domain.schedules.state import Link, SkipReason, Status
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Applied, Ledger
from functions.ports.recorder import Journal
from functions.ports.schedules import ScheduleStore, StoredSchedule
from functions.ports.tenants import TenantPlans
from functions.services.far_ring.placer import Placement, Placer
from functions.services.schedules.pauser import Asides
from functions.services.schedules.stops import Stops

MOST_AT_ONCE = 2_000
"""Fires that are placed before the advances of their schedules: what a death in between repeats."""

SHARE = timedelta(seconds=2)
"""Processor time that working out one chain may take. Even one that has been paused for months takes less."""

_ROUNDS = 3
_FEW = 3


class Carried(Enum):
    """What has become of a chain that was to be carried on."""

    ON = auto()
    """The chain continues without further help, or has ended."""
    REFUSED = auto()
    """The stores refused, or there was no time: it must be repeated."""
    BROKEN = auto()
    """It cannot be worked out, and no repetition helps. The sweep tries it again all the same."""
    ASIDE = auto()
    """It takes too much to work out. The sweep tries it again, and in the end its schedule is paused."""


@dataclass(frozen=True, slots=True)
class Chain:
    """A schedule, and the link to continue from."""

    stored: StoredSchedule
    link: Link


@dataclass(slots=True)
class _Step:
    """What becomes of one chain.

    decided: over all rounds. alarm_at: None when no alarm is needed, or none is placed. is_refused: by a store, or for
    want of time; apart: why the rules themselves do not carry it on.
    """

    chain: Chain
    decided: DueFires
    alarm_at: datetime | None = None
    is_placed: bool = False
    is_refused: bool = False
    apart: Carried | None = None

    @property
    def tenant(self) -> str:
        return self.chain.stored.schedule.tenant

    @property
    def awaits_a_run(self) -> bool:
        return self.decided.link is not None and self.decided.link.is_awaited

    @property
    def is_open(self) -> bool:
        return not (self.is_placed or self.is_refused or self.apart)

    @property
    def carried(self) -> Carried:
        return self.apart or (Carried.ON if self.is_placed else Carried.REFUSED)


@dataclass(frozen=True, slots=True)
class _Allowance:
    """What may be worked out yet, over all rounds. costly: tenants of which a chain was set aside."""

    clock: Clock
    ends_at: float
    costly: set[str] = field(default_factory=set)

    def covers(self, step: _Step, *, is_first: bool) -> bool:
        """Whether this chain may be worked out now."""
        return step.tenant not in self.costly and (is_first or self.clock.monotonic() < self.ends_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Materialiser:
    """Carries chains on. side_by_side: maps a function over items at the same time, answers in order."""

    wheel: Wheel
    clock: Clock
    schedules: ScheduleStore
    ledger: Ledger
    placer: Placer
    plans: TenantPlans
    journal: Journal
    asides: Asides
    stops: Stops
    side_by_side: Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

    def revive(self, key: str) -> Carried:
        """Carry a schedule's chain on from wherever its state says."""
        stored, state = self.schedules.get(key)
        if stored is None or state is None or state.status is not Status.ACTIVE or state.link is None:
            return Carried.ON
        return self.materialise([Chain(stored, state.link)])[0]

    def materialise(self, chains: Sequence[Chain], *, ends_at: float = inf) -> list[Carried]:
        """Carry chains on, each as far as `Carried` says.

        ends_at: none but the first is begun after that (monotonic, s). Of a tenant of which one was set aside none is.
        """
        return self._carry_on(chains, _Allowance(self.clock, ends_at))

    def _carry_on(self, chains: Sequence[Chain], allowance: _Allowance) -> list[Carried]:
        steps = [_Step(chain, DueFires(link=chain.link)) for chain in chains]
        for _ in range(_ROUNDS):
            waiting = [step for step in steps if step.is_open]
            if not waiting:
                break
            # Asked again in every round: a fire that was far a moment ago may no longer be.
            self._plan(waiting, allowance)
            self._place_alarms([step for step in waiting if step.is_open], allowance)
        placed = [step for step in steps if step.is_placed]
        recorded = dict(zip(map(id, placed), self.side_by_side(self._record, placed), strict=True))
        # Alarms of later links were placed by a step that died before it recorded: what it decided is recorded now.
        behind = {number: chain for number, chain in recorded.items() if chain is not None}
        caught_up = dict(zip(behind, self._carry_on(list(behind.values()), allowance), strict=True)) if behind else {}
        return [caught_up.get(id(step), step.carried) if step.is_placed else step.carried for step in steps]

    def _plan(self, steps: Sequence[_Step], allowance: _Allowance) -> None:
        """Place the fires of each step that are near."""
        now = self.clock.now()
        ends = self._ends_of(steps, now=now)
        fires: list[tuple[_Step, Link, Timer]] = []
        for number, step in enumerate(steps):
            if step.is_refused:
                continue
            if len(fires) >= MOST_AT_ONCE or not allowance.covers(step, is_first=not number):
                step.is_refused = True  # its turn comes again, when these have been recorded
                continue
            with self._apart(step, allowance):
                fires += [(step, link, self._timer(step, link)) for link in self._decide(step, ends, now=now)]
        placements = self.placer.place([timer for _, _, timer in fires])
        placed = [
            str(job_id_of(timer.job))
            for (_, _, timer), placement in zip(fires, placements, strict=True)
            if placement.ring
        ]
        if placed:
            self.journal.event("fires_placed", job_ids=placed)
        for (step, link, timer), placement in zip(fires, placements, strict=True):
            with self._apart(step, allowance):
                self._note_placement(step, link, timer, placement, allowance)
        if fires:
            self.journal.count("occurrences", len(fires))

    def _decide(self, step: _Step, ends: Mapping[str, datetime], *, now: datetime) -> Sequence[Link]:
        """The fires to place now."""
        schedule, link = step.chain.stored.schedule, step.decided.link
        if link is not None and link.is_awaited:
            ended_at = ends.get(self._run_key(step, link))
            if ended_at is None:
                return ()
            link = step.decided.link = link_after_run(
                # For an end during a pause nothing is made up.
                schedule,
                link,
                ended_at=max(ended_at, step.chain.stored.changed_at),
            )
        if link is None:
            return ()
        further = decide(schedule, link, now=now, guard=self.wheel.guard)
        further.figures = figures_of(schedule, further.kept, since=step.chain.stored.changed_at)
        step.decided.extend(further)
        return further.kept

    @contextmanager
    def _apart(self, step: _Step, allowance: _Allowance) -> Iterator[None]:
        """A schedule that cannot be computed holds up no other: it is left to the sweep, which reports it again.

        Nor does one that takes too much to compute.
        """
        stored = step.chain.stored
        try:
            with self.clock.limited(SHARE):
                yield
        except TooCostly as error:
            step.apart = Carried.ASIDE
            allowance.costly.add(step.tenant)
            self.asides.set_aside(stored.key, version=stored.version, why=str(error))
        except Exception as error:  # noqa: BLE001  no store is asked here: the fault is its definition's
            step.apart = Carried.BROKEN
            self.journal.event("chain_broken", schedule=stored.key, error=fault_of(error))
            self.journal.count("chains_broken")

    def _note_placement(
        self, step: _Step, link: Link, timer: Timer, placement: Placement, allowance: _Allowance
    ) -> None:
        if placement.ring is not None:
            self._observe(step.chain.stored.schedule, link)
            return
        if placement.is_permanent and not (step.awaits_a_run and step.tenant in allowance.costly):
            # No repetition helps, and the chain must continue.
            step.decided.skip(SkipReason.REFUSED, link.at)
            if step.awaits_a_run:
                # There is no run whose end could be awaited: it is taken for one without length.
                step.decided.link = link_after_run(step.chain.stored.schedule, link, ended_at=link.at)
            self.journal.event("fire_refused", schedule=step.chain.stored.key, fault=placement.fault)
            self.stops.skipped(timer, SkipReason.REFUSED)
        else:
            step.is_refused = True

    def _place_alarms(self, steps: Sequence[_Step], allowance: _Allowance) -> None:
        """Place the alarm of each step's link; a step whose alarm may stand behind the scanner stays open.

        That of an awaited run comes due with the next fire, which has to be found: no more of those than the allowance has.
        """
        now = self.clock.now()
        alarms: list[tuple[_Step, ScheduleAlarm]] = []
        for number, step in enumerate(steps):
            if step.decided.link is None:
                step.is_placed = True
                continue
            if step.awaits_a_run and not allowance.covers(step, is_first=not number):
                step.is_refused = True
                continue
            with self._apart(step, allowance):
                alarms.append((step, self._alarm(step, step.decided.link, now=now)))
        for (step, alarm), is_safe in zip(
            alarms, self.placer.place_alarms([alarm for _, alarm in alarms]), strict=True
        ):
            step.is_placed = is_safe
            step.alarm_at = alarm.alarm_at

    def _record(self, step: _Step) -> Chain | None:
        """None when the chain continues without further help, or it was refused; its link, when it is behind this step."""
        stored, decided = step.chain.stored, step.decided
        try:
            answer = self.schedules.advance(
                stored.key,
                decided,
                version=stored.version,
                before=step.chain.link,
                alarm_at=step.alarm_at,
                history=stored.schedule.history,
            )
        except Exception as error:  # noqa: BLE001  a store failed, for this schedule: those beside it are recorded
            step.is_placed = False
            self.journal.event("not_recorded", schedule=stored.key, error=fault_of(error))
            return None
        if isinstance(answer, Applied):
            if decided.misfire_count:
                self.journal.count("misfires", decided.misfire_count)
            if decided.skips:
                self.journal.count("skipped", sum(decided.skips.values()))
            return None
        state = answer.state
        if state is None or state.version != stored.version or state.status is not Status.ACTIVE:
            return None  # a later version has a chain of its own
        if state.link is None or state.link.position >= step.chain.link.position:
            return None  # somebody else has come as far, and has placed what follows
        return Chain(stored, state.link)

    def _timer(self, step: _Step, link: Link) -> Timer:
        stored = step.chain.stored
        job = occurrence_job(
            stored.schedule,
            link,
            version=stored.version,
            wheel=self.wheel,
            subshards=self.subshards_of(stored.schedule.tenant),
        )
        return Timer(job=job, due_at=step.decided.due_at.get(link.at, job.scheduled_at))

    def _alarm(self, step: _Step, link: Link, *, now: datetime) -> ScheduleAlarm:
        stored = step.chain.stored
        return ScheduleAlarm(
            tenant=stored.schedule.tenant,
            schedule_id=stored.schedule.schedule_id,
            version=stored.version,
            shard=shard_of(stored.schedule, self.wheel, subshards=self.subshards_of(stored.schedule.tenant)),
            priority=stored.schedule.job.priority,
            alarm_at=alarm_at(stored.schedule, link, now=now, guard=self.wheel.guard),
            link=link,
        )

    def subshards_of(self, tenant: str) -> int:
        """Over how many shards the fires of a tenant are spread."""
        return self.plans.of(tenant).subshards

    def _run_key(self, step: _Step, link: Link) -> str:
        schedule = step.chain.stored.schedule
        return f"{schedule.tenant}#{identity_of(schedule.schedule_id, link.at)}"

    def _ends_of(self, steps: Sequence[_Step], *, now: datetime) -> dict[str, datetime]:
        """When the runs that are awaited came to their ends, those that have. One that nobody carries on is brought to it."""
        links = [(step, step.decided.link) for step in steps]
        awaited = {
            self._run_key(step, link): (step, link) for step, link in links if link is not None and link.is_awaited
        }
        # A few are read as of all writes before: a run that has just been settled is the usual reason to ask.
        many = self.ledger.get_many(list(awaited)) if len(awaited) > _FEW else None
        ends: dict[str, datetime] = {}
        for key, (step, link) in awaited.items():
            row = self.ledger.get(key) if many is None else many.get(key)
            try:
                ended_at = self._ended_at(row, step, link, now=now)
            except Exception as error:  # noqa: BLE001  what is wrong with one row holds up no other chain
                step.is_refused = True
                self.journal.event("run_not_given_up", schedule=step.chain.stored.key, error=fault_of(error))
                continue
            if ended_at is not None:
                ends[key] = ended_at
        return ends

    def _ended_at(self, row: LedgerRow | None, step: _Step, link: Link, *, now: datetime) -> datetime | None:
        def run() -> Job:
            return self._timer(step, link).job

        if row is not None and row.is_settled:
            self.stops.report_again(row, like=run)
            return row.updated_at
        if not is_abandoned(row, since=link.at, now=now, skew=self.wheel.skew):
            return None
        # As the row says from then on: whoever repeats this finds the same next fire.
        if row is None:
            return given_up_at(None, since=link.at)
        return self.stops.give_up(parse_job_id(row.job_id), row, like=run)

    def _observe(self, schedule: Schedule, link: Link) -> None:
        if link.previous_at is not None:
            self.journal.observe("gap_s", (link.at - link.previous_at).total_seconds())
        waited = waited_for_opening(schedule, nominal_at=link.nominal_at, at=link.at)
        if waited:
            self.journal.observe("outside_window_wait_s", waited.total_seconds())
