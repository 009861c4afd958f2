"""Cursors that are set back: what was promoted is promoted again, and nothing else changes."""

from datetime import datetime, timedelta

import pytest

from functions.domain.errors import InvalidInput
from functions.domain.far_ring.cursor import ClassCursor, OwnCursor, Position, first_cursors, set_back
from functions.domain.instants import HOUR, SECOND
from functions.domain.jobs.job import Priority, Timer
from functions.scanner.leases import LEASE
from functions.scanner.rewind import Rewinder, RewindReport
from testkit.builders import NOON, a_timer
from testkit.scheduler import World


@pytest.fixture
def world() -> World:
    return World()


def rewind(world: World, to: datetime) -> RewindReport:
    return world.build(Rewinder).rewind(to)


def scan_all(world: World) -> int:
    return sum(world.scan(shard).sent for shard in range(world.wheel.scan_shards))


def a_row(world: World, *, due_at: datetime) -> Timer:
    timer = a_timer(due_at=due_at)
    world.rows.put([timer])
    return timer


def test_what_was_promoted_since_is_promoted_again_and_what_was_before_is_not(world: World):
    a_row(world, due_at=NOON - 2 * HOUR)
    since = a_row(world, due_at=NOON - HOUR + SECOND)
    assert scan_all(world) == 2
    world.ready.sent.clear()

    report = rewind(world, NOON - HOUR)

    assert (report.rewound, report.left) == (list(range(world.wheel.scan_shards)), [])
    assert scan_all(world) == 1
    assert world.ready.sent == [since]


def test_the_bucket_of_the_instant_is_read_from_its_start(world: World):
    timer = a_row(world, due_at=NOON - HOUR)
    scan_all(world)
    world.ready.sent.clear()

    rewind(world, NOON - HOUR + 59 * SECOND)
    scan_all(world)

    assert world.ready.sent == [timer]


def test_a_cursor_that_is_older_stays_where_it_is():
    bucket = 600
    behind = ClassCursor(
        Position(0, "2#acme#7"), {"whale": OwnCursor(Position(0), deficit=3, is_held_back=True)}, "whale"
    )

    assert set_back(dict.fromkeys(Priority, behind), bucket) == dict.fromkeys(Priority, behind)


def test_every_cursor_goes_back_and_keeps_what_else_it_holds():
    ahead = ClassCursor(
        Position(900, "2#acme#7"), {"whale": OwnCursor(Position(660, "2#w"), deficit=3, is_held_back=True)}, "whale"
    )
    back = ClassCursor(Position(600), {"whale": OwnCursor(Position(600), deficit=3, is_held_back=True)}, "whale")

    assert set_back(dict.fromkeys(Priority, ahead), 600) == dict.fromkeys(Priority, back)


def test_a_scanner_at_work_loses_its_shard_and_cannot_record_where_it_was(world: World):
    scan_all(world)
    lease = world.shards.acquire(0, owner="at work", now=NOON - HOUR, lease_until=NOON - HOUR, skew=world.wheel.skew)
    assert lease is not None

    rewind(world, NOON - HOUR)

    assert not world.shards.checkpoint(lease, first_cursors(world.wheel.bucket_of(NOON)), lease_until=None)
    assert world.shards.cursors([0])[0] == first_cursors(world.wheel.bucket_of(NOON - HOUR))


def test_a_shard_that_a_scanner_has_is_left_and_said_to_be(world: World):
    scan_all(world)
    before = world.shards.cursors([0])
    world.shards.acquire(0, owner="at work", now=NOON, lease_until=NOON + LEASE, skew=world.wheel.skew)

    assert rewind(world, NOON - HOUR).left == [0]
    assert world.shards.cursors([0]) == before


def test_a_shard_that_nobody_has_scanned_starts_no_later_than_it_would_by_itself(world: World):
    first = a_row(world, due_at=NOON - 23 * HOUR)

    rewind(world, NOON - HOUR)
    scan_all(world)

    assert world.ready.sent == [first]


@pytest.mark.parametrize("to", [NOON + SECOND, NOON - timedelta(days=14) - SECOND])
def test_an_instant_that_has_not_come_or_whose_rows_are_gone_is_refused(world: World, to: datetime):
    with pytest.raises(InvalidInput, match="before which rows have expired, up to now"):
        rewind(world, to)
