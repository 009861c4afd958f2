"""What every store of seats keeps: one holder a seat, until its lease is surely over or its holder gives it back."""

from datetime import timedelta
from typing import Any

import pytest

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.targets.concurrency import SEAT_LIFE, Seat
from functions.ports.targets import SeatStore
from testkit.builders import NOON
from tests.contract.conftest import SeatSubject

SKEW = 5 * SECOND
LEASE = timedelta(seconds=30)
OVER = NOON + LEASE + SKEW


def a_seat(**overrides: Any) -> Seat:
    return Seat(**{"tenant": "acme", "number": 0, "owner": "mine", "lease_until": NOON + LEASE, **overrides})


def test_nobody_has_a_seat_at_first(seats: SeatStore):
    assert seats.leases("acme", limit=1_000) == {}


def test_a_seat_that_nobody_has_is_taken(seats: SeatStore):
    assert seats.take(a_seat(), now=NOON, skew=SKEW)
    assert seats.leases("acme", limit=1) == {0: NOON + LEASE}


def test_a_seat_that_somebody_has_is_not(seats: SeatStore):
    seats.take(a_seat(), now=NOON, skew=SKEW)

    assert not seats.take(a_seat(owner="other", lease_until=OVER), now=NOON + SECOND, skew=SKEW)
    assert seats.leases("acme", limit=1) == {0: NOON + LEASE}


def test_taking_a_seat_again_whose_answer_was_lost_succeeds(seats: SeatStore):
    seats.take(a_seat(), now=NOON, skew=SKEW)

    assert seats.take(a_seat(), now=NOON, skew=SKEW)


@pytest.mark.parametrize(("now", "is_free"), [(OVER, False), (OVER + MILLISECOND, True)])
def test_a_seat_whose_lease_is_over_by_more_than_skew_is_free(seats: SeatStore, now: Any, is_free: bool):
    seats.take(a_seat(), now=NOON, skew=SKEW)

    assert seats.take(a_seat(owner="other", lease_until=now + LEASE), now=now, skew=SKEW) is is_free
    assert seats.leases("acme", limit=1) == {0: now + LEASE if is_free else NOON + LEASE}


def test_whatever_is_left_of_a_millisecond_belongs_to_the_holder(seats: SeatStore):
    begun = timedelta(microseconds=400)
    seats.take(a_seat(lease_until=NOON + begun), now=NOON, skew=SKEW)

    assert not seats.take(a_seat(owner="other"), now=NOON + SKEW + begun, skew=SKEW)
    assert seats.take(a_seat(owner="other"), now=NOON + SKEW + MILLISECOND + begun, skew=SKEW)


def test_a_seat_that_is_given_back_is_free(seats: SeatStore):
    seats.take(a_seat(), now=NOON, skew=SKEW)

    seats.give_back(a_seat())

    assert seats.leases("acme", limit=1) == {}
    assert seats.take(a_seat(owner="other"), now=NOON, skew=SKEW)


def test_giving_back_twice_changes_nothing(seats: SeatStore):
    seats.take(a_seat(), now=NOON, skew=SKEW)
    seats.give_back(a_seat())

    seats.give_back(a_seat())

    assert seats.leases("acme", limit=1) == {}


def test_a_release_that_comes_late_takes_nothing_from_the_next_holder(seats: SeatStore):
    seats.take(a_seat(), now=NOON, skew=SKEW)
    now = OVER + SECOND
    seats.take(a_seat(owner="other", lease_until=now + LEASE), now=now, skew=SKEW)

    seats.give_back(a_seat())

    assert seats.leases("acme", limit=1) == {0: now + LEASE}


def test_seats_above_the_limit_are_not_told(seats: SeatStore):
    for number in (0, 9, 10, 999):
        seats.take(a_seat(number=number), now=NOON, skew=SKEW)

    assert list(seats.leases("acme", limit=10)) == [0, 9]
    assert list(seats.leases("acme", limit=1_000)) == [0, 9, 10, 999]


def test_each_tenant_has_seats_of_its_own(seats: SeatStore):
    seats.take(a_seat(), now=NOON, skew=SKEW)

    assert seats.leases("globex", limit=1) == {}
    assert seats.take(a_seat(tenant="globex", owner="other"), now=NOON, skew=SKEW)


def test_a_row_goes_a_day_after_its_lease(seat_subject: SeatSubject):
    seat_subject.seats.take(a_seat(), now=NOON, skew=SKEW)

    if seat_subject.expires_at is not None:
        assert seat_subject.expires_at() == NOON + LEASE + SEAT_LIFE == a_seat().expires_at
