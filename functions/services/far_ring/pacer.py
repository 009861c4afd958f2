"""How fast jobs may come: what is due soon does not pass by the caps of its tenant, a pause, or a class that is full.

A job of a tenant whose rate is capped goes out with a booking, the instant from which it may run, reserved a batch at a
time by whoever sends it: the scanner for what comes from the far ring, the placer for what is near. What has no booking
within reach waits in the far ring, where a tenant's turn, its cap and the budget of its class decide.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from functions.domain.faults import fault_of
from functions.domain.jobs.job import Priority, Timer
from functions.domain.tenants.plan import TenantPlan
from functions.domain.tenants.rate_bookings import Timetable, reserve
from functions.domain.wheel import FAR_MARGIN, Ring, Wheel
from functions.ports.clock import Clock
from functions.ports.recorder import Journal
from functions.ports.tenants import Booked, RateStore, TenantPlans
from functions.services.stage.conditions import KnownConditions

MOST_KNOWN = 10_000
"""Tenants whose timetable a process remembers. One that it forgets costs a refused write."""

_TRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacer:
    """Reserves bookings, and holds back what has none. Safe for the threads of a batch."""

    wheel: Wheel
    clock: Clock
    plans: TenantPlans
    rates: RateStore
    conditions: KnownConditions
    journal: Journal
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _known: OrderedDict[str, Timetable | None] = field(default_factory=OrderedDict, init=False)

    def pace(self, timers: Sequence[Timer]) -> list[Timer]:
        """Timers that are to be placed, in order; what is near and may not run yet has a `not_before`.

        A write for each tenant among them whose rate is capped, and none for the others. Never raises for a store that
        fails: what cannot be decided waits in the far ring.
        """
        paced = list(timers)
        capped: dict[str, tuple[TenantPlan, list[int]]] = {}
        now = self.clock.now()
        near = [index for index, timer in enumerate(timers) if self.wheel.place(timer.wakes_at, now=now) is Ring.NEAR]
        # Asked only where something is near.
        full = self.conditions.full() if near else frozenset[Priority]()
        for index in near:
            timer = timers[index]
            plan = self.plans.of(timer.job.tenant)
            if plan.is_paused or timer.job.priority in full:
                paced[index] = self._held_back(timer, now=now)
            elif plan.has_rate:
                # One plan for all that follows: it may change meanwhile.
                capped.setdefault(timer.job.tenant, (plan, []))[1].append(index)
        for tenant, (plan, indexes) in capped.items():
            self._pace_tenant(tenant, plan, indexes, paced)
        return paced

    def bookings(
        self, tenant: str, plan: TenantPlan, due_ats: Sequence[datetime], *, until: datetime
    ) -> list[datetime]:
        """From when the first jobs of a tenant may run, in the order of their due times: those with a booking by then.

        None while the store fails or others reserve all the time: the next tick asks again.
        """
        for _ in range(_TRIES):
            seen = self._known.get(tenant)
            asked = reserve(due_ats, seen=seen, now=self.clock.now(), rate=plan.execution_rate, until=until)
            if not asked.bookings:
                # What is known may be old, but only as less than what is taken.
                return []
            try:
                answer = self.rates.book(tenant, asked.timetable, seen=seen)
            except Exception as error:  # noqa: BLE001  one tenant's item must not stop the others
                self.journal.event("rate_unknown", tenant=tenant, error=fault_of(error))
                return []
            if not isinstance(answer, Booked):
                self._learn(tenant, asked.timetable)
                return list(asked.bookings)
            self._learn(tenant, answer.timetable)
        self.journal.event("rate_contended", tenant=tenant)
        return []

    def _pace_tenant(self, tenant: str, plan: TenantPlan, indexes: Sequence[int], paced: list[Timer]) -> None:
        in_order = sorted(indexes, key=lambda index: paced[index].wakes_at)
        due_ats = [paced[index].wakes_at for index in in_order]
        now = self.clock.now()
        bookings = self.bookings(tenant, plan, due_ats, until=now + self.wheel.guard - FAR_MARGIN)
        for index, booking in zip(in_order, bookings, strict=False):
            paced[index] = replace(paced[index], not_before=booking)
        for index in in_order[len(bookings) :]:
            paced[index] = self._held_back(paced[index], now=now)

    def _held_back(self, timer: Timer, *, now: datetime) -> Timer:
        return replace(timer, not_before=now + self.wheel.guard + FAR_MARGIN)

    def _learn(self, tenant: str, timetable: Timetable | None) -> None:
        with self._lock:
            self._known[tenant] = timetable
            self._known.move_to_end(tenant)
            while len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
