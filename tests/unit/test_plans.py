"""What a process knows of the tenants' plans."""

import pytest

from functions.domain.errors import InvalidInput, Undecodable
from functions.domain.tenant_plan import TenantPlan, decode_plan, encode_plan
from functions.plans import KNOWN_FOR, KnownPlans
from tests.builders import NOON
from tests.fakes import FakeClock, InMemoryTenantStore, RecordingJournal

USUAL = TenantPlan(weight=2)
PAUSED = TenantPlan(is_paused=True, note="unpaid", version=1)


class _Broken(InMemoryTenantStore):
    def revision(self) -> int:
        raise ConnectionError("no answer")


def known(store: InMemoryTenantStore, clock: FakeClock) -> KnownPlans:
    return KnownPlans(clock=clock, store=store, journal=RecordingJournal(), usual=USUAL)


def test_a_tenant_without_a_plan_has_the_usual_one():
    plans = known(InMemoryTenantStore(), FakeClock())

    assert plans.of("acme") == USUAL


def test_a_change_is_known_within_half_a_minute():
    store, clock = InMemoryTenantStore(), FakeClock()
    plans = known(store, clock)
    assert plans.of("acme") == USUAL

    store.change("acme", PAUSED, seen=0)
    assert plans.of("acme") == USUAL
    clock.tick(KNOWN_FOR)

    assert plans.of("acme") == PAUSED


def test_plans_that_have_not_changed_are_not_read_again():
    store, clock = InMemoryTenantStore(), FakeClock()
    store.change("acme", PAUSED, seen=0)
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


def test_what_was_known_goes_on_while_the_store_fails(monkeypatch: pytest.MonkeyPatch):
    store, clock = InMemoryTenantStore(), FakeClock()
    store.change("acme", PAUSED, seen=0)
    plans = known(store, clock)
    plans.of("acme")
    monkeypatch.setattr(store, "revision", _Broken().revision)
    clock.tick(KNOWN_FOR)

    assert plans.of("acme") == PAUSED


def test_nothing_is_guessed_before_the_plans_were_ever_read():
    with pytest.raises(ConnectionError):
        known(_Broken(), FakeClock()).of("acme")


@pytest.mark.parametrize(
    "plan",
    [
        TenantPlan(),
        TenantPlan(
            weight=2.5,
            is_paused=True,
            note="wegen Überlast",
            version=7,
            changed_at=NOON,
        ),
    ],
)
def test_a_plan_is_read_as_it_was_written(plan: TenantPlan):
    assert decode_plan(encode_plan(plan)) == plan


@pytest.mark.parametrize("text", ["", "[]", "7", '{"weight":0}', '{"version":"x","weight":"y"}'])
def test_what_is_no_plan_is_never_taken_for_one(text: str):
    with pytest.raises(Undecodable):
        decode_plan(text)


@pytest.mark.parametrize("weight", [0, 0.05, 101])
def test_a_weight_out_of_range_is_refused_by_name(weight: float):
    with pytest.raises(InvalidInput, match=f"weight is {weight:g}, but must be from 0.1 to 100"):
        TenantPlan(weight=weight)
