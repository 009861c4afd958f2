"""A stage that lives for months: time passes quickly where nothing is to be done, and rows and messages expire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from functions.domain.instants import from_seconds
from functions.domain.jobs.claims import LedgerRow
from functions.domain.tenants.plan import TenantPlan
from functions.services.far_ring.pacer import Pacer
from testkit.world.carriers import cursors_of
from testkit.world.process import SMOOTHLY
from verification.stage import Stage

_EXPIRING = timedelta(days=1)
_SETTLING = timedelta(days=7)
"""Longer than the attempts of a job go on once nothing is in its way; twice of it, than any copy of a message lasts."""

_BUSY, _IDLE = timedelta(minutes=10), timedelta(hours=6)


@dataclass
class StageOfDays(Stage):
    """Ticks come when a bucket with rows opens, every ten minutes while messages wait, and every six hours otherwise."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._expired_at = self.clock.instant
        self._expired: dict[str, LedgerRow] = {}

    def after_tick(self, at: datetime) -> datetime:
        now = self.clock.instant
        if self.promises.operations.open() or self._is_behind():
            return at
        message = self._next_message()
        is_busy = self.ready.dead or (message is not None and message.visible_at < now + 2 * _BUSY)
        calls = [now + (_BUSY if is_busy else _IDLE)]
        calls += [message.visible_at] if message is not None else []
        calls += [instant for instant, _, _ in self._agenda[:1]]
        opens = self._next_bucket_with_rows()
        calls += [opens] if opens is not None else []
        return max(at, min(calls))

    def finish(self) -> None:
        self.chaos.is_over = True
        self.lift_everything()
        self.ask_again_for_replays()
        self.live_until(self.clock.instant + _SETTLING)
        # Attempts are hours apart: whoever waits for the last ones has seen others begin.
        for key in self.lives:
            if not self.is_stopped(key):
                self.delete(key)
        self.live_until(self.clock.instant + _SETTLING)
        super().finish()

    def kept_rows(self) -> Mapping[str, LedgerRow]:
        return {**self._expired, **super().kept_rows()}

    def _tick(self) -> None:
        self._use_up_rates()
        if self.clock.instant >= self._expired_at + _EXPIRING:
            self._expired_at = self.clock.instant
            self.promises.schedules.settle()
            self._expired.update(self.let_go())
        super()._tick()

    def _use_up_rates(self) -> None:
        """A tenant with a cap hands in far more than it lets through: thousands of jobs, by all that is seen of them."""
        now = self.clock.instant
        for tenant, plan in self.plans.given.items():
            if plan.has_rate and not plan.is_paused:
                until = now + self.wheel.guard + self.wheel.bucket
                most = ceil((until - now).total_seconds() * plan.execution_rate) + 2
                self._book(tenant, plan, most, until=until)

    def _book(self, tenant: str, plan: TenantPlan, count: int, *, until: datetime) -> None:
        process = self.process("others", SMOOTHLY)
        pacer, due_ats = self.build(Pacer, process), [self.clock.instant] * count
        self.begin(process, lambda: pacer.bookings(tenant, plan, due_ats, until=until), SMOOTHLY)

    def _is_behind(self) -> bool:
        """Whether a scanner has not come as far as it might: a tick has its time, and each bucket takes some."""
        if self.plans.everybody.is_paused:
            return False
        horizon = self.wheel.horizon(now=self._ticked_at)
        texts = [row["cursors"] for row in self.shards.rows.values() if row["cursors"]]
        cursors = [cursor for text in texts for cursor in cursors_of(text).values()]
        going = [own.at for cursor in cursors for own in cursor.own.values() if not own.is_held_back]
        return any(at.bucket <= horizon for at in (*going, *(cursor.at for cursor in cursors)))

    def _next_bucket_with_rows(self) -> datetime | None:
        """When the next one opens of which rows are to be sent."""
        horizon = self.wheel.horizon(now=self.clock.instant)
        ahead = [bucket for (bucket, _), rows in self.timers.rows.items() if rows and bucket > horizon]
        return from_seconds(min(ahead)) - self.wheel.lookahead if ahead else None
