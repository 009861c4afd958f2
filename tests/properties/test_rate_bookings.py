"""Bookings of a capped rate: no window has more than it may, and no room is left unused."""

from collections import Counter
from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.tenants.rate_bookings import Timetable, pack, reserve, unpack, width_of
from testkit.builders import NOON

FAR = NOON + timedelta(hours=1)

rates = st.sampled_from([0.1, 0.3, 0.5, 1, 1.5, 2.5, 7, 40])
batches = st.lists(st.lists(st.integers(-2_000, 20_000), min_size=1, max_size=12).map(sorted), min_size=1, max_size=8)
"""Due times in milliseconds, by who reserves them: in the order of their batches, not of their times."""


def reserved(due: list[list[int]], *, rate: float, moves: int = 0) -> tuple[list[tuple[datetime, datetime]], Timetable]:
    """Due times with their bookings. moves: milliseconds from one batch to the next."""
    pairs: list[tuple[datetime, datetime]] = []
    table = None
    for number, batch in enumerate(due):
        due_ats = [NOON + at * MILLISECOND for at in batch]
        answer = reserve(due_ats, seen=table, now=NOON + number * moves * MILLISECOND, rate=rate, until=FAR)
        assert len(answer.bookings) == len(batch)
        pairs += zip(due_ats, answer.bookings, strict=True)
        table = answer.timetable
    assert table is not None
    return pairs, table


@given(due=batches, rate=rates, moves=st.integers(0, 900))
def test_no_window_has_more_bookings_than_the_rate_allows(due, rate, moves):
    bookings = sorted(booking for _, booking in reserved(due, rate=rate, moves=moves)[0])

    for first, begins_at in enumerate(bookings):
        for last in range(first, len(bookings)):
            seconds = (bookings[last] - begins_at) / SECOND
            assert last - first + 1 <= rate * (seconds + 2 * width_of(rate)) + 1


@given(due=batches, rate=rates)
def test_a_job_waits_only_where_everything_from_its_due_time_on_is_taken(due, rate):
    pairs, table = reserved(due, rate=rate)

    for due_at, booking in pairs:
        assert booking >= max(due_at, NOON)
        wanted = int(max(due_at, NOON).timestamp()) // table.width
        got = int(booking.timestamp()) // table.width
        # Every cell that it was put off past has as many as the rate gives it: at least the whole jobs of a cell.
        assert all(table.taken[number - table.first] >= int(rate * table.width) for number in range(wanted, got))


@given(due=st.lists(st.integers(0, 100_000), min_size=1, max_size=60).map(sorted))
def test_below_its_cap_a_tenant_never_waits_whoever_reserves_first(due):
    """A job a second at most, at a cap of two: in any order of three shards."""
    spaced = [at + number * 1_000 for number, at in enumerate(due)]
    shards = [spaced[shard::3] for shard in (2, 0, 1)]

    pairs, _ = reserved([shard for shard in shards if shard], rate=2)

    assert all(booking == due_at for due_at, booking in pairs)


@given(due=batches, rate=rates)
def test_a_timetable_counts_each_booking(due, rate):
    pairs, table = reserved(due, rate=rate)

    cells = Counter(int(booking.timestamp()) // table.width for _, booking in pairs)
    assert dict(cells) == {table.first + at: count for at, count in enumerate(table.taken) if count}
    assert unpack(pack(table.taken)) == table.taken


@given(rate=rates, seconds=st.integers(50, 500))
def test_the_cells_add_up_to_the_rate(rate, seconds):
    until = NOON + seconds * SECOND

    answer = reserve([NOON] * 30_000, seen=None, now=NOON, rate=rate, until=until)

    assert abs(len(answer.bookings) - rate * seconds) <= 2 * rate * width_of(rate) + 1
