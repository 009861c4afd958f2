"""Deficit round robin as the scanner does it, against the bounds of the published algorithm.

Shreedhar and Varghese, 1995: work-conserving; of two tenants that always have something due, what they have sent
differs by no more than a quantum each, in proportion to their weights (their largest packet is one job here); and
whoever has something due has its turn in every round.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.far_ring import fairness
from functions.domain.far_ring.cursor import ClassCursor, Position
from functions.domain.far_ring.fairness import grant, quantum_of
from functions.domain.far_ring.timer_key import key_of
from functions.domain.jobs.job import Priority
from functions.domain.tenants.plan import TenantPlan
from functions.ports.timers import Page, StoredTimer
from functions.scanner import fair_scan as rounds
from functions.scanner.fair_scan import FairScan
from functions.scanner.promote import Promoted
from testkit.builders import LOCAL_WHEEL, NOON, a_timer
from testkit.fakes import GivenPlans

FIRST = LOCAL_WHEEL.bucket_of(NOON)
CLASS = Priority.NORMAL
TENANTS = ("a", "b", "c", "d", "e")

weights = st.sampled_from([0.5, 1.0, 1.0, 2.0, 3.0])
backlogs = st.dictionaries(st.sampled_from(TENANTS), st.integers(0, 120), min_size=1)


@dataclass
class Shard:
    """The rows of a class by bucket, and what has been sent of them: all that a tick needs of the world."""

    rows: dict[int, list[str]] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)
    budgets: dict[Priority, int] = field(default_factory=dict)
    plans: GivenPlans = field(default_factory=GivenPlans)
    shard: int = 0
    cursor: ClassCursor = field(default_factory=lambda: ClassCursor(Position(FIRST)))

    def put(self, tenant: str, count: int, *, bucket: int = FIRST) -> None:
        rows = self.rows.setdefault(bucket, [])
        first = sum(map(len, self.rows.values()))
        rows += [key_of(CLASS, tenant, NOON, f"job-{first + number:06}") for number in range(count)]
        rows.sort()

    def tick(self, budget: int, *, horizon: int = FIRST) -> str:
        self.budgets = {CLASS: budget}
        me: Any = self
        scan = FairScan(wheel=LOCAL_WHEEL, plans=self.plans, budgets=me, promoter=me, renewer=me)
        return scan.scan(me, CLASS, horizon=horizon)

    @property
    def pages(self) -> Shard:
        return self

    @property
    def counts(self) -> Counter[str]:
        return Counter(key.split("#")[1] for key in self.sent)

    @property
    def left(self) -> int:
        return sum(map(len, self.rows.values())) - len(self.sent)

    def read(self, at: Position, priority: Priority) -> Page:
        return self.read_between(at, f"{priority.value}#", f"{priority.value + 1}#", limit=rounds.PAGE)

    def read_between(self, at: Position, start: str, end: str, *, limit: int) -> Page:
        rows = self.rows.get(at.bucket, [])
        first = bisect_right(rows, max(at.key, start))
        found = [key for key in rows[first:] if key < end]
        return Page([_row(key) for key in found[:limit]], is_last=len(found) <= limit)

    def may_wait(self, rows: Sequence[StoredTimer], *, is_last: bool) -> timedelta:
        return timedelta(0)

    def promote(self, rows: Sequence[StoredTimer], *, shard: int, within: timedelta) -> Promoted:
        return Promoted(sent=len(rows), unsent=set())

    def note_promoted(self, rows: Sequence[StoredTimer], promoted: Promoted) -> None:
        self.sent += [row.key for row in rows]

    def with_bookings(self, tenant: str, plan: TenantPlan, rows: Sequence[StoredTimer]) -> Sequence[StoredTimer]:
        raise AssertionError("no tenant here has a cap")

    def renew(self, rows: Sequence[StoredTimer]) -> NoReturn:
        raise AssertionError("nothing here waits for long")

    def may_renew(self, priority: Priority) -> bool:
        return True

    def record(self, priority: Priority, cursor: ClassCursor) -> None:
        self.cursor = cursor

    @property
    def cursors(self) -> dict[Priority, ClassCursor]:
        return {CLASS: self.cursor}

    def has_time(self, priority: Priority) -> bool:
        return True


_TIMER = a_timer()


def _row(key: str) -> StoredTimer:
    return StoredTimer(key, _TIMER)


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "PAGE", 7)
    monkeypatch.setattr(fairness, "MIN_QUANTUM", 1)


def a_shard(due: Mapping[str, int], weight_of: Mapping[str, float]) -> Shard:
    shard = Shard()
    shard.plans.plans = {tenant: TenantPlan(weight=weight) for tenant, weight in weight_of.items()}
    for tenant, count in due.items():
        shard.put(tenant, count)
    return shard


@given(due=backlogs, weight_of=st.dictionaries(st.sampled_from(TENANTS), weights), budget=st.integers(1, 200))
def test_it_is_work_conserving_a_tick_sends_its_budget_or_all_there_is(due, weight_of, budget):
    shard = a_shard(due, weight_of)
    total = sum(due.values())

    while shard.left:
        before = len(shard.sent)
        shard.tick(budget)
        assert len(shard.sent) - before == min(budget, total - before)

    assert len(set(shard.sent)) == len(shard.sent) == total


@pytest.mark.long
@given(
    weight_of=st.fixed_dictionaries(dict.fromkeys(TENANTS[:4], weights)),
    budget=st.integers(20, 200),
    ticks=st.integers(1, 6),
)
def test_of_tenants_that_always_have_something_none_is_a_quantum_ahead_of_its_share(weight_of, budget, ticks):
    shard = a_shard(dict.fromkeys(weight_of, 4_000), weight_of)

    for _ in range(ticks):
        shard.tick(budget)

        quantum = quantum_of(budget)
        turns = {name: shard.counts[name] / grant(quantum, weight) for name, weight in weight_of.items()}
        assert max(turns.values()) - min(turns.values()) <= 1


@given(
    due=st.fixed_dictionaries(dict.fromkeys(TENANTS[:4], st.integers(1, 600))),
    weight_of=st.dictionaries(st.sampled_from(TENANTS), weights),
    budget=st.integers(10, 100),
    head_start=st.integers(0, 3),
)
def test_a_tenant_with_one_due_job_waits_no_longer_than_a_round(due, weight_of, budget, head_start):
    shard = a_shard(due, weight_of)
    for _ in range(head_start):
        shard.tick(budget)
    minnow, bucket = "zz-minnow", LOCAL_WHEEL.next_bucket(FIRST)
    shard.put(minnow, 1, bucket=bucket)

    quantum = quantum_of(budget)
    a_round = sum(grant(quantum, weight_of.get(tenant, 1)) for tenant in due)
    # The stream comes to its bucket after the buckets before it, one a round, and then its turn comes.
    most = -(-2 * a_round // budget) + 1
    for _ in range(most):
        shard.tick(budget, horizon=bucket)

    assert shard.counts[minnow] == 1


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(TENANTS), st.integers(0, 40), st.integers(1, 60), st.integers(0, 2)), max_size=12
    ),
    weight_of=st.dictionaries(st.sampled_from(TENANTS), weights),
    most_own=st.integers(0, 3),
)
def test_whatever_comes_and_however_few_cursors_there_are_everything_goes_out_once(steps, weight_of, most_own):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "MAX_OWN", most_own)
        shard, bucket = a_shard({}, weight_of), FIRST
        for tenant, count, budget, ahead in steps:
            # A bucket is closed before it is opened: rows come only into later ones.
            shard.put(tenant, count, bucket=LOCAL_WHEEL.next_bucket(bucket))
            for _ in range(ahead):
                bucket = LOCAL_WHEEL.next_bucket(bucket)
                shard.tick(budget, horizon=bucket)
        bucket = LOCAL_WHEEL.next_bucket(bucket)
        for _ in range(2_000):
            shard.tick(50, horizon=bucket)
            if not shard.left:
                break

    assert not shard.left
    assert len(set(shard.sent)) == len(shard.sent)
