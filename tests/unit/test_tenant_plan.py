"""What a tenant may do, and what is stored of it."""

from math import inf
from typing import Any

import pytest

from functions.domain.errors import InvalidInput, Undecodable
from functions.domain.jobs.job import Priority
from functions.domain.tenants.plan import (
    LIMIT_NAMES,
    UNLIMITED,
    Tenant,
    TenantPlan,
    TenantStatus,
    decode_tenant,
    encode_tenant,
    read_limits,
    write_limits,
)
from testkit.builders import NOON

FULL = Tenant(
    plan="gold",
    limits={"weight": 2.5, "execution_rate": UNLIMITED, "top_priority": "normal", "spread": "PT4M"},
    principals=("arn:aws:iam::*:role/acme-*",),
    status=TenantStatus.PAUSED,
    status_since=NOON,
    note="wegen Überlast",
    version=7,
    changed_at=NOON,
)


@pytest.mark.parametrize("tenant", [Tenant(), FULL])
def test_a_tenant_is_read_as_it_was_written(tenant: Tenant):
    assert decode_tenant(encode_tenant(tenant)) == tenant


@pytest.mark.parametrize(
    "text", ["", "[]", "7", '{"limits":{"weight":0}}', '{"limits":[]}', '{"status":[]}', '{"plan":"A B"}']
)
def test_what_is_no_tenant_is_never_taken_for_one(text: str):
    with pytest.raises(Undecodable):
        decode_tenant(text)


def test_what_a_newer_tickwheel_says_of_a_tenant_stops_nobody():
    tenant = decode_tenant('{"limits":{"weight":3,"colour":"red"},"status":"asleep","note":"n"}')

    assert (tenant.limits, tenant.status, tenant.note) == ({"weight": 3}, TenantStatus.PAUSED, "n")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("weight", 0.05, "weight is 0.05, but must be a number from 0.1 to 100"),
        ("weight", 101, "weight is 101"),
        ("weight", UNLIMITED, "weight is 'unlimited'"),
        ("weight", True, "weight is True"),
        ("weight", float("nan"), "weight is nan"),
        ("execution_rate", 0, 'execution_rate is 0, but must be a number from 0.01 to 100000, or "unlimited"'),
        ("max_concurrency", 1.5, "max_concurrency is 1.5, but must be a whole number from 1 to 1000"),
        ("subshards", 0, "subshards is 0"),
        ("submission_burst", "many", "submission_burst is 'many'"),
        ("top_priority", "urgent", "top_priority is 'urgent', but must be one of critical, high, normal, low"),
        ("speed", 3, "'speed' is no limit"),
    ],
)
def test_a_limit_out_of_range_is_refused_by_name(name: str, value: Any, said: str):
    with pytest.raises(InvalidInput) as refused:
        read_limits({name: value})

    assert said in str(refused.value)


def test_limits_are_read_as_they_are_reported():
    plan = Tenant(limits={"weight": 3, "submission_rate": 2.5, "max_pending": UNLIMITED}).plan_among({})

    limits = write_limits(plan)

    assert tuple(limits) == LIMIT_NAMES
    assert limits["max_pending"] == limits["execution_rate"] == UNLIMITED
    assert (limits["weight"], limits["submission_rate"], limits["submission_burst"]) == (3, 2.5, 25)
    assert limits["spread"] == "PT0S"
    assert (plan.top_priority, limits["top_priority"]) == (Priority.CRITICAL, "critical")


def test_a_burst_that_is_not_said_is_ten_seconds_of_the_rate_and_at_least_one():
    assert TenantPlan(submission_rate=100).burst == 1_000
    assert TenantPlan(submission_rate=0.01).burst == 1
    assert TenantPlan(submission_rate=100, submission_burst=5).burst == 5


@pytest.mark.parametrize(
    ("status", "is_paused", "is_closed", "is_deleted"),
    [
        (TenantStatus.ACTIVE, False, False, False),
        (TenantStatus.PAUSED, True, False, False),
        (TenantStatus.DRAINING, False, True, False),
        (TenantStatus.DELETING, False, True, True),
        (TenantStatus.DELETED, False, True, True),
    ],
)
def test_a_status_says_what_is_let_through(status: TenantStatus, is_paused: bool, is_closed: bool, is_deleted: bool):
    plan = TenantPlan(status=status)

    assert (plan.is_paused, plan.is_closed, plan.is_deleted) == (is_paused, is_closed, is_deleted)


def test_a_plan_without_limits_has_none():
    plan = TenantPlan()

    assert not plan.has_rate
    assert {plan.submission_rate, plan.max_pending, plan.execution_rate, plan.max_concurrency} == {inf}
    assert TenantPlan(execution_rate=2).has_rate


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"plan": "Gold!"}, "plan is 'Gold!'"),
        ({"principals": ("",)}, "principals has ''"),
        ({"principals": tuple(str(number) for number in range(21))}, "principals has 21 entries"),
        ({"note": "x" * 501}, "note has 501 characters"),
    ],
)
def test_a_tenant_that_cannot_be_stored_is_refused_by_field(fields: dict[str, Any], said: str):
    with pytest.raises(InvalidInput) as refused:
        Tenant(**fields)

    assert said in str(refused.value)
