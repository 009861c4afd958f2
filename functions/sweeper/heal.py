"""The sweep of the schedules: a chain whose alarm has been passed, or was never placed, is carried on.

A crash between any two writes leaves such a chain: its state still says what comes next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from functions.domain.claims import REQUEST_LIMIT
from functions.domain.cursor import Cursors, SweepPosition, passed_for
from functions.domain.faults import fault_of
from functions.domain.instants import from_seconds, to_seconds
from functions.domain.schedule_state import ScheduleState, Status
from functions.domain.wheel import Wheel
from functions.materialising import Materialiser
from functions.ports import Clock, Journal, ScheduleStore, ShardStore, TenantPlans

PASS_INTERVAL = timedelta(minutes=5)
"""A pass over all schedules begins no sooner than this after the one before began."""

PAGE = 500


@dataclass(slots=True)
class HealReport:
    """What one sweep of the schedules did."""

    seen: int = 0
    healed: int = 0
    refused: int = 0


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
        """Go on with the pass, or begin one when it is time, for at most 80 % of the time limit."""
        report = HealReport()
        ends_at = self.clock.monotonic() + 0.8 * time_limit.total_seconds()
        now = self.clock.now()
        at = self.shards.swept()
        recorded = at
        if at is None or at.after is None:
            if at is not None and now < from_seconds(at.began_at) + PASS_INTERVAL:
                return report
            at = SweepPosition(to_seconds(now), "")
        cursors = self.shards.cursors(range(self.wheel.scan_shards))
        while self.clock.monotonic() < ends_at:
            page = self.schedules.scan(after=at.after, limit=PAGE)
            for key, state in page.states.items():
                report.seen += 1
                if self._is_broken(key, state, cursors):
                    self._revive(key, report)
            at = SweepPosition(at.began_at, page.after)
            if not self.shards.advance_sweep(before=recorded, to=at):
                break  # another sweep is at it
            recorded = at
            if at.after is None:
                break
        self.journal.count("schedules_healed", report.healed)
        self.journal.event("schedules_swept", seen=report.seen, healed=report.healed, refused=report.refused)
        return report

    def _is_broken(self, key: str, state: ScheduleState, cursors: Mapping[int, Cursors]) -> bool:
        """Whether nothing will carry a chain on: its alarm lies behind the scanner, or was never placed."""
        tenant, _, schedule_id = key.partition("#")
        plan = self.plans.of(tenant)
        if state.status is not Status.ACTIVE or state.link is None or plan.is_deleted:
            return False
        if state.rings_at is None:
            return state.changed_at + REQUEST_LIMIT + self.wheel.skew < self.clock.now()
        scanned = cursors.get(self.wheel.shard_of(tenant, schedule_id, subshards=plan.subshards))
        # Of its slowest class: only its definition tells which it has.
        return scanned is not None and passed_for(scanned, tenant) > self.wheel.bucket_of(state.rings_at)

    def _revive(self, key: str, report: HealReport) -> None:
        try:
            is_healed = self.materialiser.revive(key)
        except Exception as error:  # noqa: BLE001  one that cannot be carried on must not hold up the others
            self.journal.event("schedule_not_healed", schedule=key, error=fault_of(error))
            is_healed = False
        if is_healed:
            report.healed += 1
            self.journal.event("schedule_healed", schedule=key)
        else:
            report.refused += 1
