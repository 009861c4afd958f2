"""Messages without a job that go before a herd: how many, when, and what becomes of them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest

from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.far_ring.warming import (
    BODY,
    HERD,
    HOLD_SECONDS,
    JOBS_OF_A_MESSAGE,
    MOST,
    most_messages,
    warm_delays,
)
from functions.domain.jobs.job import Priority
from functions.domain.schedules.state import Link
from functions.ports.timers import StoredTimer
from functions.scanner.warm import Warmer
from testkit.builders import NOON, a_submission, a_timer
from testkit.fakes import FakeClock, InMemoryReadyQueue, RecordingJournal
from testkit.scheduler import World

ROOM = {**dict.fromkeys(Priority, MOST), Priority.CRITICAL: 200}
DUE_AT = NOON + timedelta(seconds=100)


class Given:
    def __init__(self, most: Mapping[Priority, int] = ROOM) -> None:
        self.clock = FakeClock(NOON)
        self.ready = InMemoryReadyQueue(self.clock)
        self.journal = RecordingJournal()
        self.warmer = Warmer(clock=self.clock, ready=self.ready, journal=self.journal, most=most)

    @property
    def delays(self) -> list[float]:
        return [(message.visible_at - NOON).total_seconds() for message in self.ready.messages.values()]


def timers(count: int, *, at=DUE_AT, priority: Priority = Priority.NORMAL) -> Sequence[StoredTimer]:
    row = StoredTimer("key", a_timer(due_at=at, priority=priority))
    return [row] * count


def alarms(count: int) -> Sequence[StoredTimer]:
    alarm = ScheduleAlarm(
        tenant="acme",
        schedule_id="hourly",
        version=1,
        shard=0,
        priority=Priority.NORMAL,
        alarm_at=DUE_AT,
        link=Link(at=DUE_AT, nominal_at=DUE_AT),
    )
    return [StoredTimer("key", None, alarm=alarm)] * count


def announced(before: int, after: int, *, left: int = 100, room: int = MOST) -> Sequence[int]:
    return warm_delays(before, after, left=left, room=room)


def test_ordinary_buckets_are_not_announced() -> None:
    assert not announced(0, HERD)


def test_a_herd_is_announced_by_one_message_for_some_of_its_jobs() -> None:
    assert len(announced(0, HERD + 800 * JOBS_OF_A_MESSAGE)) == 800


@pytest.mark.parametrize(("room", "expected"), [(300, 300), (0, 0), (-5, 0)])
def test_no_herd_is_announced_by_more_messages_than_there_is_room_for(room: int, expected: int) -> None:
    assert len(announced(0, 10_000_000, room=room)) == expected


@pytest.mark.parametrize(("workers", "shards", "expected"), [(2_000, 512, 234), (10_000, 512, 1_171), (1_250, 4, MOST)])
def test_all_shards_together_announce_no_more_than_the_workers_of_a_class_take(
    workers: int, shards: int, expected: int
) -> None:
    assert most_messages(workers, shards=shards) == expected
    seconds = 100 - HOLD_SECONDS
    at_once_in_the_end = 2 * expected * shards / seconds * HOLD_SECONDS
    assert at_once_in_the_end < 0.7 * 10 * workers  # each takes ten, and jobs come beside them


def test_what_is_left_out_for_want_of_room_leaves_the_others_spread_as_ever() -> None:
    delays = announced(0, 9_000, room=500)

    assert delays == announced(0, 9_000)[:500]
    assert sum(delay < 48 for delay in delays) == pytest.approx(125, abs=10)


def test_a_class_has_no_more_messages_on_their_way_than_its_own_for_all_seconds_together() -> None:
    given = Given()

    for second in range(5):
        at = DUE_AT + timedelta(seconds=second)
        given.warmer.expect(timers(9_000, at=at, priority=Priority.CRITICAL), shard=3)
    given.warmer.expect(timers(9_000), shard=3)

    sent = Counter(message.priority for message in given.ready.messages.values())
    assert sent == {Priority.CRITICAL: 200, Priority.NORMAL: 1_000}


def test_when_a_second_has_passed_there_is_room_for_another() -> None:
    given = Given()
    given.warmer.expect(timers(9_000, priority=Priority.CRITICAL), shard=3)
    given.clock.tick(timedelta(seconds=101))

    later = given.clock.instant + timedelta(seconds=90)
    given.warmer.expect(timers(9_000, at=later, priority=Priority.CRITICAL), shard=3)

    assert given.journal.counts["warm_messages"] == 400


def test_pages_of_a_herd_are_announced_as_the_whole_would_be() -> None:
    pages = [announced(start, start + 900) for start in range(0, 9_000, 900)]

    assert [delay for page in pages for delay in page] == announced(0, 9_000)


@pytest.mark.parametrize("jobs", [2_000, 4_000, 9_000])
def test_more_and_more_of_them_come_in_the_time_that_is_left_and_the_last_end_with_it(jobs: int) -> None:
    delays = announced(0, jobs)

    assert min(delays) == 0
    assert max(delays) + HOLD_SECONDS == 99
    quarters = [sum(start <= delay < start + 24 for delay in delays) / len(delays) for start in (0, 24, 48, 72)]
    assert quarters == pytest.approx([1 / 16, 3 / 16, 5 / 16, 7 / 16], abs=0.03)


@pytest.mark.parametrize("left", [HOLD_SECONDS, 0, -30])
def test_a_herd_that_is_due_already_is_not_announced(left: int) -> None:
    assert not announced(0, 9_000, left=left)


def test_what_a_shard_sends_for_one_second_is_a_herd() -> None:
    given = Given()

    for _ in range(9):
        given.warmer.expect(timers(1_000), shard=3)

    assert len(given.delays) == given.journal.counts["warm_messages"] == 1_000
    assert {message.body for message in given.ready.messages.values()} == {BODY}
    assert {message.priority for message in given.ready.messages.values()} == {Priority.NORMAL}


def test_the_alarms_of_schedules_are_a_herd_before_their_fires_are_placed() -> None:
    given = Given()

    given.warmer.expect(alarms(9_000), shard=3)

    assert len(given.delays) == 1_000


def test_as_many_jobs_of_a_whole_minute_are_none() -> None:
    given = Given()

    for second in range(60):
        given.warmer.expect(timers(900, at=DUE_AT + timedelta(seconds=second)), shard=3)
        given.warmer.expect(timers(900, at=DUE_AT + timedelta(seconds=second)), shard=4)
        given.warmer.expect(timers(900, at=DUE_AT + timedelta(seconds=second), priority=Priority.LOW), shard=4)

    assert not given.delays


def test_a_stage_that_does_not_want_it_sends_none() -> None:
    given = Given(most={})

    given.warmer.expect(timers(9_000), shard=3)

    assert not given.delays


def test_what_is_due_is_forgotten() -> None:
    given = Given()
    given.warmer.expect(timers(HERD), shard=3)
    given.clock.tick(timedelta(seconds=101))

    given.warmer.expect(timers(1, at=given.clock.instant + timedelta(seconds=90)), shard=3)

    assert len(given.warmer._jobs) == 1  # pyright: ignore[reportPrivateUsage]


def test_a_worker_keeps_one_for_a_while_and_acknowledges_it() -> None:
    world = World()
    world.ready.warm(Priority.NORMAL, [0])

    world.receive_and_work()

    assert not world.ready.messages
    assert not world.calls
    assert not world.buried


def test_one_that_comes_again_keeps_nobody() -> None:
    world = World()
    world.ready.warm(Priority.NORMAL, [0])
    for message in world.ready.messages.values():
        message.receive_count = 1
    before = world.clock.instant

    world.receive_and_work()

    assert not world.ready.messages
    assert world.clock.instant - before < timedelta(seconds=HOLD_SECONDS)


def test_the_jobs_beside_it_are_run() -> None:
    world = World()
    world.submit(a_submission(due_at=NOON))
    world.ready.warm(Priority.NORMAL, [0])

    world.receive_and_work()

    assert len(world.calls) == 1
    assert not world.ready.messages


def test_in_a_dead_letter_queue_it_is_no_foreign_message() -> None:
    world = World()

    is_done = world.burier().bury(BODY, message_id="m1", seen_at=NOON, receive_count=10)

    assert is_done
    assert not world.buried
