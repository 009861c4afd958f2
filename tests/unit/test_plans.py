"""What a process knows of the tenants' plans."""

from dataclasses import replace

import pytest

from functions.domain.jobs.id_check import SECRET_BYTES
from functions.domain.tenants.plan import Tenant, TenantPlan, TenantStatus
from functions.ports.tenants import EVERYBODY, Revision
from functions.services.tenants.plans import KNOWN_FOR, KnownPlans
from testkit.builders import NOON
from testkit.fakes import FakeClock, InMemoryTenantStore, RecordingJournal

STAGE = {"default": {"weight": 2}, "gold": {"weight": 5, "execution_rate": 100}}
USUAL = TenantPlan(weight=2)
UNPAID = Tenant(status=TenantStatus.PAUSED, note="unpaid", version=1)
PAUSED = TenantPlan(weight=2, status=TenantStatus.PAUSED, note="unpaid")


class _Broken(InMemoryTenantStore):
    def revision(self) -> Revision:
        raise ConnectionError("no answer")

    def all(self) -> tuple[Revision, dict[str, Tenant]]:
        raise ConnectionError("no answer")


def known(store: InMemoryTenantStore, clock: FakeClock) -> KnownPlans:
    return KnownPlans(clock=clock, tenants=store, journal=RecordingJournal(), stage_plans=STAGE)


def test_a_tenant_without_a_row_is_on_the_default_plan_of_the_stage():
    plans = known(InMemoryTenantStore(), FakeClock())

    assert plans.of("acme") == USUAL


def test_a_change_is_known_within_half_a_minute():
    store, clock = InMemoryTenantStore(), FakeClock()
    plans = known(store, clock)
    assert plans.of("acme") == USUAL

    store.change("acme", UNPAID, seen=0)
    assert plans.of("acme") == USUAL
    clock.tick(KNOWN_FOR)

    assert plans.of("acme") == PAUSED


def test_plans_that_have_not_changed_are_not_read_again():
    store, clock = InMemoryTenantStore(), FakeClock()
    store.change("acme", UNPAID, seen=0)
    plans = known(store, clock)
    plans.of("acme")
    store.reads = 0

    for tenant in ("acme", "umbrella", "acme"):
        plans.of(tenant)
    assert store.reads == 0
    clock.tick(KNOWN_FOR)
    for tenant in ("acme", "umbrella"):
        plans.of(tenant)

    assert store.reads == 1


def test_a_request_is_answered_from_one_revision_however_long_it_takes():
    store, clock = InMemoryTenantStore(), FakeClock()
    plans = known(store, clock)
    plans.of("acme")
    store.change("acme", UNPAID, seen=0)

    with plans.one_revision():
        # Known too long already: the first question reads.
        clock.tick(KNOWN_FOR)
        assert plans.of("acme") == PAUSED
        store.change("acme", Tenant(version=2), seen=1)
        store.reads = 0
        clock.tick(KNOWN_FOR)
        assert plans.of("acme") == PAUSED
        assert store.reads == 0

    assert plans.of("acme") == USUAL


def test_what_was_known_goes_on_while_the_store_fails(monkeypatch: pytest.MonkeyPatch):
    store, clock = InMemoryTenantStore(), FakeClock()
    store.change("acme", UNPAID, seen=0)
    plans = known(store, clock)
    plans.of("acme")
    monkeypatch.setattr(store, "revision", _Broken().revision)
    clock.tick(KNOWN_FOR)

    assert plans.of("acme") == PAUSED


def test_nothing_is_guessed_before_the_plans_were_ever_read():
    with pytest.raises(ConnectionError):
        known(_Broken(), FakeClock()).of("acme")


def test_what_a_tenant_has_of_its_own_counts_more_than_its_plan_and_that_more_than_the_default():
    store = InMemoryTenantStore()
    store.change("acme", Tenant(plan="gold", limits={"execution_rate": 7}, version=1), seen=0)
    store.change("umbrella", Tenant(plan="gold", version=1), seen=0)
    store.change("globex", Tenant(plan="gone", version=1), seen=0)
    plans = known(store, FakeClock())

    assert plans.of("acme") == TenantPlan(weight=5, execution_rate=7)
    assert plans.of("umbrella") == TenantPlan(weight=5, execution_rate=100)
    assert plans.of("globex") == USUAL


def test_a_pause_of_everybody_pauses_each_tenant_but_brings_nobody_back():
    store, clock = InMemoryTenantStore(), FakeClock()
    store.change("gone", Tenant(status=TenantStatus.DELETED, version=1), seen=0)
    store.change(EVERYBODY, Tenant(status=TenantStatus.PAUSED, note="a bad deploy", version=1), seen=0)
    plans = known(store, clock)

    assert plans.of("acme").is_paused
    assert plans.of_everybody().note == "a bad deploy"
    assert plans.of("gone").is_deleted
    assert not plans.of("gone").is_paused

    store.change(EVERYBODY, Tenant(version=2), seen=1)
    clock.tick(KNOWN_FOR)
    assert not plans.of("acme").is_paused


def test_a_tenant_that_drains_takes_nothing_in_while_everybody_is_paused():
    store = InMemoryTenantStore()
    store.change("acme", Tenant(status=TenantStatus.DRAINING, version=1), seen=0)
    store.change(EVERYBODY, Tenant(status=TenantStatus.PAUSED, version=1), seen=0)

    plan = known(store, FakeClock()).of("acme")

    assert (plan.is_paused, plan.is_closed, plan.is_deleted) == (True, True, False)


def test_every_plan_knows_when_the_pause_of_everybody_ended_last():
    store, clock = InMemoryTenantStore(), FakeClock()
    store.change("acme", Tenant(plan="gold", version=1), seen=0)
    store.change(EVERYBODY, Tenant(status_since=NOON, version=1), seen=0)

    plan = known(store, clock).of("acme")

    assert (plan.stage_resumed_at, plan.resumed_at) == (NOON, NOON)
    later = replace(plan, changed_at=NOON + KNOWN_FOR)
    assert later.resumed_at == NOON + KNOWN_FOR
    assert replace(later, status=TenantStatus.DRAINING).resumed_at == NOON


def test_plans_are_old_when_either_clock_says_so():
    store, clock = InMemoryTenantStore(), FakeClock()
    plans = known(store, clock)
    plans.of("acme")
    store.change("acme", UNPAID, seen=0)

    clock.ahead = KNOWN_FOR  # the monotonic clock stood still with its process

    assert plans.of("acme") == PAUSED


def test_the_tenants_that_are_not_served_are_reported_by_name():
    store = InMemoryTenantStore()
    for status in TenantStatus:
        store.change(f"t-{status}", Tenant(status=status, version=1), seen=0)
    plans = known(store, FakeClock())

    assert list(plans.unserved()) == ["t-deleting", "t-draining", "t-paused"]
    assert plans.unserved()["t-draining"].status is TenantStatus.DRAINING


def test_a_pause_of_all_makes_no_tenant_one_that_is_not_served():
    store = InMemoryTenantStore()
    store.change(EVERYBODY, UNPAID, seen=0)
    store.change("acme", Tenant(plan="gold", version=1), seen=0)
    plans = known(store, FakeClock())

    assert plans.unserved() == {}
    assert plans.of_everybody().is_stage_paused


class TestTheSecretOfIds:
    def test_two_processes_that_begin_at_once_have_one(self):
        store = InMemoryTenantStore()
        processes = [known(store, FakeClock()) for _ in range(2)]
        for plans in processes:
            plans.of("acme")  # neither has seen one

        first, second = (plans.id_secret() for plans in processes)

        assert first == second
        assert len(first) == SECRET_BYTES

    def test_it_comes_with_the_plans_and_is_written_once(self):
        store, clock = InMemoryTenantStore(), FakeClock()
        secret = known(store, clock).id_secret()
        plans = known(store, clock)
        plans.of("acme")
        store.reads = 0

        assert [plans.id_secret() for _ in range(3)] == [secret] * 3
        assert store.reads == 0

    def test_no_two_stages_have_the_same(self):
        assert (
            known(InMemoryTenantStore(), FakeClock()).id_secret()
            != known(InMemoryTenantStore(), FakeClock()).id_secret()
        )

    @pytest.mark.parametrize("left", [b"", b"that of a backup, which is older."[:SECRET_BYTES]])
    def test_where_it_was_lost_or_another_was_restored_all_have_the_new_one_within_half_a_minute(self, left: bytes):
        store, clock = InMemoryTenantStore(), FakeClock()
        processes = [known(store, clock) for _ in range(2)]
        old = {plans.id_secret() for plans in processes}
        store.id_secret = left

        clock.tick(KNOWN_FOR)
        new = {plans.id_secret() for plans in processes}

        assert len(new) == 1
        assert new.isdisjoint(old)
        assert new == {store.id_secret}

    def test_what_was_known_goes_on_while_the_store_fails(self, monkeypatch: pytest.MonkeyPatch):
        store, clock = InMemoryTenantStore(), FakeClock()
        plans = known(store, clock)
        secret = plans.id_secret()
        monkeypatch.setattr(store, "revision", _Broken().revision)
        clock.tick(KNOWN_FOR)

        assert plans.id_secret() == secret
