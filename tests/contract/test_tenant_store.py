"""What every store of tenants keeps: plans by tenant, changed only by whoever saw them, and how often any was changed."""

from dataclasses import replace

from functions.domain.tenant_plan import TenantPlan
from functions.ports import TenantStore

PLAN = TenantPlan(weight=3, note="ü", version=1)


def test_a_tenant_has_no_plan_of_its_own_until_one_is_written(tenants: TenantStore):
    assert tenants.get("acme") is None
    assert tenants.all() == (0, {})
    assert tenants.revision() == 0

    assert tenants.change("acme", PLAN, seen=0)

    assert tenants.get("acme") == PLAN


def test_every_change_of_any_plan_is_a_new_revision(tenants: TenantStore):
    tenants.change("acme", PLAN, seen=0)
    first = tenants.revision()
    tenants.change("umbrella", PLAN, seen=0)

    assert tenants.revision() > first > 0
    assert tenants.all() == (tenants.revision(), {"acme": PLAN, "umbrella": PLAN})


def test_of_two_that_saw_the_same_plan_one_changes_it(tenants: TenantStore):
    tenants.change("acme", PLAN, seen=0)
    first, second = replace(PLAN, weight=5, version=2), replace(PLAN, weight=7, version=2)

    assert tenants.change("acme", first, seen=1)
    assert not tenants.change("acme", second, seen=1)
    assert not tenants.change("acme", second, seen=0)
    assert tenants.get("acme") == first


def test_a_change_whose_answer_was_lost_recognises_itself(tenants: TenantStore):
    changed = replace(PLAN, weight=5, version=2)
    tenants.change("acme", PLAN, seen=0)

    assert [tenants.change("acme", changed, seen=1) for _ in range(2)] == [True, True]


def test_plans_are_told_page_by_page_in_the_order_of_the_tenants(tenants: TenantStore):
    names = ["-", "Zeta", "a", "b.c", "z" * 64]
    for name in reversed(names):
        tenants.change(name, PLAN, seen=0)

    first, has_more = tenants.page(after="", limit=3)
    second, is_cut = tenants.page(after="a", limit=3)

    assert (list(first), has_more) == (names[:3], True)
    assert (list(second), is_cut) == (names[3:], False)
    assert tenants.all()[1] == dict.fromkeys(names, PLAN)
