"""What every store of tenants keeps: rows by tenant, changed only by whoever saw them, and how often any was changed."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from functions.domain.tenants.plan import Tenant, TenantStatus
from functions.ports.tenants import EVERYBODY, Revision, TenantStore

ROW = Tenant(limits={"weight": 3}, note="ü", version=1)


def test_a_tenant_has_no_row_until_one_is_written(tenants: TenantStore):
    assert tenants.get("acme") is None
    assert tenants.all() == (Revision(), {})
    assert tenants.revision() == Revision()

    assert tenants.change("acme", ROW, seen=0)

    assert tenants.get("acme") == ROW


def test_every_change_of_any_row_is_a_new_revision(tenants: TenantStore):
    tenants.change("acme", ROW, seen=0)
    first = tenants.revision().changes
    tenants.change("umbrella", ROW, seen=0)

    assert tenants.revision().changes > first > 0
    assert tenants.all() == (tenants.revision(), {"acme": ROW, "umbrella": ROW})


def test_of_two_that_saw_the_same_row_one_changes_it(tenants: TenantStore):
    tenants.change("acme", ROW, seen=0)
    first, second = replace(ROW, limits={"weight": 5}, version=2), replace(ROW, limits={"weight": 7}, version=2)

    assert tenants.change("acme", first, seen=1)
    assert not tenants.change("acme", second, seen=1)
    assert not tenants.change("acme", second, seen=0)
    assert tenants.get("acme") == first


def test_a_change_whose_answer_was_lost_recognises_itself(tenants: TenantStore):
    changed = replace(ROW, limits={"weight": 5}, version=2)
    tenants.change("acme", ROW, seen=0)

    assert [tenants.change("acme", changed, seen=1) for _ in range(2)] == [True, True]


def test_tenants_are_reported_page_by_page_in_the_order_of_their_names(tenants: TenantStore):
    names = ["-", "Zeta", "a", "b.c", "z" * 64]
    for name in reversed(names):
        tenants.change(name, ROW, seen=0)

    first, has_more = tenants.page(after="", limit=3)
    second, is_cut = tenants.page(after="a", limit=3)

    assert (list(first), has_more) == (names[:3], True)
    assert (list(second), is_cut) == (names[3:], False)
    assert tenants.all()[1] == dict.fromkeys(names, ROW)


def test_the_row_of_everybody_is_kept_beside_those_of_the_tenants(tenants: TenantStore):
    stopped = Tenant(status=TenantStatus.PAUSED, note="a bad deploy", version=1)
    tenants.change("acme", ROW, seen=0)

    assert tenants.change(EVERYBODY, stopped, seen=0)

    assert tenants.get(EVERYBODY) == stopped
    assert tenants.all() == (tenants.revision(), {"acme": ROW, EVERYBODY: stopped})
    assert tenants.page(after="", limit=10) == ({"acme": ROW}, False)


def test_the_first_secret_of_ids_is_kept_and_whoever_comes_later_gets_it(tenants: TenantStore):
    secrets = [bytes([number]) * 32 for number in range(3)]

    kept = [tenants.keep_id_secret(secret) for secret in secrets]

    assert kept == [secrets[0]] * 3
    assert tenants.revision() == Revision(0, secrets[0])
    assert tenants.all() == (Revision(0, secrets[0]), {})


@pytest.mark.parametrize("dynamodb", [pytest.param("dynamodb_local", marks=pytest.mark.dynamodb_local)], indirect=True)
def test_processes_that_begin_at_once_get_the_same_secret(tenants: TenantStore, pool: ThreadPoolExecutor):
    secrets = [bytes([number]) * 32 for number in range(40)]

    kept = set(pool.map(tenants.keep_id_secret, secrets))

    assert kept == {tenants.revision().id_secret}
    assert kept < set(secrets)


def test_a_changed_tenant_leaves_the_secret_as_it_is(tenants: TenantStore):
    tenants.change("acme", ROW, seen=0)
    secret = tenants.keep_id_secret(b"s" * 32)

    tenants.change("umbrella", ROW, seen=0)

    assert tenants.revision() == Revision(2, secret)
    assert tenants.all()[0] == Revision(2, secret)
    assert tenants.page(after="", limit=10) == ({"acme": ROW, "umbrella": ROW}, False)


def test_the_secret_is_not_shown_where_a_revision_is(tenants: TenantStore):
    tenants.keep_id_secret(b"s" * 32)

    assert "s" * 32 not in repr(tenants.revision())
