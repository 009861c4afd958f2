"""The way of an operation, wherever it is cut; its record; and the instants of a spread: for all inputs there can be."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from functions.domain.instants import DAY, MILLISECOND, SECOND, from_seconds
from functions.domain.jobs.job import Priority, Timer
from functions.domain.operations.operation import (
    MAX_RATE,
    MIN_RATE,
    Example,
    JobFilter,
    Operation,
    OperationKind,
    OperationState,
    OwnedDay,
    Progress,
    Shift,
    Stretch,
    WalkPosition,
    rest_of,
    share_done,
    stretches,
)
from functions.domain.operations.record import decode_operation, encode_operation
from functions.domain.wheel import Wheel
from functions.operations.row_walk import Walk
from testkit.builders import NOON, a_job, a_timer, a_wheel
from testkit.fakes import InMemoryTimerStore
from tests.properties.test_domain import identities, tags, tenants, whole_ms

MIDNIGHT = NOON.replace(hour=0)

wheels = st.sampled_from([60, 61, 100, 295]).map(
    lambda seconds: a_wheel(
        bucket=timedelta(seconds=seconds),
        guard=timedelta(seconds=max(155, seconds + 95)),
        write_shards=3,
        scan_shards=3,
    )
)
days = st.lists(
    st.builds(
        OwnedDay,
        day=st.integers(-1, 2).map(lambda offset: (MIDNIGHT - from_seconds(0)) // DAY + offset),
        priority=st.sampled_from(Priority),
        shard=st.integers(0, 2),
    ),
    unique=True,
    max_size=5,
)
seconds = st.integers(-DAY // SECOND, 2 * DAY // SECOND) | st.integers(DAY // SECOND // 2 - 60, DAY // SECOND // 2 + 60)
offsets = seconds.map(lambda count: count * SECOND)
"""From noon on; often around midnight."""
ranges = st.tuples(offsets, st.none() | offsets).filter(lambda ends: ends[1] is None or ends[0] < ends[1])
filters = ranges.map(
    lambda ends: JobFilter(tenant="acme", due_from=NOON + ends[0], due_until=NOON + ends[1] if ends[1] else None)
)
long_durations = st.integers(0, 100 * DAY // MILLISECOND).map(lambda count: count * MILLISECOND)


@given(days, filters, wheels)
def test_a_way_has_each_bucket_of_each_marked_day_that_is_in_the_range_once(
    marked: list[OwnedDay], wanted: JobFilter, wheel: Wheel
):
    way = stretches(marked, wanted, wheel=wheel)

    visited = buckets_of([(stretch, "") for stretch in way], wheel)
    expected = [
        (owned, bucket)
        for owned in sorted(marked)
        for bucket in buckets_between(owned.ends_at.timestamp() - DAY // SECOND, owned.ends_at.timestamp(), wheel)
        if wanted.due_from < wheel.ends_at(bucket)
        and (wanted.due_until is None or from_seconds(bucket) < wanted.due_until)
    ]
    assert visited == expected


@given(days, filters, wheels, st.data())
def test_a_walk_that_is_cut_anywhere_goes_on_with_what_is_left(
    marked: list[OwnedDay], wanted: JobFilter, wheel: Wheel, data: st.DataObject
):
    way = stretches(marked, wanted, wheel=wheel)
    visited = buckets_of([(stretch, "") for stretch in way], wheel)
    at = data.draw(st.integers(0, len(visited)))
    if at == len(visited):
        left = rest_of(way, place_behind(*visited[-1], wheel) if visited else None)
        assert buckets_of(left, wheel) == []
        return
    owned, bucket = visited[at]
    key = data.draw(st.sampled_from(["", "2#acme#k"]))

    left = rest_of(way, WalkPosition(owned.day, owned.priority.value, owned.shard, bucket, key))

    assert buckets_of(left, wheel) == visited[at:]
    assert [after for _, after in left] == [key, *[""] * (len(left) - 1)]


@given(days, filters, wheels, st.data())
def test_the_share_that_is_done_only_grows_and_ends_at_one(
    marked: list[OwnedDay], wanted: JobFilter, wheel: Wheel, data: st.DataObject
):
    way = stretches(marked, wanted, wheel=wheel)
    visited = buckets_of([(stretch, "") for stretch in way], wheel)
    cuts = sorted(data.draw(st.lists(st.integers(0, max(0, len(visited) - 1)), max_size=4))) if visited else []
    shares = [share_done(way, place_behind(*visited[cut], wheel)) for cut in cuts]

    assert shares == sorted(shares)
    assert all(0 < share <= 1 for share in shares)
    assert share_done(way, place_behind(*visited[-1], wheel) if visited else None) == 1


@given(
    wheels,
    filters,
    st.lists(st.tuples(offsets, st.sampled_from(Priority), st.sampled_from(["acme", "umbrella"])), max_size=25),
    st.integers(1, 3),
    st.lists(st.integers(1, 40), max_size=6),
)
def test_each_row_in_the_range_is_found_once_however_often_the_walk_begins_anew(
    wheel: Wheel,
    wanted: JobFilter,
    placed: list[tuple[timedelta, Priority, str]],
    page: int,
    cuts: list[int],
):
    store = InMemoryTimerStore(wheel=wheel)
    timers = [
        a_timer(due_at=NOON + offset, priority=priority, tenant=tenant, wheel=wheel)
        for offset, priority, tenant in placed
    ]
    store.put(timers)
    way = stretches(store.days("acme"), wanted, wheel=wheel)
    walk = Walk(wheel=wheel, timers=store, tenant="acme", page=page, side_by_side=_one_by_one)
    place: WalkPosition | None = None
    found: list[Timer] = []

    for cut in [*cuts, None]:
        for number, finding in enumerate(walk.findings(rest_of(way, place)), start=1):
            found += [row.timer for row in finding.rows if row.timer is not None]
            place = finding.place
            if number == cut:
                break

    names = [timer.job.identity for timer in found if wanted.matches(timer)]
    assert sorted(names) == sorted(
        timer.job.identity for timer in timers if timer.job.tenant == "acme" and wanted.matches(timer)
    )
    assert len({timer.job.identity for timer in found}) == len(found)
    assert share_done(way, place) == 1


@given(whole_ms, long_durations, identities, st.integers(1, 5))
def test_a_spread_gives_each_job_one_instant_of_its_own_within_its_time(to, spread, identity, times):
    job = a_job(identity=identity)
    shift = Shift(to=to, spread=spread)

    instants = {shift.due_at(replace(job, scheduled_at=NOON + number * DAY)) for number in range(times)}

    (instant,) = instants
    assert to <= instant < to + max(spread, MILLISECOND)
    assert (instant - to) % MILLISECOND == timedelta(0)


names = st.text(st.characters(codec="utf-8"), max_size=20)
shifts = st.builds(
    Shift, by=st.builds(lambda sign, by: sign * max(by, MILLISECOND), st.sampled_from([-1, 1]), long_durations)
) | st.builds(Shift, to=whole_ms, spread=long_durations)
places = st.builds(
    WalkPosition, st.integers(0, 90_000), st.integers(0, 3), st.integers(0, 9_999), st.integers(0, 10**10), names
)
counts = st.integers(0, 10**9)
progresses = st.builds(
    Progress,
    place=st.none() | places,
    share=st.floats(0, 1),
    examined=counts,
    matched=counts,
    done=counts,
    refused=st.dictionaries(names, counts, max_size=3),
    examples=st.lists(st.builds(Example, names, names, names), max_size=3).map(tuple),
    due_at=st.none() | whole_ms,
    parts=counts,
    failures=counts,
    error=names,
)
operations = st.builds(
    Operation,
    operation_id=st.just("o1"),
    action=st.sampled_from(OperationKind),
    wanted=st.builds(
        JobFilter,
        tenant=tenants,
        due_from=whole_ms,
        due_until=st.none(),
        target=names,
        schedule_id=names,
        tag=st.just("") | tags.filter(bool).map(lambda some: some[0]),
    ),
    caller=names,
    created_at=whole_ms,
    fingerprint=names,
    shift=st.none() | shifts,
    rate=st.floats(MIN_RATE, MAX_RATE),
    dry_run=st.booleans(),
    progress=progresses,
    ended_at=st.none() | whole_ms,
)


@given(operations, st.none() | long_durations.filter(bool))
def test_an_operation_that_is_written_down_is_read_as_it_was(operation: Operation, width: timedelta | None):
    if width is not None:
        wanted = replace(operation.wanted, due_until=operation.wanted.due_from + width)
        operation = replace(operation, wanted=wanted)

    record = encode_operation(operation)

    assert decode_operation(record, tenant=operation.tenant, operation_id="o1") == operation
    assert operation.state is OperationState.WAITING  # what its store keeps beside it


def buckets_of(left: list[tuple[Stretch, str]], wheel: Wheel) -> list[tuple[OwnedDay, int]]:
    """Each bucket that is visited, in order."""
    return [
        (stretch.owned, bucket)
        for stretch, _ in left
        for bucket in range(stretch.first, stretch.end, wheel.bucket // SECOND)
    ]


def buckets_between(start: float, end: float, wheel: Wheel) -> list[int]:
    """Those that have a second in common with a time."""
    width = wheel.bucket // SECOND
    return list(range(int(start) // width * width, int(end), width))


def place_behind(owned: OwnedDay, bucket: int, wheel: Wheel) -> WalkPosition:
    return WalkPosition(owned.day, owned.priority.value, owned.shard, wheel.next_bucket(bucket))


def _one_by_one(rule, items):
    return [rule(item) for item in items]
