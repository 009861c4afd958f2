"""The generic cell rate algorithm against a leaky bucket, its other published form, and against its own bound."""

from datetime import datetime, timedelta
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from functions.domain.gcra import reserve, tolerance_of
from tests.builders import NOON

MILLISECOND = timedelta(milliseconds=1)
FAR = NOON + timedelta(days=1)

arrivals = st.lists(st.integers(0, 5_000), min_size=1, max_size=60).map(sorted)
intervals = st.integers(1, 500)
bursts = st.integers(1, 10)


def reserved(due: list[int], *, interval: int, burst: int, sizes: list[int]) -> list[datetime]:
    """Slots of jobs that are reserved in batches, the sizes of which do not matter."""
    slots: list[datetime] = []
    next_at, rest, sizes = None, list(due), list(sizes)
    while rest:
        size = sizes.pop() if sizes else len(rest)
        batch, rest = rest[:size], rest[size:]
        answer = reserve(
            [NOON + at * MILLISECOND for at in batch],
            next_at=next_at,
            now=NOON,
            interval=interval * MILLISECOND,
            tolerance=tolerance_of(burst, interval * MILLISECOND),
            until=FAR,
        )
        slots += answer.slots
        next_at = answer.next_at
    return slots


def leaky_bucket(due: list[int], *, interval: int, burst: int) -> list[int]:
    """Each job waits until the bucket, which leaks at the rate, has room for it (ITU-T I.371, annex A.2)."""
    slots: list[int] = []
    level, at = Fraction(0), 0
    for arrives_at in due:
        now = max(arrives_at, at)
        level = max(Fraction(0), level - Fraction(now - at, interval))
        wait = max(Fraction(0), level - (burst - 1)) * interval
        now += int(wait)
        level = max(Fraction(0), level - Fraction(int(wait), interval)) + 1
        at = now
        slots.append(now)
    return slots


@given(due=arrivals, interval=intervals, burst=bursts, sizes=st.lists(st.integers(1, 7), max_size=20))
def test_slots_are_those_of_a_leaky_bucket_however_they_are_batched(due, interval, burst, sizes):
    slots = reserved(due, interval=interval, burst=burst, sizes=sizes)

    assert [(slot - NOON) // MILLISECOND for slot in slots] == leaky_bucket(due, interval=interval, burst=burst)


@given(due=arrivals, interval=intervals, burst=bursts)
def test_no_window_has_more_jobs_than_the_rate_and_the_burst_allow(due, interval, burst):
    slots = [(slot - NOON) // MILLISECOND for slot in reserved(due, interval=interval, burst=burst, sizes=[])]

    for first, begins_at in enumerate(slots):
        for last in range(first, len(slots)):
            assert last - first + 1 <= (slots[last] - begins_at) / interval + burst


@given(due=arrivals, interval=intervals, burst=bursts)
def test_no_job_runs_before_it_is_due_and_none_overtakes(due, interval, burst):
    slots = [(slot - NOON) // MILLISECOND for slot in reserved(due, interval=interval, burst=burst, sizes=[])]

    assert all(slot >= at for slot, at in zip(slots, due, strict=True))
    assert slots == sorted(slots)
