"""No more calls of a tenant at the same time than its cap says, whoever dies, stalls or is late.

Histories that end well, and each with a scheduler that breaks one rule of the permits, which they must notice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.targets.concurrency import Permit
from functions.domain.tenants.plan import TenantPlan
from functions.services.targets.concurrency_limiter import ConcurrencyLimiter
from functions.worker.preconditions import Permission, Preconditions
from testkit.builders import a_submission
from testkit.fakes import InMemoryPermitStore
from testkit.world.process import HELD, Conditions, Fate, Fault, Process
from testkit.world.world import World
from tests.properties.machine import SCHEDULER_SETTINGS, Scheduler

TIMEOUT = timedelta(seconds=10)
LEASE = timedelta(seconds=15)


class CappedTenants(Scheduler):
    @rule(limit=st.sampled_from([1, 2]), stops=st.lists(st.sampled_from(["target.begin", "target.end"]), max_size=3))
    def call_side_by_side(self, limit, stops) -> None:
        """Jobs of a capped tenant come to several workers, each of which is held around its call."""
        self.cap("acme", limit)
        for _ in stops:
            self.world.submit(a_submission(due_at=self.world.clock.instant, timeout=TIMEOUT))
        for stop in stops:
            worker = self.world.work(HELD, batch=1)
            if worker and not worker.is_over:
                worker.go_to(stop, or_to_its_end=True)
                self.began(worker)


@pytest.mark.long
def test_the_scheduler_keeps_the_caps_of_its_tenants():
    run_state_machine_as_test(CappedTenants, settings=settings(SCHEDULER_SETTINGS, max_examples=80))


def a_world(limit: int = 1, jobs: int = 2) -> World:
    world = World()
    world.history.note_turn(world.clock.instant, "plans", f"acme may have {limit} calls")
    world.promises.at_once.capped("acme", limit, moment=world.history.moment)
    world.plans.put("acme", TenantPlan(max_concurrency=limit), now=world.clock.instant)
    for _ in range(jobs):
        # Due for every clock.
        world.submit(a_submission(due_at=world.clock.instant - world.wheel.skew, timeout=TIMEOUT))
    return world


def held_in_its_call(world: World, *, ahead: timedelta = timedelta(0)) -> Process:
    worker = world.work(replace(HELD, ahead=ahead), batch=1)
    assert worker is not None
    worker.go_to("target.end")
    return worker


def held_at_its_permit(world: World) -> Process:
    """At the first call that it makes."""
    worker = world.work(HELD, batch=1)
    assert worker is not None
    worker.go_on(steps=0)
    assert worker.lanes[-1].call == "permits.take"
    return worker


def two_workers_come_at_once(world: World) -> None:
    held_in_its_call(world)
    world.work(batch=1)


def two_workers_see_the_same_free_permit(world: World) -> None:
    workers = [held_at_its_permit(world) for _ in range(2)]
    for worker in workers:
        worker.go_to("target.end", or_to_its_end=True)


def a_worker_dies_in_its_call(world: World) -> None:
    held_in_its_call(world).kill()
    world.time_passes(TIMEOUT - SECOND)
    world.work(batch=1)


def a_fast_clock_looks(world: World) -> None:
    """To the worker whose clock is ahead the lease is over while the other is still in its call."""
    held_in_its_call(world, ahead=-world.wheel.skew / 2)
    world.time_passes(TIMEOUT - SECOND)
    world.work(Conditions(ahead=world.wheel.skew / 2), batch=1)


def a_release_comes_late(world: World) -> None:
    """Its lease is over, and another has the permit by then."""
    late = world.work(HELD, batch=1)
    assert late is not None
    late.go_to("permits.give_back")
    world.time_passes(LEASE + world.wheel.skew + MILLISECOND)
    held_in_its_call(world)
    late.finish()
    world.work(batch=1)


def a_worker_stalls_before_its_claim(world: World) -> None:
    """The lease of its permit is over when it takes it."""
    stalled = held_at_its_permit(world)
    world.time_passes(LEASE + world.wheel.skew + MILLISECOND)
    stalled.go_to("target.end", or_to_its_end=True)
    world.work(batch=1)


class _Limiter(ConcurrencyLimiter):
    def take(self, tenant: str, *, limit: int, lease_until: datetime) -> Permit | None:
        return super().take(tenant, limit=limit, lease_until=lease_until - LEASE)


def takes_what_is_taken(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    take = InMemoryPermitStore.take

    def take_anyway(store: InMemoryPermitStore, permit: Permit, **given: Any) -> bool:
        store.rows.pop((permit.tenant, permit.number), None)
        return take(store, permit, **given)

    monkeypatch.setattr(InMemoryPermitStore, "take", take_anyway)
    return {}


def leases_without_the_timeout(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    monkeypatch.setattr(Permission, "has_permit_until", lambda *_: True)
    return {ConcurrencyLimiter: _Limiter}


def looks_without_skew(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    take = InMemoryPermitStore.take

    def take_sooner(store: InMemoryPermitStore, permit: Permit, *, now: datetime, skew: timedelta) -> bool:
        # Nor with what a lease has beyond the timeout.
        return take(store, permit, now=now + LEASE - TIMEOUT, skew=timedelta(0))

    monkeypatch.setattr(InMemoryPermitStore, "take", take_sooner)
    return {}


def gives_back_whoever_has_it(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    def give_back(store: InMemoryPermitStore, permit: Permit) -> None:
        store.rows.pop((permit.tenant, permit.number), None)

    monkeypatch.setattr(InMemoryPermitStore, "give_back", give_back)
    return {}


def calls_with_a_permit_that_is_over(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    monkeypatch.setattr(Permission, "has_permit_until", lambda *_: True)
    return {}


def claims_without_a_permit(monkeypatch: pytest.MonkeyPatch) -> dict[type, type]:
    monkeypatch.setattr(Preconditions, "_with_permit", lambda _, __, go, **___: Permission(go=go))
    return {}


@pytest.mark.parametrize("broken", [takes_what_is_taken, claims_without_a_permit], ids=lambda broken: broken.__name__)
def test_the_scheduler_notices_what_is_broken(
    broken: Callable[[pytest.MonkeyPatch], dict[type, type]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(CappedTenants, "lambdas", broken(monkeypatch))
    with pytest.raises(AssertionError, match=r"calls at the same time, of [12]"):
        run_state_machine_as_test(CappedTenants, settings=settings(SCHEDULER_SETTINGS, max_examples=3_000))


HISTORIES = [
    (two_workers_come_at_once, claims_without_a_permit),
    (two_workers_see_the_same_free_permit, takes_what_is_taken),
    (a_worker_dies_in_its_call, leases_without_the_timeout),
    (a_fast_clock_looks, looks_without_skew),
    (a_release_comes_late, gives_back_whoever_has_it),
    (a_worker_stalls_before_its_claim, calls_with_a_permit_that_is_over),
]


@pytest.mark.parametrize("history", [history for history, _ in HISTORIES], ids=lambda history: history.__name__)
def test_a_history_ends_well(history: Callable[[World], None]):
    world = a_world(jobs=3)
    try:
        history(world)
        world.come_to_an_end()
    finally:
        world.end()


@pytest.mark.parametrize(("history", "broken"), HISTORIES, ids=lambda each: each.__name__)
def test_a_history_notices_what_is_broken(
    history: Callable[[World], None],
    broken: Callable[[pytest.MonkeyPatch], dict[type, type]],
    monkeypatch: pytest.MonkeyPatch,
):
    world = a_world(jobs=3)
    world.lambdas = broken(monkeypatch)
    try:
        history(world)
        with pytest.raises(AssertionError, match="2 calls at the same time, of 1"):
            world.check()
    finally:
        world.end()


@pytest.mark.parametrize("fate", [Fate.DIES_BEFORE, Fate.DIES_AFTER, Fate.LATE, Fate.ECHOES, Fate.TWICE, Fate.FAILS])
@pytest.mark.parametrize("at_call", range(1, 8))
def test_every_call_of_a_worker_may_go_wrong_and_its_permit_comes_back(fate: Fate, at_call: int):
    world = a_world(jobs=1)
    try:
        world.work(Conditions(fault=Fault(fate, at_call=at_call)))
        world.time_passes(timedelta(minutes=2))
        world.plans.put("acme", TenantPlan(max_concurrency=1), now=world.clock.instant)
        world.submit(a_submission(due_at=world.clock.instant, timeout=TIMEOUT))
        world.live_on(timedelta(minutes=5))
        assert len([run for runs in world.promises.runs.values() for run in runs if run.is_success]) >= 2
        world.come_to_an_end()
    finally:
        world.end()
