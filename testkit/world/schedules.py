"""What schedules promise: every fire that a version decided runs once, and nothing else does.

The committed changes are the truth. What follows from them is worked out in another way than the scheduler's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.jobs.occurrence import UNBOUND, identity_of
from functions.domain.schedules.due_fires import DueFires
from functions.domain.schedules.state import Link, ScheduleState, Status
from functions.ports.schedules import StoredSchedule
from testkit.world.carriers import alarms, alarms_ahead, carriers, leads_on
from testkit.world.decisions import wrong_about, wrong_beginning, wrong_in_order
from testkit.world.expected import fires_between, interval_of
from testkit.world.fires import Fires
from testkit.world.stores import KeptByAll
from testkit.world.truth import Truth, Version


class Record(Protocol):
    """What is known of all jobs."""

    refused_keys: set[str]

    def expect(self, is_true: bool, violation: str) -> None:
        """Note a violation."""
        ...

    def is_done_without_ledger(self, key: str) -> bool:
        """Whether a job that has no ledger row has come to its end."""
        ...


@dataclass(frozen=True)
class Owed:
    """A fire that has been placed, or a run that a client was promised. version: that stood then."""

    key: str
    schedule_key: str
    version: int
    fire_at: datetime
    delivery: Delivery
    expires_at: datetime | None
    is_asked_for: bool = False


class SchedulePromises:
    """What schedules promise, and whether it is kept."""

    def __init__(self, stores: KeptByAll, record: Record) -> None:
        self._stores = stores
        self._record = record
        self._expect = record.expect
        self._written: dict[str, int] = {}
        self.truth = Truth()
        self.fires = Fires(stores, self.truth, record.expect)
        self.owed: dict[str, Owed] = {}

    def changed(self, stored: StoredSchedule, state: ScheduleState, *, met: ScheduleState | None) -> None:
        """A change has been committed."""
        key = stored.key
        version = self.truth.commit(stored, state, moment=self._stores.history.moment)
        self._written[key] = self._stores.history.moment
        self._expect(state.figures is None, f"a new version of {key} begins with figures")
        if not version.is_active:
            # From end to start a run that has begun is awaited also while it is paused.
            is_over = state.link is None or (version.status is Status.PAUSED and state.link.is_awaited)
            self._expect(is_over, f"{key} goes on although it is {version.status}")
            return
        if met is not None and met.status is Status.ACTIVE and met.link is not None and not met.link.is_awaited:
            self._expect(met.link.at > version.since, f"lost: a change of {key} has left {met.link.at} behind")
        for wrong in wrong_beginning(version, state.link, met=met, fire_count=state.fire_count):
            self._note(f"{key} version {version.number} {wrong}")

    def advanced(self, key: str, decided: DueFires, *, met: ScheduleState, after: ScheduleState) -> None:
        """A step of a chain has been recorded: what it has placed is owed from now on."""
        version = self.truth.last(key)
        assert met.link is not None
        self._written[key] = self._stores.history.moment
        owed = {link.at for link in decided.kept}
        self.fires.recorded.setdefault(key, set()).update((version.number, at) for at in owed)
        if version.schedule.is_end_to_start:
            ends, interval = self.fires.ends_of(key), interval_of(version.schedule)
            wrongs = [
                wrong for at in owed for wrong in wrong_in_order(at, interval=interval, since=version.since, ends=ends)
            ]
        else:
            placed = self.fires.placed_of(key, version.number)
            now = self._stores.clock.now()
            wrongs = list(
                wrong_about(version, decided, met=met.link, fire_count=after.fire_count, now=now, placed=placed)
            )
            if decided.link is not None:
                owed |= placed.intersection(fires_between(version.schedule, met.link.at, decided.link.at))
        for wrong in wrongs:
            self._note(f"{wrong}: {key} version {version.number}")
        for at in owed:
            self._owe(key, version, at)
        if after.alarm_at is not None:
            is_placed = any(alarm.alarm_at == after.alarm_at for alarm in self._mine(key, alarms(self._stores.timers)))
            self._expect(is_placed, f"recorded an alarm that is not placed: {key} at {after.alarm_at}")
        mine = [at for number, at in self.fires.recorded[key] if number == version.number and at > version.since]
        gaps = after.figures.gap_count if after.figures else 0
        self._expect(
            gaps == max(0, len(mine) - 1), f"counted {gaps} gaps of {len(mine)} fires: {key} version {version.number}"
        )

    def triggered(self, key: str, job_id: str) -> None:
        """A client received that its run is on its way."""
        parsed, version = parse_job_id(job_id), self.truth.last(key)
        expires_after = version.schedule.job.expires_after
        expires_at = parsed.due_at + expires_after if expires_after else None
        self.owed[parsed.key] = Owed(
            parsed.key, key, version.number, parsed.due_at, parsed.delivery, expires_at, is_asked_for=True
        )

    def counts(self, timer: Timer) -> bool:
        """Whether it is not a fire of a version that was not the one to decide it."""
        occurrence = timer.job.occurrence
        if occurrence is None or occurrence.version <= UNBOUND:
            return True
        return self.truth.counts(f"{timer.job.tenant}#{occurrence.schedule_id}", occurrence)

    def settle(self) -> None:
        """What has come to its end is owed no more, whatever becomes of its row."""
        rows = self._stores.ledger.rows
        for key, owed in list(self.owed.items()):
            if self._is_over(owed, rows.get(key)):
                del self.owed[key]

    def check(self, *, is_quiet: bool) -> None:
        """Whatever is owed is on its way, or has come to its end. is_quiet: nobody is at anything."""
        stores = self._stores
        self.settle()
        carried = carriers(stores) if self.owed else {}
        for key, owed in self.owed.items():
            row = stores.ledger.rows.get(key)
            on_its_way = [timer for timer in carried.get(key, ()) if leads_on(timer, row)]
            is_carried = any(timer.attempt > 1 or self.counts(timer) for timer in on_its_way)
            self._expect(is_carried, f"lost: {key} of version {owed.version} is {row}, on its way: {len(on_its_way)}")
        if is_quiet:
            self._check_chains()

    def is_caught_up(self, until: datetime) -> bool:
        """Whether everything up to then has been decided, and has come to its end."""
        self.check(is_quiet=False)
        is_behind = any(self._is_behind(key, until) for key in self.truth.keys(Status.ACTIVE))
        return not is_behind and not any(self._must_end(owed, until) for owed in self.owed.values())

    def check_caught_up(self, until: datetime) -> None:
        """Each active schedule has come that far, and goes on in one way."""
        ahead = alarms_ahead(self._stores.timers, self._stores.shards)
        for key in self.truth.keys(Status.ACTIVE):
            state = self._stores.schedules.state(key)
            assert state is not None
            self._expect(not self._is_behind(key, until), f"lost: {key} stands at {state.link} still")
            if state.link is not None:
                # From end to start each end of a run places an alarm too. Only the recorded one goes on.
                is_any = not self.truth.last(key).schedule.is_end_to_start
                # The same alarm in two shards is one: it was put again after its tenant was spread over more or fewer.
                chains = {
                    (alarm.alarm_at, alarm.link.position)
                    for alarm in self._mine(key, ahead)
                    if alarm.alarm_at == state.alarm_at or (is_any and alarm.link.at >= state.link.at)
                }
                self._expect(len(chains) == 1, f"{len(chains)} chains: {key} at {state.link.at}")
        for owed in self.owed.values():
            must_end = self._must_end(owed, until)
            self._expect(not must_end, f"lost: {owed.key} of version {owed.version} has not come to its end")

    def _note(self, violation: str) -> None:
        self._expect(False, violation)  # noqa: FBT003

    def _check_chains(self) -> None:
        """Somebody goes on with each chain, if nothing has gone wrong since it was last written."""
        ahead: list[ScheduleAlarm] | None = None
        for key in self.truth.keys(Status.ACTIVE):
            state = self._stores.schedules.state(key)
            if state is None or state.link is None or self._stores.history.disturbed >= self._written[key]:
                continue
            ahead = alarms_ahead(self._stores.timers, self._stores.shards) if ahead is None else ahead
            goes_on = any(_carries_on(alarm, state.link) for alarm in self._mine(key, ahead))
            self._expect(goes_on, f"nobody continues: {key} at {state.link.at}, alarm at {state.alarm_at}")

    def _mine(self, key: str, among: list[ScheduleAlarm]) -> list[ScheduleAlarm]:
        number = self.truth.last(key).number
        return [alarm for alarm in among if f"{alarm.tenant}#{alarm.schedule_id}" == key and alarm.version == number]

    def _owe(self, key: str, version: Version, fire_at: datetime) -> None:
        schedule = version.schedule
        name = f"{schedule.tenant}#{identity_of(schedule.schedule_id, fire_at)}"
        limits = [limit for limit in (schedule.job.expires_after, schedule.max_lateness) if limit is not None]
        expires_at = fire_at + min(limits) if limits else None
        self.owed[name] = Owed(name, key, version.number, fire_at, schedule.job.delivery, expires_at)

    def _is_over(self, owed: Owed, row: LedgerRow | None) -> bool:
        if owed.delivery is not Delivery.AT_LEAST_ONCE:
            is_over = row is not None and row.is_settled
        else:
            # Its worker's clock may be ahead.
            latest = self._stores.clock.instant + timedelta(seconds=5)
            is_expired = owed.expires_at is not None and latest >= owed.expires_at
            is_over = is_expired or self._record.is_done_without_ledger(owed.key)
        if is_over or owed.key in self._record.refused_keys:
            return True
        if owed.is_asked_for:
            moment = self._stores.history.moment
            return self.truth.is_deleted(owed.schedule_key, after=owed.version, before=moment)
        _, later = self.truth.of(owed.schedule_key, owed.version)
        is_taken_over = bool(later) and owed.fire_at > later[0].since
        return is_taken_over or any(not version.is_active for version in later)

    def _must_end(self, owed: Owed, until: datetime) -> bool:
        return owed.fire_at <= until and not self.fires.may_wait(owed.key)

    def _is_behind(self, key: str, until: datetime) -> bool:
        state = self._stores.schedules.state(key)
        if state is None or state.link is None:
            return False
        if not state.link.is_awaited:
            return state.link.at <= until
        tenant, _, schedule_id = key.partition("#")
        row = self._stores.ledger.rows.get(f"{tenant}#{identity_of(schedule_id, state.link.at)}")
        if row is None or not row.is_settled or row.updated_at is None:
            return False
        return row.updated_at + interval_of(self.truth.last(key).schedule) <= until


def _carries_on(alarm: ScheduleAlarm, link: Link) -> bool:
    """Whether a chain that stands there continues when an alarm comes due: one that is late continues from where it stands."""
    is_on_time = alarm.alarm_at == alarm.link.at
    return not is_on_time or alarm.link.at >= link.at
