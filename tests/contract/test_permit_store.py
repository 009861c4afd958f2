"""What every store of permits keeps: one holder a permit, until its lease is surely over or its holder gives it back."""

from datetime import timedelta
from typing import Any

import pytest

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.targets.concurrency import PERMIT_LIFE, Permit
from functions.ports.targets import PermitStore
from testkit.builders import LOCAL_WHEEL, NOON
from tests.contract.conftest import PermitSubject

SKEW = LOCAL_WHEEL.skew
LEASE = timedelta(seconds=30)
OVER = NOON + LEASE + SKEW


def a_permit(**overrides: Any) -> Permit:
    return Permit(**{"tenant": "acme", "number": 0, "owner": "mine", "lease_until": NOON + LEASE, **overrides})


def test_nobody_has_a_permit_at_first(permits: PermitStore):
    assert permits.leases("acme", limit=1_000) == {}


def test_a_permit_that_nobody_has_is_taken(permits: PermitStore):
    assert permits.take(a_permit(), now=NOON, skew=SKEW)
    assert permits.leases("acme", limit=1) == {0: NOON + LEASE}


def test_a_permit_that_somebody_has_is_not(permits: PermitStore):
    permits.take(a_permit(), now=NOON, skew=SKEW)

    assert not permits.take(a_permit(owner="other", lease_until=OVER), now=NOON + SECOND, skew=SKEW)
    assert permits.leases("acme", limit=1) == {0: NOON + LEASE}


def test_taking_a_permit_again_whose_answer_was_lost_succeeds(permits: PermitStore):
    permits.take(a_permit(), now=NOON, skew=SKEW)

    assert permits.take(a_permit(), now=NOON, skew=SKEW)


@pytest.mark.parametrize(("now", "is_free"), [(OVER, False), (OVER + MILLISECOND, True)])
def test_a_permit_whose_lease_is_over_by_more_than_skew_is_free(permits: PermitStore, now: Any, is_free: bool):
    permits.take(a_permit(), now=NOON, skew=SKEW)

    assert permits.take(a_permit(owner="other", lease_until=now + LEASE), now=now, skew=SKEW) is is_free
    assert permits.leases("acme", limit=1) == {0: now + LEASE if is_free else NOON + LEASE}


def test_whatever_is_left_of_a_millisecond_belongs_to_the_holder(permits: PermitStore):
    begun = timedelta(microseconds=400)
    permits.take(a_permit(lease_until=NOON + begun), now=NOON, skew=SKEW)

    assert not permits.take(a_permit(owner="other"), now=NOON + SKEW + begun, skew=SKEW)
    assert permits.take(a_permit(owner="other"), now=NOON + SKEW + MILLISECOND + begun, skew=SKEW)


def test_a_permit_that_is_given_back_is_free(permits: PermitStore):
    permits.take(a_permit(), now=NOON, skew=SKEW)

    permits.give_back(a_permit())

    assert permits.leases("acme", limit=1) == {}
    assert permits.take(a_permit(owner="other"), now=NOON, skew=SKEW)


def test_giving_back_twice_changes_nothing(permits: PermitStore):
    permits.take(a_permit(), now=NOON, skew=SKEW)
    permits.give_back(a_permit())

    permits.give_back(a_permit())

    assert permits.leases("acme", limit=1) == {}


def test_a_release_that_comes_late_takes_nothing_from_the_next_holder(permits: PermitStore):
    permits.take(a_permit(), now=NOON, skew=SKEW)
    now = OVER + SECOND
    permits.take(a_permit(owner="other", lease_until=now + LEASE), now=now, skew=SKEW)

    permits.give_back(a_permit())

    assert permits.leases("acme", limit=1) == {0: now + LEASE}


def test_permits_above_the_limit_are_not_reported(permits: PermitStore):
    for number in (0, 9, 10, 999):
        permits.take(a_permit(number=number), now=NOON, skew=SKEW)

    assert list(permits.leases("acme", limit=10)) == [0, 9]
    assert list(permits.leases("acme", limit=1_000)) == [0, 9, 10, 999]


def test_each_tenant_has_permits_of_its_own(permits: PermitStore):
    permits.take(a_permit(), now=NOON, skew=SKEW)

    assert permits.leases("globex", limit=1) == {}
    assert permits.take(a_permit(tenant="globex", owner="other"), now=NOON, skew=SKEW)


def test_a_row_goes_a_day_after_its_lease(permit_subject: PermitSubject):
    permit_subject.permits.take(a_permit(), now=NOON, skew=SKEW)

    if permit_subject.expires_at is not None:
        assert permit_subject.expires_at() == NOON + LEASE + PERMIT_LIFE == a_permit().expires_at
