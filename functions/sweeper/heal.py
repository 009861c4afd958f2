"""The sweep of the schedules: a chain whose alarm has been passed, or was never placed, is carried on.

A crash between any two writes leaves such a chain: its state still says what comes next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from functions.domain.far_ring.cursor import Cursors, SweepPosition, handled_for
from functions.domain.faults import fault_of
from functions.domain.instants import from_seconds, to_seconds
from functions.domain.jobs.claims import REQUEST_LIMIT
from functions.domain.schedules.fire_rates import idle_share_of, share_of
from functions.domain.schedules.state import ScheduleState, Status
from functions.domain.wheel import Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.schedules import ScheduleStore, StatePage, StoredSchedule
from functions.ports.shards import ShardStore
from functions.ports.tenants import TenantPlans
from functions.services.schedules.materialiser import SHARE, Carried, Materialiser
from functions.services.schedules.pauser import DIED

PASS_INTERVAL = timedelta(minutes=5)
"""A pass over all schedules begins no sooner than this after the one before began."""

MOST_OF_A_SWEEP = timedelta(minutes=2)
"""No sweep lasts so long: what one was at for longer, it has died of."""

MOST_ASIDES = 3
"""Chains of a tenant that a sweep sets aside. Its others wait for the next pass."""

SHARE_FOR_COUNTS = 0.2
"""The share of a sweep's time that what schedules count for takes at most. The rest of it waits for the next pass."""

PAGE = 500


@dataclass(slots=True)
class HealReport:
    """What one sweep of the schedules did."""

    seen: int = 0
    healed: int = 0
    refused: int = 0
    counted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Healer:
    """Sweeps schedules, a page at a time."""

    wheel: Wheel
    clock: Clock
    shards: ShardStore
    schedules: ScheduleStore
    materialiser: Materialiser
    plans: TenantPlans
    journal: Journal

    def heal(self, *, time_limit: timedelta) -> HealReport:
        """Continue the pass, or begin one when it is time, for at most 80 % of the time limit."""
        report = HealReport()
        now = self.clock.now()
        at = self.shards.swept()
        if at is None or at.after is None:
            if at is not None and now < from_seconds(at.began_at) + PASS_INTERVAL:
                return report
            pass_ = _Pass(self, SweepPosition(to_seconds(now), ""), recorded=at, report=report)
        else:
            if at.reviving and now < from_seconds(at.since) + MOST_OF_A_SWEEP + self.wheel.skew:
                return report  # another sweep may be at it
            pass_ = _Pass(self, at, recorded=at, report=report)
        began = self.clock.monotonic()
        seconds = time_limit.total_seconds()
        pass_.run(ends_at=began + 0.8 * seconds, counts_for=SHARE_FOR_COUNTS * seconds)
        self.journal.count("schedules_healed", report.healed)
        self.journal.event("schedules_swept", seen=report.seen, healed=report.healed, refused=report.refused)
        return report

    def is_broken(self, key: str, state: ScheduleState, cursors: Mapping[int, Cursors]) -> bool:
        """Whether nothing will carry a chain on: its alarm lies behind the scanner, or was never placed."""
        tenant, _, schedule_id = key.partition("#")
        plan = self.plans.of(tenant)
        if state.status is not Status.ACTIVE or state.link is None or plan.is_deleted:
            return False
        if state.alarm_at is None:
            return state.changed_at + REQUEST_LIMIT + self.wheel.skew < self.clock.now()
        scanned = cursors.get(self.wheel.shard_of(tenant, schedule_id, subshards=plan.subshards))
        # As far as its slowest class: only its definition says which it has.
        return scanned is not None and handled_for(scanned, tenant) > self.wheel.bucket_of(state.alarm_at)

    def recount(self, page: StatePage) -> Iterator[bool]:
        """Put right, one by one, what schedules count for; whether each now is.

        Those that have ended or were paused by themselves, and those that were written by a version that did not count.
        """
        wrong = {
            key: state
            for key, state in page.states.items()
            if not state.is_counted_right and not self.plans.of(key.partition("#")[0]).is_deleted
        }
        stored = self.schedules.definitions([key for key, state in wrong.items() if state.goes_on]) if wrong else {}
        for key, state in wrong.items():
            definition = stored.get(key)
            if state.goes_on and (definition is None or definition.version != state.version):
                continue  # it is being changed, or a newer version has written it
            yield self._recount(key, state, definition)

    def _recount(self, key: str, state: ScheduleState, definition: StoredSchedule | None) -> bool:
        """Whether what a schedule counts for was put right. Never raises: a sum that is off must not hold up the chains."""
        try:
            with self.clock.limited(SHARE):
                share = idle_share_of(state) if definition is None else share_of(definition.schedule, state)
            return self.schedules.recount(key, share, seen=state)
        except Exception as error:  # noqa: BLE001  it is counted by the next pass
            self.journal.event("schedule_not_counted", schedule=key, error=fault_of(error))
            return False


@dataclass(slots=True)
class _Pass:
    """A part of a pass over all schedules, in the time of one sweep.

    Which chain is continued is recorded before: it may be the last record of this sweep.
    """

    healer: Healer
    at: SweepPosition
    recorded: SweepPosition | None
    report: HealReport
    _asides: Counter[str] = field(default_factory=Counter[str])

    def run(self, *, ends_at: float, counts_for: float) -> None:
        """Until the pass is over, or the time. counts_for: seconds that may go into what schedules count for."""
        healer = self.healer
        if self.at.reviving and not self._pass_over_culprit():
            return
        cursors = healer.shards.cursors(range(healer.wheel.scan_shards))
        while healer.clock.monotonic() < ends_at:
            page = healer.schedules.scan(after=self.at.after, limit=PAGE)
            for key, state in page.states.items():
                is_over = healer.is_broken(key, state, cursors) and (
                    healer.clock.monotonic() >= ends_at or not self._revive(key)
                )
                if is_over:
                    return
                self.report.seen += 1
            began = healer.clock.monotonic()
            # Behind the chains of the page: those are what a sweep is for.
            for is_right in healer.recount(page) if counts_for > 0 else ():
                self.report.counted += is_right
                if healer.clock.monotonic() >= min(ends_at, began + counts_for):
                    break
            counts_for -= healer.clock.monotonic() - began
            if not self._advance(after=page.after) or page.after is None:
                return

    def _pass_over_culprit(self) -> bool:
        """The chain of which a sweep has died is tried again in the next pass."""
        culprit = self.at.reviving
        state = self.healer.schedules.state(culprit)
        if state is not None:
            self.healer.materialiser.asides.set_aside(culprit, version=state.version, why=DIED)
        return self._advance(after=culprit)

    def _revive(self, key: str) -> bool:
        """False when another sweep is at it."""
        tenant = key.partition("#")[0]
        if self._asides[tenant] >= MOST_ASIDES:
            self.report.refused += 1
            return True
        now = to_seconds(self.healer.clock.now())
        if not self._record(self.at._replace(reviving=key, since=now)):
            return False
        try:
            carried = self.healer.materialiser.revive(key)
        except Exception as error:  # noqa: BLE001  one that cannot be carried on must not hold up the others
            self.healer.journal.event("schedule_not_healed", schedule=key, error=fault_of(error))
            carried = Carried.REFUSED
        self._asides[tenant] += carried is Carried.ASIDE
        if carried is Carried.ON:
            self.report.healed += 1
            self.healer.journal.event("schedule_healed", schedule=key)
        else:
            self.report.refused += 1
        # What is behind it need not be read again, should the time be over.
        return self._advance(after=key)

    def _advance(self, *, after: str | None) -> bool:
        return self._record(SweepPosition(self.at.began_at, after))

    def _record(self, to: SweepPosition) -> bool:
        if not self.healer.shards.advance_sweep(before=self.recorded, to=to):
            return False
        self.at = self.recorded = to
        return True
