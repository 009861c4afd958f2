"""Admission by the generic cell rate algorithm, against a leaky bucket: its other published form (ITU-T I.371, annex A)."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from functions.domain.instants import MILLISECOND
from functions.domain.tenants.plan import TenantPlan
from testkit.builders import NOON, a_submission
from testkit.scheduler import World

requests = st.lists(st.tuples(st.integers(0, 3_000), st.integers(1, 12)), min_size=1, max_size=40).map(sorted)
intervals = st.sampled_from([1, 2, 10, 125, 250, 500, 1_000, 2_000])
"""In milliseconds: of these the rate is exact."""


class LeakyBucket:
    """Leaks a job an interval, and holds a burst of them: a job comes in if it still fits."""

    def __init__(self, *, interval: int, burst: int) -> None:
        self._interval, self._burst = interval, burst
        self._level, self._at = Fraction(0), 0

    def admit(self, at: int, count: int) -> int:
        self._level = max(Fraction(0), self._level - Fraction(at - self._at, self._interval))
        self._at = at
        admitted = 0
        while admitted < count and self._level <= self._burst - 1:
            self._level += 1
            admitted += 1
        return admitted


@given(asked=requests, interval=intervals, burst=st.integers(1, 10))
def test_what_comes_in_is_what_a_leaky_bucket_takes(asked, interval, burst):
    world, bucket = World(), LeakyBucket(interval=interval, burst=burst)
    world.plans.plans = {"acme": TenantPlan(submission_rate=1_000 / interval, submission_burst=burst)}

    for at, count in asked:
        world.clock.instant = NOON + at * MILLISECOND
        refusals = world.admission.take([a_submission() for _ in range(count)])

        assert sum(refusal is None for refusal in refusals) == bucket.admit(at, count)
