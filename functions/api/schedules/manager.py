"""Change schedules and report them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from functions.api.admission.gate import Gate
from functions.api.schedules import standing
from functions.api.schedules.asked_change import Asked, Asking
from functions.api.schedules.stats import Stats, stats_of
from functions.domain.audit import ActionName
from functions.domain.errors import NotPlaced
from functions.domain.far_ring.timer_record import INLINE_LIMIT, written_size
from functions.domain.jobs.job import Payload
from functions.domain.jobs.occurrence import identity_of
from functions.domain.schedules.change_condition import ALWAYS, ChangeCondition
from functions.domain.schedules.changes import activated, stopped, with_a_fire, with_counted_rule
from functions.domain.schedules.default_spread import with_default_spread
from functions.domain.schedules.fire_rates import share_of
from functions.domain.schedules.firing import check_fires
from functions.domain.schedules.kept_runs import trimmed
from functions.domain.schedules.load import NO_LIMITS, LoadLimits
from functions.domain.schedules.preview import Page, Preview, PreviewPosition, preview
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.spread import DefaultSpread
from functions.domain.schedules.state import ScheduleState, Status
from functions.domain.schedules.step_budget import STEPS_OF_A_REQUEST, Budget
from functions.domain.schedules.validation import check_new
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.ledger import Ledger
from functions.ports.payloads import PayloadStore
from functions.ports.recorder import AuditTrail, Journal
from functions.ports.schedules import ScheduleAndState, ScheduleStore, StoredSchedule
from functions.services.schedules.caught_up import CaughtUpChanger
from functions.services.schedules.changer import Change, Edit, ScheduleChanger
from functions.services.schedules.materialiser import Carried, Materialiser


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleManager:
    """The verbs of schedules. caller: who asks, for the audit trail.

    limits: of what the schedules of a tenant come to. Whatever makes them more, or lets them fire more often, raises
    SchedulesExceeded and FiresExceeded beyond those. default_spread: of a tenant. gate: of what makes work, also by beginning to fire, or beginning anew.
    """

    wheel: Wheel
    clock: Clock
    schedules: ScheduleStore
    changer: ScheduleChanger
    materialiser: Materialiser
    ledger: Ledger
    payloads: PayloadStore
    journal: Journal
    gate: Gate
    audit: AuditTrail
    limits: Callable[[str], LoadLimits] = lambda _: NO_LIMITS
    default_spread: Callable[[str], DefaultSpread | None] = lambda _: None

    def put(
        self, schedule: Schedule, *, condition: ChangeCondition = ALWAYS, caller: str = ""
    ) -> tuple[standing.Standing, bool]:
        """Create or replace a schedule; whether it is new. The same definition again changes nothing.

        Raises InvalidSchedule, ScheduleBusy, what the condition and the gate do; NotPlaced when it is stored, but its first fire could not be placed yet:
        putting it again is safe.
        """
        asking = self.asking_to_put(schedule, condition=condition, caller=caller)
        put = self._revived(*self._apply(asking, catches_up=True))
        # A request that creates only has created it, where it comes so far: this time, or the first time.
        return put, asking.found is None or condition.is_new

    def asking_to_put(self, schedule: Schedule, *, condition: ChangeCondition = ALWAYS, caller: str = "") -> Asking:
        """What `put` asks for, to be carried out. Its large payload is stored already."""
        schedule = self._with_stored_payload(schedule)

        def rule(stored: StoredSchedule | None, state: ScheduleState | None, now: datetime) -> Change | None:
            wanted = self._spread(schedule, stored)
            if stored is not None and stored.schedule == wanted:
                return None
            return self._put_in_place(wanted, stored, state, now)

        asked = Asked(action=ActionName.SCHEDULE_PUT, caller=caller, condition=condition, is_whole=True)
        return self._asking(asked, schedule.uid, rule)

    def patch(
        self,
        tenant: str,
        schedule_id: str,
        edit: Callable[[Schedule], Schedule],
        *,
        takes_default: bool = False,
        condition: ChangeCondition = ALWAYS,
        caller: str = "",
    ) -> standing.Standing:
        """Change what `edit` changes of the definition as it stands. Raises ScheduleNotFound, and as `put`.

        takes_default: where it says no spread, it takes the default of now.
        """

        def rule(stored: StoredSchedule | None, state: ScheduleState | None, now: datetime) -> Change | None:
            stored, state = standing.existing(stored, state, tenant, schedule_id)
            edited = self._spread(edit(stored.schedule), stored, is_asked_for=takes_default)
            edited = self._with_stored_payload(edited)
            return None if edited == stored.schedule else self._put_in_place(edited, stored, state, now)

        asked = Asked(action=ActionName.SCHEDULE_PATCH, caller=caller, condition=condition)
        asking = self._asking(asked, f"{tenant}#{schedule_id}", rule)
        return self._revived(*self._apply(asking, catches_up=True))

    def compare(
        self, schedule: Schedule, *, count: int, takes_default: bool = False, condition: ChangeCondition = ALWAYS
    ) -> standing.Difference:
        """What putting a schedule would do, and change about its next fires, those of a paused one once it is resumed."""
        now = self.clock.now()
        stored, state = self.schedules.get(schedule.uid)
        schedule = self._spread(schedule, stored, is_asked_for=takes_default)
        condition.check(schedule.tenant, schedule.schedule_id, stored.version if stored else None)
        kind = standing.PutKind.CREATED if stored is None else self._kind_of(schedule, stored.schedule)
        schedule = with_counted_rule(schedule, stored.schedule if stored else None)
        check_new(schedule, before=stored.schedule if stored else None)
        budget = Budget(STEPS_OF_A_REQUEST)
        check_fires(schedule, now=now, budget=budget)
        before: Sequence[Preview] = ()
        if stored is not None and state is not None and state.status is Status.ACTIVE:
            before = standing.upcoming_of(stored, state, count=count, now=now, budget=budget).previews
        elif stored is not None:
            resumed = activated(stored.schedule, before=stored.schedule, state=state, now=now)
            before = standing.previews_of(stored.schedule, resumed.link, count=count, budget=budget)
        future = activated(schedule, before=stored.schedule if stored else None, state=state, now=now)
        after = standing.previews_of(schedule, future.link, count=count, budget=budget)
        return standing.Difference(kind=kind, before=before, after=after)

    def pause(
        self, tenant: str, schedule_id: str, *, note: str, condition: ChangeCondition = ALWAYS, caller: str = ""
    ) -> standing.Standing:
        """Stop it until it is resumed: nothing fires, and what is missed meanwhile is not caught up."""

        def rule(stored: StoredSchedule | None, state: ScheduleState | None, now: datetime) -> Change | None:
            stored, state = standing.existing(stored, state, tenant, schedule_id)
            if state.status is Status.PAUSED and state.note == note:
                return None
            after = stopped(Status.PAUSED, before=stored.schedule, state=state, now=now, note=note)
            return self._counted(stored.schedule, after, stored=stored, state=state)

        asked = Asked(action=ActionName.SCHEDULE_PAUSE, caller=caller, condition=condition)
        return self._standing(*self._apply(self._asking(asked, f"{tenant}#{schedule_id}", rule)))

    def resume(
        self, tenant: str, schedule_id: str, *, note: str, condition: ChangeCondition = ALWAYS, caller: str = ""
    ) -> standing.Standing:
        """Continue from now. Raises ScheduleNotFound, InvalidSchedule when it would never fire again."""

        def rule(stored: StoredSchedule | None, state: ScheduleState | None, now: datetime) -> Change | None:
            stored, state = standing.existing(stored, state, tenant, schedule_id)
            if stored.status is Status.ACTIVE:
                return None
            schedule = with_counted_rule(stored.schedule, stored.schedule)
            check_fires(schedule, now=now)
            after = activated(schedule, before=stored.schedule, state=state, now=now, note=note)
            return self._counted(schedule, with_a_fire(schedule, after), stored=stored, state=state)

        asked = Asked(action=ActionName.SCHEDULE_RESUME, caller=caller, condition=condition)
        return self._revived(*self._apply(self._asking(asked, f"{tenant}#{schedule_id}", rule)))

    def delete(self, tenant: str, schedule_id: str, *, condition: ChangeCondition = ALWAYS, caller: str = "") -> None:
        """Remove it: nothing fires any more. Raises ScheduleNotFound when there is none, and never was."""

        def rule(stored: StoredSchedule | None, state: ScheduleState | None, now: datetime) -> Change | None:
            if stored is None and state is not None:
                return None  # it has been deleted
            stored, state = standing.existing(stored, state, tenant, schedule_id)
            after = stopped(Status.DELETED, before=stored.schedule, state=state, now=now)
            return self._counted(stored.schedule, after, stored=stored, state=state)

        asked = Asked(action=ActionName.SCHEDULE_DELETE, caller=caller, condition=condition, is_whole=True)
        self._apply(self._asking(asked, f"{tenant}#{schedule_id}", rule))

    def get(self, tenant: str, schedule_id: str) -> standing.Standing:
        """The schedule with its last runs. Raises ScheduleNotFound."""
        stored, state = self._existing(tenant, schedule_id)
        schedule = stored.schedule
        recent = [at for at in state.recent if at <= self.clock.now()]
        # Beside its fires, not among them: a backfill takes no fire out of the history.
        asked = state.asked_runs[-schedule.history :] if schedule.history else ()
        keys = [f"{tenant}#{identity_of(schedule_id, at)}" for at in recent]
        keys_of_asked = [f"{tenant}#{run.identity(schedule_id)}" for run in asked]
        rows = self.ledger.get_many([*keys, *keys_of_asked]) if recent or asked else {}
        subshards = self.materialiser.subshards_of(tenant)
        runs = [
            (at, standing.run_of(schedule, at, rows.get(key), self.wheel, subshards=subshards))
            for at, key in zip(recent, keys, strict=True)
        ]
        runs += [
            (run.due_at, standing.asked_run(schedule, run, rows.get(key), self.wheel))
            for run, key in zip(asked, keys_of_asked, strict=True)
        ]
        newest_first = [run for _, run in sorted(runs, key=lambda each: each[0], reverse=True)]
        kept = trimmed(state.kept_runs, keeps=schedule.keeps)
        return replace(self._standing(stored, state), runs=newest_first, kept_runs=kept)

    def stats(self, tenant: str, schedule_id: str) -> Stats:
        """The figures of a schedule, with those that its definition expects. Raises ScheduleNotFound."""
        found = self.get(tenant, schedule_id)
        return stats_of(found, now=self.clock.now(), budget=Budget(STEPS_OF_A_REQUEST))

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[standing.Standing], str | None]:
        """A tenant's schedules in the order of their ids, without runs; where the next page begins."""
        found, has_more = self.schedules.page(tenant, after=after, limit=limit)
        states = self.schedules.states([stored.key for stored in found])
        budget = Budget(STEPS_OF_A_REQUEST)
        now = self.clock.now()
        standings = [
            standing.standing_of(stored, states[stored.key], now=now, budget=budget)
            for stored in found
            if stored.key in states
        ]
        return standings, found[-1].schedule.schedule_id if has_more and found else None

    def active(self, tenant: str, *, after: str, limit: int) -> tuple[list[Schedule], str | None]:
        """Those of a page of a tenant's schedules that fire; where the next page begins."""
        found, has_more = self.schedules.page(tenant, after=after, limit=limit)
        active = [stored.schedule for stored in found if stored.status is Status.ACTIVE]
        return active, found[-1].schedule.schedule_id if has_more and found else None

    def preview(self, tenant: str, schedule_id: str, *, count: int, begins: PreviewPosition | None = None) -> Page:
        """The next fires, as they stand, from now on or where the page before has left off."""
        stored, state = self._existing(tenant, schedule_id)
        budget = Budget(STEPS_OF_A_REQUEST)
        if begins is not None and begins.fired is not None:
            return preview(stored.schedule, after=begins.after, count=count, index=begins.fired, budget=budget)
        now = self.clock.now() if begins is None else begins.after
        return standing.upcoming_of(stored, state, count=count, now=now, budget=budget)

    def stored_payload(self, schedule: Schedule) -> str | None:
        """The payload of its job that is in the payload store; None where the definition holds it."""
        pointer = schedule.job.payload.pointer
        return None if pointer is None else self.payloads.get(pointer)

    def _kind_of(self, wanted: Schedule, stored: Schedule) -> standing.PutKind:
        """What putting a schedule in the place of a stored one does."""
        text = wanted.job.payload.text
        if text is not None and written_size(text) > INLINE_LIMIT and self.stored_payload(stored) == text:
            wanted = replace(wanted, job=replace(wanted.job, payload=stored.job.payload))
        return standing.PutKind.UNCHANGED if wanted == stored else standing.PutKind.UPDATED

    def _existing(self, tenant: str, schedule_id: str) -> tuple[StoredSchedule, ScheduleState]:
        """The schedule. Raises ScheduleNotFound."""
        return standing.existing(*self.schedules.get(f"{tenant}#{schedule_id}"), tenant, schedule_id)

    def _asking(self, asked: Asked, key: str, rule: Edit) -> Asking:
        return Asking(asked=asked, key=key, rule=rule, gate=self.gate, audit=self.audit)

    def _apply(self, asking: Asking, *, catches_up: bool = False) -> ScheduleAndState:
        """Change a schedule. catches_up: what is due is placed before. Raises what its condition and the gate do."""
        caught_up = CaughtUpChanger(changer=self.changer, materialiser=self.materialiser)
        stored, state = (caught_up if catches_up else self.changer).change(asking.key, asking.edit)
        asking.note(stored, state)
        return stored, state

    def _put_in_place(
        self, schedule: Schedule, stored: StoredSchedule | None, state: ScheduleState | None, now: datetime
    ) -> Change:
        before = stored.schedule if stored else None
        schedule = with_counted_rule(schedule, before)
        check_new(schedule, before=before)
        check_fires(schedule, now=now)
        schedule = with_counted_rule(schedule, schedule)
        if stored is not None and state is not None and state.status is Status.PAUSED:
            after = stopped(Status.PAUSED, before=stored.schedule, state=state, now=now, note=state.note)
        else:
            after = activated(schedule, before=before, state=state, now=now)
        return self._counted(schedule, with_a_fire(schedule, after), stored=stored, state=state)

    def _spread(self, schedule: Schedule, stored: StoredSchedule | None, *, is_asked_for: bool = False) -> Schedule:
        before = stored.schedule if stored else None
        default = self.default_spread(schedule.tenant)
        return with_default_spread(schedule, default, before=before, is_asked_for=is_asked_for)

    def _counted(
        self,
        schedule: Schedule,
        after: ScheduleState,
        *,
        stored: StoredSchedule | None,
        state: ScheduleState | None,
    ) -> Change:
        """A change that says what the schedule counts for from then on. stored, state: what stands there until then."""
        share = share_of(schedule, after, before=stored.schedule if stored else None, seen=state)
        return Change(schedule, replace(after, share=share), limits=self.limits(schedule.tenant))

    def _revived(self, stored: StoredSchedule | None, state: ScheduleState | None) -> standing.Standing:
        assert stored is not None
        assert state is not None
        if state.status is Status.ACTIVE and self.materialiser.revive(stored.key) is Carried.REFUSED:
            raise NotPlaced(["the schedule is stored, but its next fire is not placed yet"])
        return self._standing(stored, state)

    def _standing(self, stored: StoredSchedule | None, state: ScheduleState | None) -> standing.Standing:
        assert stored is not None
        assert state is not None
        return standing.standing_of(stored, state, now=self.clock.now())

    def _with_stored_payload(self, schedule: Schedule) -> Schedule:
        text = schedule.job.payload.text
        if text is None or written_size(text) <= INLINE_LIMIT:
            return schedule
        pointer = self.payloads.put_for_schedule(schedule.uid, text)
        return replace(schedule, job=replace(schedule.job, payload=Payload(pointer=pointer)))
