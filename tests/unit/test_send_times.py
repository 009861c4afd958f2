"""When within a second a far job is sent: right behind its own fraction of it, and never so that it would be early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.far_ring.delays import delay_seconds
from functions.domain.far_ring.send_times import FULL, MOMENT, Patience, Sending, patience_of, sendings
from functions.domain.instants import MILLISECOND, MINUTE, SECOND
from functions.domain.jobs.job import Precision, Priority, Timer
from functions.domain.wheel import MAX_WAIT
from functions.ports.ready_queue import Rejected
from functions.scanner.scan import Scanner, ScanReport
from testkit.builders import NOON, a_timer
from testkit.scheduler import World

NONE = timedelta(0)
ALL = timedelta(seconds=1)
MOST = timedelta(milliseconds=750)

PATIENT = Patience(spare=SECOND, a_job=5 * MILLISECOND, most=MOST)
FIRST = NOON + 5 * SECOND
APART = 619 * MILLISECOND
"""At all fractions of a second."""

INSTANTS = st.integers(-5_000, 300_000).map(lambda ms: NOON + ms * MILLISECOND)
NOWS = st.integers(0, 999_999).map(lambda us: NOON + timedelta(microseconds=us))
WAITS = st.sampled_from([NONE, 10 * MILLISECOND, 300 * MILLISECOND, MOST, ALL])


def due(*instants: datetime, precision: Precision = Precision.DEFAULT) -> list[Timer]:
    return [a_timer(due_at=instant, precision=precision) for instant in instants]


def visible(found: Sequence[Sending], now: datetime) -> dict[int, datetime]:
    """When each timer can be received, by its object."""
    return {
        id(timer): (sent_at := now + sending.after)
        + delay_seconds(timer.wakes_at, now=sent_at, precision=timer.job.precision) * SECOND
        for sending in found
        for timer in sending.timers
    }


@given(instants=st.lists(INSTANTS, max_size=60), now=NOWS, within=WAITS, precision=st.sampled_from(list(Precision)))
def test_every_timer_goes_once_and_no_later_than_allowed(
    instants: list[datetime], now: datetime, within: timedelta, precision: Precision
):
    timers = due(*instants, precision=precision)

    found = sendings(timers, now=now, within=within)

    assert Counter(id(timer) for sending in found for timer in sending.timers) == Counter(map(id, timers))
    assert [sending.after for sending in found] == sorted(sending.after for sending in found)
    assert all(NONE <= sending.after <= within for sending in found)


@given(instants=st.lists(INSTANTS, max_size=60), now=NOWS, within=WAITS)
def test_none_is_early_and_those_that_are_waited_for_are_hardly_late(
    instants: list[datetime], now: datetime, within: timedelta
):
    timers = due(*instants)

    shown = visible(sendings(timers, now=now, within=within), now)

    for timer in timers:
        if timer.due_at <= now:
            continue  # it is late already
        lag = shown[id(timer)] - timer.due_at
        # A worker holds what comes in its last millisecond.
        assert -MILLISECOND <= lag <= max(2 * MOMENT, ALL - within)


@given(instants=st.lists(INSTANTS, max_size=60), now=NOWS, within=WAITS)
def test_an_exact_one_is_there_before_its_instant_and_is_held_for_little_more_than_a_second(
    instants: list[datetime], now: datetime, within: timedelta
):
    timers = due(*instants, precision=Precision.EXACT)

    shown = visible(sendings(timers, now=now, within=within), now)

    for timer in timers:
        if timer.due_at <= now + MAX_WAIT:
            continue
        held = timer.due_at - shown[id(timer)]
        assert SECOND <= held <= MAX_WAIT
        if within == ALL:
            assert held <= SECOND + 2 * MOMENT


@given(instants=st.lists(INSTANTS, max_size=300), now=NOWS, within=WAITS)
def test_batches_stay_full_but_for_one_of_each_moment(instants: list[datetime], now: datetime, within: timedelta):
    found = sendings(due(*instants), now=now, within=within)

    batches = sum(-(-len(sending.timers) // FULL) for sending in found)

    assert batches <= len(instants) / FULL + within / MOMENT + 3


def test_what_is_left_beside_a_full_batch_does_not_wait_for_a_moment_that_is_not_the_next():
    herd = due(*[NOON + MINUTE + number * MILLISECOND for number in range(FULL + 2)])
    (later,) = due(NOON + MINUTE + 500 * MILLISECOND)

    found = sendings([*herd, later], now=NOON, within=MOST)

    assert found == [Sending((FULL + 1) * MILLISECOND, herd), Sending(500 * MILLISECOND, [later])]


def test_a_single_one_that_would_have_to_wait_for_longer_than_allowed_goes_at_once():
    soon, late = due(NOON + MINUTE + 300 * MILLISECOND, NOON + MINUTE + 900 * MILLISECOND)

    found = sendings([soon, late], now=NOON, within=MOST)

    assert found == [Sending(NONE, [late]), Sending(300 * MILLISECOND, [soon])]


class TestScans:
    """A tick of a shard whose stage has patience."""

    @pytest.fixture
    def world(self) -> World:
        world = World()
        world.clock.tick(123 * MILLISECOND)
        return world

    def test_far_jobs_are_hardly_late_and_none_is_early(self, world: World):
        put(world, 60, apart=APART)

        report = scan(world)

        lags = lags_of(world)
        assert report.sent == len(lags) == 60
        assert lags[0] >= -MILLISECOND
        assert lags[30] < MOMENT
        assert lags[-1] <= ALL - MOST

    def test_without_patience_they_are_half_a_second_late(self, world: World):
        put(world, 60, apart=APART)

        world.scan(0)

        assert 400 * MILLISECOND < lags_of(world)[30] < 600 * MILLISECOND

    def test_nobody_waits_where_nothing_is_due(self, world: World):
        before = world.clock.now()

        scan(world)

        assert world.clock.now() == before

    def test_nobody_waits_for_those_that_are_late_already(self, world: World):
        put(world, 40, first=world.clock.now() - MINUTE, apart=APART)
        before = world.clock.now()

        assert scan(world).sent == 40
        assert world.clock.now() == before

    def test_a_herd_is_not_waited_for(self, world: World):
        put(world, 1_200, apart=37 * MILLISECOND)
        before = world.clock.now()

        assert scan(world, patience=patience_of(1)).sent == 1_200
        assert world.clock.now() == before

    @pytest.mark.parametrize("shards", [1, 2, 16])
    def test_a_tick_waits_no_longer_than_its_share_and_5_ms_a_job(self, world: World, shards: int):
        for priority in Priority:
            put(world, 5, apart=APART, priority=priority)
        before = world.clock.now()

        assert scan(world, patience=patience_of(shards)).sent == 20
        assert world.clock.now() - before <= SECOND / shards + 20 * 5 * MILLISECOND

    def test_a_queue_that_refuses_is_not_waited_for(self, world: World):
        put(world, 60, apart=APART)
        world.ready.refuses = lambda timer: Rejected(timer, "ThrottlingException", is_permanent=False)
        before = world.clock.now()

        report = scan(world)

        assert report.sent == 0
        assert world.clock.now() - before <= MOMENT
        world.ready.refuses = lambda _: None
        assert scan(world).sent == 60


def put(
    world: World, count: int, *, apart: timedelta, first: datetime = FIRST, priority: Priority = Priority.NORMAL
) -> None:
    """Rows of forty tenants in the shard that is scanned."""
    timers = [
        a_timer(tenant=f"tenant-{number % 40}", due_at=first + number * apart, priority=priority)
        for number in range(count)
    ]
    world.rows.put([replace(timer, job=replace(timer.job, shard=0)) for timer in timers])


def scan(world: World, *, patience: Patience = PATIENT) -> ScanReport:
    scanner = world.build(Scanner, capacity=world.capacity, special={"patience": patience})
    return scanner.scan(0, time_limit=MINUTE)


def lags_of(world: World) -> list[timedelta]:
    """How late each message can be received, in order."""
    messages = zip(world.ready.sent, world.ready.messages.values(), strict=True)
    return sorted(message.visible_at - timer.due_at for timer, message in messages)
