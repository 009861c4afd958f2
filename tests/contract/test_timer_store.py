"""What every timer store keeps: rows by bucket and shard, critical first, read behind a sort key."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.domain.far_ring.schedule_alarm import ALARM_LIFE, ScheduleAlarm
from functions.domain.far_ring.timer_key import alarm_key, timer_key
from functions.domain.instants import EPOCH, MILLISECOND, SECOND
from functions.domain.jobs.callbacks import Callbacks
from functions.domain.jobs.claims import TIMER_LIFE
from functions.domain.jobs.job import Payload, Priority, Timer
from functions.domain.jobs.job_id import JobId, job_id_of
from functions.domain.operations.operation import OwnedDay
from functions.domain.schedules.schedule import Schedule
from functions.domain.targets.options import TargetOptions
from functions.ports.ledger import Applied
from functions.ports.timers import StoredTimer, TimerStore
from testkit.builders import (
    LOCAL_WHEEL,
    NOON,
    a_link,
    a_schedule,
    a_template,
    a_timer,
    an_alarm,
    an_occurrence_timer,
)
from tests.contract.conftest import ON_DYNAMODB, TimerSubject

SHARD = 1
BUCKET = LOCAL_WHEEL.bucket_of(NOON)
TODAY = (NOON - EPOCH).days
MIDNIGHT = NOON + timedelta(hours=12)
OWNED = OwnedDay(TODAY, Priority.NORMAL, SHARD)


def test_an_empty_bucket_is_one_last_empty_page(timers: TimerStore):
    page = timers.read(BUCKET, SHARD, limit=10)

    assert (list(page.rows), page.is_last) == ([], True)


def test_a_timer_is_read_as_it_was_put(timers: TimerStore):
    timer = a_row(attempt=3, backoff=timedelta(seconds=4), payload=Payload(text='"\ufffe\x00\U0001f600"'))

    assert timers.put([timer]) == []
    assert [(row.key, row.timer) for row in timers.read(BUCKET, SHARD, limit=10).rows] == [(key_of(timer), timer)]


def test_putting_nothing_changes_nothing(timers: TimerStore):
    assert timers.put([]) == []


def test_a_timer_put_twice_is_one_row(timers: TimerStore):
    timer = a_row()
    timers.put([timer])
    timers.put([timer])

    assert len(timers.read(BUCKET, SHARD, limit=10).rows) == 1


def test_equal_timers_of_one_put_are_one_row(timers: TimerStore):
    timer = a_row(identity="same")
    other = a_row(identity="same")

    assert timers.put([timer, other, a_row()]) == []
    assert len(timers.read(BUCKET, SHARD, limit=10).rows) == 2


def test_more_timers_than_a_batch_holds_are_all_put(timers: TimerStore):
    written = [a_row(due_at=NOON + number * SECOND) for number in range(58)]

    assert timers.put(written) == []
    assert timers_of(timers) == written


def test_rows_are_read_by_class_then_tenant_then_due_time(timers: TimerStore):
    low = a_row(priority=Priority.LOW, tenant="a")
    late_critical = a_row(priority=Priority.CRITICAL, tenant="b", due_at=NOON + 59 * SECOND)
    critical = a_row(priority=Priority.CRITICAL, tenant="b")
    of_a = a_row(tenant="a", due_at=NOON + 30 * SECOND)
    of_a_dash = a_row(tenant="a-1")
    of_upper_b = a_row(tenant="B")

    timers.put([low, of_a_dash, late_critical, of_a, of_upper_b, critical])

    assert timers_of(timers) == [critical, late_critical, of_upper_b, of_a, of_a_dash, low]


def test_pages_follow_each_other_without_a_gap_or_a_repeat(timers: TimerStore):
    written = [a_row(due_at=NOON + number * SECOND, priority=Priority(number // 15)) for number in range(60)]
    timers.put(written)

    assert timers_of(timers, limit=7) == written


@pytest.mark.parametrize("limit", [1, 30, 60, 61])
def test_a_page_is_never_larger_than_asked_for(timers: TimerStore, limit: int):
    written = [a_row(due_at=NOON + number * SECOND) for number in range(60)]
    timers.put(written)

    assert [row.timer for row in timers.read(BUCKET, SHARD, limit=limit).rows] == written[:limit]
    assert timers_of(timers, limit=limit) == written


def test_a_page_starts_behind_the_sort_key_that_it_is_given(timers: TimerStore):
    first, second = a_row(), a_row(due_at=NOON + SECOND)
    timers.put([first, second])

    assert [row.timer for row in timers.read(BUCKET, SHARD, after=key_of(first), limit=10).rows] == [second]
    assert timers.read(BUCKET, SHARD, after=key_of(second), limit=10).rows == []
    assert [row.timer for row in timers.read(BUCKET, SHARD, after="1#", limit=10).rows] == [first, second]


def test_a_page_shows_no_row_of_another_bucket_or_another_shard(timers: TimerStore):
    timers.put([a_row(due_at=NOON + timedelta(seconds=60)), a_timer(identity="elsewhere-0", due_at=NOON)])

    found = {shard: len(timers.read(BUCKET, shard, limit=10).rows) for shard in (0, 1, 11, 111)}

    assert sum(found.values()) == 1
    assert len(timers.read(BUCKET + 60, SHARD, limit=10).rows) == 1


def test_a_retry_waits_in_the_bucket_of_its_own_due_time(timers: TimerStore):
    timer = a_row()
    retry = Timer(job=timer.job, due_at=NOON + timedelta(minutes=10), attempt=2, backoff=timedelta(minutes=10))

    timers.put([timer, retry])

    assert timers_of(timers, bucket=BUCKET + 600) == [retry]
    assert timers_of(timers) == [timer]


def test_a_row_that_cannot_be_decoded_is_read_with_its_record_and_the_fault(timer_subject: TimerSubject):
    timer_subject.put_raw(BUCKET, SHARD, "2#acme#1803902400000#broken", '{"i":')
    timer = a_row(due_at=NOON + MILLISECOND)
    timer_subject.timers.put([timer])

    broken, sound = timer_subject.timers.read(BUCKET, SHARD, limit=10).rows

    assert (broken.key, broken.timer, broken.raw) == ("2#acme#1803902400000#broken", None, '{"i":')
    assert "not a timer record" in broken.fault
    assert sound.timer == timer


def test_a_row_under_a_key_that_tickwheel_did_not_write_is_read_as_undecodable(timer_subject: TimerSubject):
    timer_subject.put_raw(BUCKET, SHARD, "foreign", "hello")

    row = timer_subject.timers.read(BUCKET, SHARD, limit=10).rows[0]

    assert (row.key, row.timer, row.raw) == ("foreign", None, "hello")


def test_a_timer_is_found_by_the_id_of_its_job(timers: TimerStore):
    timer = a_row()
    timers.put([timer])

    assert timers.get(job_id_of(timer.job)) == timer


def test_a_timer_that_is_not_there_is_not_found(timers: TimerStore):
    assert timers.get(job_id_of(a_row().job)) is None


def test_deleting_gives_what_this_very_call_removed(timers: TimerStore):
    timer = a_row()
    timers.put([timer])

    stored = timers.stored(an_id(timer))
    deleted = timers.delete(an_id(timer))
    assert deleted is not None
    assert stored == deleted
    assert (deleted.key, deleted.timer, deleted.written_at) == (key_of(timer), timer, NOON)
    assert timers.delete(an_id(timer)) is None
    assert timers.stored(an_id(timer)) is None
    assert timers.get(an_id(timer)) is None


@pytest.mark.parametrize("payload", [Payload(text='{"C":",\\"C\\":"}'), Payload(text="[7]")])
def test_the_row_of_a_job_with_callbacks_is_returned_and_stays(timers: TimerStore, payload: Payload):
    plain, called_back = a_row(payload=payload), a_row(payload=payload, callbacks=Callbacks(on_end="handler:over"))
    seeming = a_row(options=TargetOptions(headers=(("B", "x"), ("C", "x"))))
    timers.put([plain, called_back, seeming])

    for timer in (plain, called_back, seeming, plain):
        stored = timers.delete_unless_called_back(an_id(timer))
        assert stored is None or stored.timer == timer

    assert timers_of(timers) == [called_back]
    assert timers.delete_unless_called_back(an_id(plain)) is None


def test_a_timer_is_put_over_its_own_row_as_if_that_had_been_written_then(timers: TimerStore):
    timer = a_row(callbacks=Callbacks(on_end="handler:over"))
    reading = replace(timer, job=replace(timer.job, reads_cancel=True))
    assert not timers.put_over(an_id(timer), reading, written_at=NOON)
    assert timers.stored(an_id(timer)) is None

    timers.put([timer])
    assert timers.put_over(an_id(timer), reading, written_at=NOON)

    stored = timers.stored(an_id(timer))
    assert stored is not None
    assert (stored.timer, stored.written_at) == (reading, NOON)


def test_deleting_a_job_leaves_its_retry_and_its_neighbours(timers: TimerStore):
    timer, neighbour = a_row(), a_row(due_at=NOON + SECOND)
    retry = Timer(job=timer.job, due_at=NOON + 2 * SECOND, attempt=2)
    timers.put([timer, neighbour, retry])

    timers.delete(an_id(timer))

    assert timers_of(timers) == [neighbour, retry]


def test_a_timer_of_a_registered_job_is_put_while_its_job_waits(timer_subject: TimerSubject):
    timer = a_registered_row(timer_subject)

    assert timer_subject.timers.put_registered(timer) is True
    assert timers_of(timer_subject.timers) == [timer]


def test_a_timer_of_a_registered_job_put_twice_is_one_row(timer_subject: TimerSubject):
    timer = a_registered_row(timer_subject)
    timer_subject.timers.put([timer])

    assert timer_subject.timers.put_registered(timer) is True
    assert timer_subject.timers.put_registered(timer) is True
    assert timers_of(timer_subject.timers) == [timer]


def test_a_timer_of_a_registered_job_is_not_put_once_its_cancel_is_requested(timer_subject: TimerSubject):
    timer = a_registered_row(timer_subject)
    request_cancel(timer_subject, timer)

    assert timer_subject.timers.put_registered(timer) is False
    assert timers_of(timer_subject.timers) == []


def test_a_timer_of_a_registered_job_is_not_put_once_it_is_cancelled(timer_subject: TimerSubject):
    timer = a_registered_row(timer_subject)
    timer_subject.ledger.cancel(an_id(timer), owner="api", now=NOON)

    assert timer_subject.timers.put_registered(timer) is False
    assert timers_of(timer_subject.timers) == []


def test_a_timer_of_a_registered_job_is_not_put_once_a_worker_has_claimed_it(timer_subject: TimerSubject):
    timer = a_registered_row(timer_subject)
    timer_subject.ledger.claim(timer, owner="worker", lease_until=NOON + SECOND, now=NOON)

    assert timer_subject.timers.put_registered(timer) is False
    assert timers_of(timer_subject.timers) == []


def test_a_timer_of_a_job_that_nobody_registered_is_not_put(timer_subject: TimerSubject):
    assert timer_subject.timers.put_registered(a_row()) is False
    assert timers_of(timer_subject.timers) == []


def test_a_timer_that_may_not_be_put_leaves_the_row_that_is_there(timer_subject: TimerSubject):
    timer = a_registered_row(timer_subject)
    timer_subject.timers.put_registered(timer)
    request_cancel(timer_subject, timer)
    changed = replace(timer, job=replace(timer.job, target="https://example.com/other"))

    assert timer_subject.timers.put_registered(changed) is False
    assert timers_of(timer_subject.timers) == [timer]


def test_putting_a_registered_timer_changes_nothing_in_the_ledger(timer_subject: TimerSubject):
    timer = a_registered_row(timer_subject)
    before = timer_subject.ledger.get(timer.job.key)

    timer_subject.timers.put_registered(timer)

    assert timer_subject.ledger.get(timer.job.key) == before


def test_an_alarm_is_read_as_it_was_put(timers: TimerStore):
    alarm = a_row_alarm(
        version=12,
        link=a_link(
            NOON - SECOND,
            nominal_at=NOON - 2 * SECOND,
            index=7,
            previous_at=NOON - 3 * SECOND,
            is_awaited=True,
            merged_count=2,
        ),
    )

    assert timers.put_alarms([alarm]) == []
    assert timers.read(BUCKET, SHARD, limit=10).rows == [StoredTimer(alarm_key(alarm), None, alarm=alarm)]


def test_putting_no_alarms_changes_nothing(timers: TimerStore):
    assert timers.put_alarms([]) == []


def test_alarms_and_timers_stand_side_by_side_in_the_order_of_their_classes(timers: TimerStore):
    schedule = a_schedule(job=a_template(priority=Priority.HIGH))
    alarm, critical, low = a_row_alarm(schedule), a_row(priority=Priority.CRITICAL), a_row(priority=Priority.LOW)
    fire = an_occurrence_timer(schedule, fire_at=NOON)
    fire = replace(fire, job=replace(fire.job, shard=SHARD))
    timers.put_alarms([alarm])
    timers.put([low, fire, critical])

    rows = timers.read(BUCKET, SHARD, limit=10).rows

    assert [row.timer for row in rows if row.timer] == [critical, fire, low]
    assert [row.alarm for row in rows if row.alarm] == [alarm]
    assert [row.key[:2] for row in rows] == ["0#", "1#", "1#", "3#"]


def test_an_alarm_put_again_is_one_row_with_what_was_put_last(timers: TimerStore):
    alarm = a_row_alarm()
    later = replace(alarm, link=replace(alarm.link, index=9))
    timers.put_alarms([alarm])
    timers.put_alarms([later])

    assert [row.alarm for row in timers.read(BUCKET, SHARD, limit=10).rows] == [later]


def test_a_late_put_of_an_old_version_overwrites_nothing_of_a_newer_one(timers: TimerStore):
    old, new = a_row_alarm(version=2), a_row_alarm(version=3)
    timers.put_alarms([new])
    timers.put_alarms([old])

    assert [row.alarm for row in timers.read(BUCKET, SHARD, limit=10).rows] == [old, new]


def test_an_alarm_lies_in_the_bucket_in_which_it_comes_due_whenever_its_fire_is(timers: TimerStore):
    alarm = a_row_alarm(link=a_link(NOON - timedelta(hours=1)))
    timers.put_alarms([alarm])

    assert [row.alarm for row in timers.read(BUCKET, SHARD, limit=10).rows] == [alarm]


def test_more_alarms_than_a_batch_holds_are_all_put(timers: TimerStore):
    alarms = [a_row_alarm(a_schedule(schedule_id=f"s{number:02d}")) for number in range(58)]

    assert timers.put_alarms(alarms) == []
    assert [row.alarm for row in timers.read(BUCKET, SHARD, limit=100).rows] == alarms


def test_the_alarm_of_a_schedule_is_not_found_by_the_id_of_its_run(timers: TimerStore):
    timer = an_occurrence_timer(fire_at=NOON)
    timers.put_alarms([an_alarm()])

    assert timers.stored(an_id(timer)) is None
    assert timers.delete(an_id(timer)) is None
    assert len(timers.read(BUCKET, timer.job.shard, limit=10).rows) == 1


def test_an_alarm_that_cannot_be_decoded_is_read_with_its_record_and_the_fault(timer_subject: TimerSubject):
    key = alarm_key(a_row_alarm())
    timer_subject.put_raw(BUCKET, SHARD, key, '{"i":')

    row = timer_subject.timers.read(BUCKET, SHARD, limit=10).rows[0]

    assert (row.key, row.timer, row.alarm, row.raw) == (key, None, None, '{"i":')
    assert "not an alarm record" in row.fault


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
@pytest.mark.parametrize("is_registered", [False, True])
def test_a_row_lives_14_days_longer_than_its_due_time(timer_subject: TimerSubject, *, is_registered: bool):
    assert timer_subject.expires_at is not None
    timers = [a_registered_row(timer_subject, due_at=NOON + timedelta(days=400)), a_registered_row(timer_subject)]
    if is_registered:
        assert [timer_subject.timers.put_registered(timer) for timer in timers] == [True, True]
    else:
        timer_subject.timers.put(timers)
        timer_subject.timers.put([timers[1]])

    for timer in timers:
        assert timer_subject.expires_at(timer) == timer.due_at + TIMER_LIFE


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_an_alarm_lives_3_days_longer_than_it_was_due(timer_subject: TimerSubject):
    assert timer_subject.alarm_expires_at is not None
    alarm = a_row_alarm(alarm_at=NOON + timedelta(days=400))

    timer_subject.timers.put_alarms([alarm])

    assert timer_subject.alarm_expires_at(alarm) == NOON + timedelta(days=403) == alarm.wakes_at + ALARM_LIFE


def test_a_tenant_that_has_put_nothing_has_no_days(timers: TimerStore):
    assert timers.days("acme") == []


def test_each_day_class_and_shard_of_a_tenants_timers_is_one_of_its_days(timers: TimerStore):
    timers.put([a_row(), a_row(due_at=NOON + SECOND), a_row(priority=Priority.CRITICAL)])
    timers.put([a_row(due_at=MIDNIGHT - MILLISECOND), a_row(due_at=MIDNIGHT), a_row(tenant="globex")])
    timers.put([of_shard(0, due_at=NOON), of_shard(1_000, due_at=MIDNIGHT)])

    assert timers.days("acme") == [
        OwnedDay(TODAY, Priority.CRITICAL, SHARD),
        OwnedDay(TODAY, Priority.NORMAL, 0),
        OwnedDay(TODAY, Priority.NORMAL, SHARD),
        OwnedDay(TODAY + 1, Priority.NORMAL, SHARD),
        OwnedDay(TODAY + 1, Priority.NORMAL, 1_000),
    ]
    assert timers.days("globex") == [OwnedDay(TODAY, Priority.NORMAL, SHARD)]
    assert timers.days("glob") == []


@pytest.mark.parametrize("due_at", [datetime(2027, 12, 31, tzinfo=UTC), datetime(2199, 2, 28, 23, 59, tzinfo=UTC)])
def test_a_day_is_that_on_which_the_attempt_is_due(timers: TimerStore, due_at: datetime):
    timer = a_row()
    timers.put([Timer(job=timer.job, due_at=due_at, attempt=2)])

    assert [owned.day for owned in timers.days("acme")] == [(due_at - EPOCH).days]


def test_a_day_stays_a_tenants_when_its_rows_are_gone(timers: TimerStore):
    timer = a_row()
    timers.put([timer])
    timers.delete(an_id(timer))

    assert timers.days("acme") == [OwnedDay.of(timer)]


def test_more_days_than_a_batch_holds_are_all_reported_in_order(timers: TimerStore):
    written = [a_row(due_at=NOON + timedelta(days=number)) for number in range(58)]

    assert timers.put(written) == []
    assert timers.days("acme") == [OwnedDay.of(timer) for timer in written]


def test_a_registered_timer_makes_its_day_one_of_its_tenants(timer_subject: TimerSubject):
    timer = a_registered_row(timer_subject)

    timer_subject.timers.put_registered(timer)

    assert timer_subject.timers.days("acme") == [OwnedDay.of(timer)]


def test_the_day_that_a_job_is_moved_to_is_one_of_its_tenants(timer_subject: TimerSubject):
    timer, moved = a_row(), a_row(due_at=NOON + timedelta(days=3))
    timer_subject.timers.put([timer])

    timer_subject.ledger.move(an_id(timer), moved, owner="api", now=NOON)

    assert timer_subject.timers.days("acme") == [OwnedDay.of(timer), OwnedDay.of(moved)]


def test_alarms_of_schedules_make_no_day_a_tenants(timers: TimerStore):
    timers.put_alarms([a_row_alarm()])

    assert timers.days("acme") == []


@pytest.mark.parametrize("dynamodb", ON_DYNAMODB, indirect=True)
def test_a_mark_names_a_day_and_stands_for_15_days_after_it(timer_subject: TimerSubject):
    assert timer_subject.marks is not None
    timer_subject.timers.put([a_row(), a_row(), of_shard(3, due_at=MIDNIGHT, priority=Priority.LOW)])

    assert timer_subject.marks() == {
        ("acme", "day#20270301#2#0001"): MIDNIGHT + timedelta(days=15),
        ("acme", "day#20270302#3#0003"): MIDNIGHT + timedelta(days=16),
    }


def test_a_tenants_rows_of_a_class_are_read_and_no_others(timers: TimerStore):
    mine = [a_row(), a_row(due_at=NOON + SECOND)]
    others = [
        a_row(tenant="acm"),
        a_row(tenant="acme-1"),
        a_row(tenant="acme2"),
        a_row(tenant="globex"),
        a_row(priority=Priority.HIGH),
        a_row(priority=Priority.LOW),
        a_row(due_at=NOON + timedelta(seconds=60)),
        of_shard(0, due_at=NOON),
    ]
    timers.put([*others, *mine])

    page = timers.read_owned("acme", OWNED, bucket=BUCKET, limit=10)

    assert ([row.timer for row in page.rows], page.is_last) == (mine, True)


def test_a_tenants_rows_say_when_they_were_written(timer_subject: TimerSubject):
    first, second = a_row(), a_row(due_at=NOON + SECOND)
    timer_subject.timers.put([second])
    timer_subject.clock.tick(timedelta(milliseconds=1_500))
    timer_subject.timers.put([first])

    rows = timer_subject.timers.read_owned("acme", OWNED, bucket=BUCKET, limit=10).rows

    assert rows == [
        StoredTimer(key_of(first), first, written_at=NOON + timedelta(milliseconds=1_500)),
        StoredTimer(key_of(second), second, written_at=NOON),
    ]


@pytest.mark.parametrize("limit", [1, 7, 20])
def test_a_tenants_rows_are_read_page_by_page_without_a_gap_or_a_repeat(timers: TimerStore, limit: int):
    written = [a_row(due_at=NOON + number * SECOND) for number in range(20)]
    timers.put([*written, a_row(tenant="zeta")])

    found: list[StoredTimer] = []
    while True:
        after = found[-1].key if found else ""
        page = timers.read_owned("acme", OWNED, bucket=BUCKET, after=after, limit=limit)
        assert len(page.rows) <= limit
        found.extend(page.rows)
        if page.is_last:
            break

    assert [row.timer for row in found] == written


def test_a_tenants_rows_are_read_on_behind_one_that_is_gone(timers: TimerStore):
    first, second = a_row(), a_row(due_at=NOON + SECOND)
    timers.put([first, second])
    timers.delete(an_id(first))

    page = timers.read_owned("acme", OWNED, bucket=BUCKET, after=key_of(first), limit=10)

    assert [row.timer for row in page.rows] == [second]
    behind = timers.read_owned("acme", OWNED, bucket=BUCKET, after=key_of(second), limit=10)
    assert (list(behind.rows), behind.is_last) == ([], True)


def test_a_tenants_rows_show_alarms_and_what_cannot_be_decoded_as_what_they_are(timer_subject: TimerSubject):
    alarm = a_row_alarm()
    timer_subject.timers.put_alarms([alarm])
    timer_subject.put_raw(BUCKET, SHARD, "2#acme#1803902400000#broken", '{"i":')

    rows = timer_subject.timers.read_owned("acme", OWNED, bucket=BUCKET, limit=10).rows

    assert sorted((row.timer, row.alarm, row.raw) for row in rows if row.alarm is None) == [(None, None, '{"i":')]
    assert [row.alarm for row in rows if row.alarm] == [alarm]


def test_a_bucket_in_which_a_tenant_has_nothing_is_one_last_empty_page(timers: TimerStore):
    timers.put([a_row(tenant="globex")])

    page = timers.read_owned("acme", OWNED, bucket=BUCKET, limit=10)

    assert (list(page.rows), page.is_last) == ([], True)


def a_row(**overrides) -> Timer:
    """The timer of a job of shard 1, whatever its tenant."""
    return of_shard(SHARD, **overrides)


def of_shard(shard: int, **overrides: Any) -> Timer:
    """The timer of a job of that shard, whatever its tenant."""
    timer = a_timer(**overrides)
    return replace(timer, job=replace(timer.job, shard=shard))


def a_row_alarm(schedule: Schedule | None = None, **overrides: Any) -> ScheduleAlarm:
    """An alarm of shard 1, whatever its schedule, that rings at noon."""
    return an_alarm(schedule, **{"shard": SHARD, **overrides})


def a_registered_row(subject: TimerSubject, **overrides) -> Timer:
    """The timer of a job whose submission had an idempotency key."""
    timer = a_row(**overrides)
    subject.ledger.register(timer.job, job_id=str(an_id(timer)), fingerprint="f", owner="api", now=NOON)
    return timer


def request_cancel(subject: TimerSubject, timer: Timer) -> None:
    row = subject.ledger.get(timer.job.key)
    assert row is not None
    assert isinstance(subject.ledger.request_cancel(an_id(timer), row=row, now=NOON), Applied)


def key_of(timer: Timer) -> str:
    return timer_key(timer.job, due_at=timer.due_at)


def an_id(timer: Timer) -> JobId:
    return job_id_of(timer.job)


def timers_of(timers: TimerStore, *, bucket: int = BUCKET, limit: int = 500) -> list[Timer | None]:
    """All timers of a bucket, page by page."""
    rows: list[StoredTimer] = []
    while True:
        page = timers.read(bucket, SHARD, after=rows[-1].key if rows else "", limit=limit)
        rows.extend(page.rows)
        if page.is_last:
            return [row.timer for row in rows]
