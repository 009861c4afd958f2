"""Bookings of a capped rate."""

from datetime import timedelta

import pytest

from functions.domain.errors import Undecodable
from functions.domain.instants import SECOND
from functions.domain.tenants.rate_bookings import Timetable, pack, reserve, unpack, width_of
from testkit.builders import NOON

FAR = NOON + timedelta(minutes=4)


def bookings(due: list[float], *, rate: float = 2, seen: Timetable | None = None) -> list[float]:
    answer = reserve([NOON + at * SECOND for at in due], seen=seen, now=NOON, rate=rate, until=FAR)
    return [(booking - NOON) / SECOND for booking in answer.bookings]


def test_a_second_has_as_many_bookings_as_the_rate_and_the_rest_move_on():
    assert bookings([0, 0, 0, 0, 0]) == [0, 0, 1, 1, 2]


def test_jobs_that_are_slower_than_the_rate_run_when_they_are_due():
    assert bookings([0.5, 3.25, 3.75, 9]) == [0.5, 3.25, 3.75, 9]


def test_what_is_overdue_runs_from_now_on():
    assert bookings([-50, -40, -1]) == [0, 0, 1]


def test_who_reserved_for_later_keeps_nobody_from_now():
    later = reserve([NOON + 100 * SECOND] * 2, seen=None, now=NOON, rate=2, until=FAR).timetable

    assert bookings([0, 100], seen=later) == [0, 101]


def test_a_rate_below_one_a_second_has_cells_of_several_seconds():
    assert width_of(0.1) == 10
    assert bookings([0, 0, 0], rate=0.1) == [0, 10, 20]


def test_a_rate_with_a_fraction_gives_some_seconds_one_more():
    given = bookings([0] * 10, rate=2.5)

    assert sorted({given.count(second) for second in range(4)}) == [2, 3]
    assert max(given) <= 4


def test_what_lies_beyond_reach_gets_no_booking_and_takes_none():
    answer = reserve([NOON] * 9, seen=None, now=NOON, rate=2, until=NOON + SECOND)

    assert len(answer.bookings) == 4
    assert sum(answer.timetable.taken) == 4


def test_another_rate_goes_on_with_what_is_taken():
    table = reserve([NOON] * 3, seen=None, now=NOON, rate=0.5, until=FAR).timetable

    assert list(table.taken) == [1, 1, 1]
    assert bookings([0], rate=0.1, seen=table) == [10]
    slow = reserve([NOON] * 2, seen=None, now=NOON, rate=0.1, until=FAR).timetable
    assert bookings([0, 0], rate=1, seen=slow) == [1, 2]


def test_one_that_begins_anew_is_not_mistaken_for_the_one_before():
    first = reserve([NOON], seen=None, now=NOON, rate=1, until=FAR).timetable
    again = reserve([NOON], seen=None, now=NOON + timedelta(days=3), rate=1, until=NOON + timedelta(days=4)).timetable

    assert again.version > first.version + 1


def test_what_is_past_is_forgotten():
    table = reserve([NOON] * 3, seen=None, now=NOON, rate=1, until=FAR).timetable
    later = reserve([NOON], seen=table, now=NOON + 2 * SECOND, rate=1, until=FAR).timetable

    assert (later.first - table.first, later.taken, later.version) == (2, (1, 1), table.version + 1)


@pytest.mark.parametrize("packed", [b"", b"no", pack([1, 2])[:-9]])
def test_what_is_no_timetable_is_never_taken_for_one(packed: bytes):
    if packed:
        with pytest.raises(Undecodable):
            unpack(packed)
    else:
        assert unpack(packed) == ()


def test_a_busy_minute_fits_into_a_write_unit():
    assert len(pack([2_000] * 240)) < 200
    assert len(pack(range(1_000, 1_240))) < 900
