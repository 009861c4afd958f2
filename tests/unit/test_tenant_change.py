"""What a tenant's row becomes, and what it cannot become."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.errors import InvalidInput, TenantChanged, TenantClosed, TenantDeleted
from functions.domain.tenants import changes as changing
from functions.domain.tenants.plan import Tenant, TenantStatus
from testkit.builders import NOON

PLANS: dict[str, dict[str, Any]] = {"default": {}, "gold": {"weight": 5}}
ROLE = "arn:aws:iam::123456789012:role/billing"
ROW = Tenant(plan="gold", limits={"weight": 3}, principals=(ROLE,), note="ü", version=7, changed_at=NOON)
LATER = NOON + timedelta(hours=1)

ACTIVE, PAUSED, DRAINING, DELETING, DELETED = TenantStatus


def values(**changes: Any) -> changing.TenantValues:
    return changing.TenantValues(**{"plan": "default", "limits": {}, "principals": (), "note": "", **changes})


def put(tenant: Tenant, **changes: Any) -> Tenant:
    return changing.replaced("acme", tenant, values(**changes), plans=PLANS, now=LATER)


def patch(tenant: Tenant, **parts: Any) -> Tenant:
    return changing.patched("acme", tenant, changing.TenantPatch(**parts), plans=PLANS, now=LATER)


def turn(tenant: Tenant, status: TenantStatus, note: str = "") -> Tenant:
    return changing.with_status("acme", tenant, status, note=note, now=LATER)


def test_a_tenant_is_replaced_as_a_whole_but_for_its_status():
    paused = replace(ROW, status=PAUSED, status_since=NOON)

    assert put(paused, limits={"max_pending": 5}) == Tenant(
        limits={"max_pending": 5}, status=PAUSED, status_since=NOON, version=8, changed_at=LATER
    )


def test_the_same_again_is_no_change():
    assert put(ROW, plan="gold", limits={"weight": 3.0}, principals=(ROLE,), note="ü") == ROW
    assert patch(ROW, limits={"weight": 3}, note="ü") is ROW
    assert patch(ROW) is ROW


def test_a_tenant_is_written_down_even_with_the_usual_values():
    assert put(Tenant()) == Tenant(version=1, changed_at=LATER)


@pytest.mark.parametrize(
    ("parts", "changed"),
    [
        ({"plan": "default"}, {"plan": "default"}),
        ({"limits": {"max_pending": 5}}, {"limits": {"weight": 3, "max_pending": 5}}),
        ({"limits": {"weight": None}}, {"limits": {}}),
        ({"limits": {"max_pending": 5, "weight": None}}, {"limits": {"max_pending": 5}}),
        ({"drops_limits": True}, {"limits": {}}),
        ({"principals": ()}, {"principals": ()}),
        ({"note": "x"}, {"note": "x"}),
    ],
)
def test_a_patch_changes_what_it_says(parts: dict[str, Any], changed: dict[str, Any]):
    assert patch(ROW, **parts) == replace(ROW, **changed, version=8, changed_at=LATER)


@pytest.mark.parametrize("limits", [{"wieght": None}, {"wieght": 3}, {"weight": 0}, {"top_priority": "urgent"}])
def test_a_patch_of_what_is_no_limit_is_refused(limits: dict[str, Any]):
    with pytest.raises(InvalidInput, match=r"wieght|weight|top_priority"):
        patch(ROW, limits=limits)


def test_a_plan_that_the_stage_does_not_have_is_refused_with_those_that_it_has():
    for change in (put, patch):
        with pytest.raises(InvalidInput, match=r"plan is 'silver', .*: use one of default, gold"):
            change(ROW, plan="silver")


def test_a_plan_that_the_stage_had_once_does_not_hold_up_other_changes():
    assert patch(replace(ROW, plan="bronze"), note="x").plan == "bronze"


def test_a_principal_that_is_no_pattern_is_refused():
    for change in (put, patch):
        with pytest.raises(InvalidInput, match="is no pattern of a role or a user"):
            change(ROW, principals=("billing",))


@pytest.mark.parametrize("status", TenantStatus)
@pytest.mark.parametrize("asked", TenantStatus)
def test_a_status_follows_another_only_where_the_table_says_so(status: TenantStatus, asked: TenantStatus):
    tenant = replace(ROW, status=status)
    if asked in changing.TRANSITIONS[status]:
        assert turn(tenant, asked, "why") == replace(
            tenant, status=asked, status_since=LATER, note="why", version=8, changed_at=LATER
        )
    elif asked is not status:
        with pytest.raises((TenantDeleted, TenantClosed)):
            turn(tenant, asked)


def test_the_table_of_statuses_is_the_one_that_is_described():
    assert {status: set(after) for status, after in changing.TRANSITIONS.items()} == {
        ACTIVE: {PAUSED, DRAINING, DELETING},
        PAUSED: {ACTIVE, DRAINING, DELETING},
        DRAINING: {ACTIVE, DELETING},
        DELETING: {DELETED},
        DELETED: set(),
    }


def test_what_is_draining_is_resumed_before_it_is_paused():
    with pytest.raises(TenantClosed, match="is draining: what it has continues"):
        turn(replace(ROW, status=DRAINING), PAUSED)


@pytest.mark.parametrize(("status", "said"), [(DELETING, "is being deleted"), (DELETED, "has been deleted: put it")])
@pytest.mark.parametrize("asked", [ACTIVE, PAUSED, DRAINING])
def test_a_deleted_tenant_is_not_turned(status: TenantStatus, said: str, asked: TenantStatus):
    with pytest.raises(TenantDeleted, match=said):
        turn(replace(ROW, status=status), asked)


def test_a_pause_with_another_reason_changes_the_reason_and_not_its_beginning():
    paused = replace(ROW, status=PAUSED, status_since=NOON)

    assert turn(paused, PAUSED, "x") == replace(paused, note="x", version=8, changed_at=LATER)
    assert turn(paused, PAUSED, "ü") is paused
    assert turn(ROW, ACTIVE, "x") is ROW


def test_only_replacing_it_brings_a_deleted_tenant_back():
    deleted = replace(ROW, status=DELETED, status_since=LATER - changing.FORGOTTEN_AFTER)

    assert put(deleted, note="again") == Tenant(note="again", status_since=LATER, version=8, changed_at=LATER)
    assert put(deleted, plan="gold", limits={"weight": 3}, principals=(ROLE,), note="ü").status is ACTIVE
    with pytest.raises(TenantDeleted):
        patch(deleted, note="again")


def test_what_is_being_deleted_is_not_changed():
    for change in (put, patch):
        with pytest.raises(TenantDeleted, match="is being deleted: wait"):
            change(replace(ROW, status=DELETING), note="x")


def test_who_changes_a_version_that_is_there_no_more_is_reported_which_is():
    changing.check_version("tenant acme", ROW, None)
    changing.check_version("tenant acme", ROW, 7)
    for seen in (0, 6, 8):
        with pytest.raises(TenantChanged, match=f"tenant acme has version 7, not {seen}"):
            changing.check_version("tenant acme", ROW, seen)
