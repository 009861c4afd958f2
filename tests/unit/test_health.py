"""How a stage does, in a word and in sentences."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.far_ring import cursor
from functions.domain.instants import MINUTE, SECOND, to_seconds
from functions.domain.jobs.job import Priority
from functions.domain.stage.conditions import FRESH, Conditions
from functions.domain.stage.health import (
    AUDIT_BEHIND_AFTER,
    BEHIND_AFTER,
    MOST_NAMES,
    MOST_WORST,
    UNSCANNED_AFTER,
    Health,
    HealthStatus,
    Names,
    health_of,
)
from functions.domain.tenants.plan import TenantPlan
from testkit.builders import NOON

PAUSED = TenantPlan(is_stage_paused=True, note="the database moves", changed_at=NOON - MINUTE)


def bucket(at: datetime) -> cursor.Position:
    return cursor.Position(to_seconds(at))


def standing(
    own: Mapping[str, cursor.OwnCursor] | None = None,
    *,
    at: datetime = NOON + 2 * MINUTE,
    scanned_at: datetime | None = NOON,
) -> cursor.ShardProgress:
    """A shard whose classes have all come as far, with cursors of `normal` for some tenants."""
    cursors: cursor.Cursors = {priority: cursor.ClassCursor(bucket(at)) for priority in Priority}
    cursors[Priority.NORMAL] = cursor.ClassCursor(bucket(at), own or {})
    return cursor.ShardProgress(cursors, scanned_at)


def at(instant: datetime, *, is_held_back: bool = False) -> cursor.OwnCursor:
    return cursor.OwnCursor(bucket(instant), is_held_back=is_held_back)


def health(standings: Mapping[int, cursor.ShardProgress] | None = None, **overrides: Any) -> Health:
    """Of a stage of one shard, at noon, with which all is well."""
    asked: dict[str, Any] = {
        "now": NOON,
        "shards": 1,
        "conditions": Conditions(published_at=NOON - MINUTE),
        "audited": cursor.BucketAuditPosition(to_seconds(NOON - 6 * MINUTE)),
        "everybody": TenantPlan(),
    }
    return health_of({0: standing()} if standings is None else standings, **{**asked, **overrides})


def test_a_stage_with_which_all_is_well_is_ok_without_a_reason():
    found = health()

    assert (found.status, found.reasons) == (HealthStatus.OK, ())
    assert (found.unscanned, found.worst, found.behind, found.held) == ((), (), 0, 0)
    assert [(each.oldest_bucket_at, each.age) for each in found.classes] == [(NOON + 2 * MINUTE, timedelta(0))] * 4


def test_it_is_unknown_where_the_sweeper_has_stopped():
    assert health(conditions=Conditions(published_at=NOON - FRESH)).status is HealthStatus.OK

    found = health(conditions=Conditions(published_at=NOON - FRESH - 3 * MINUTE))

    assert found.status is HealthStatus.UNKNOWN
    assert found.reasons == ("the sweeper has published nothing for 8 minutes",)


def test_it_is_unknown_before_the_first_conditions():
    found = health(conditions=None)

    assert found.status is HealthStatus.UNKNOWN
    assert found.reasons == ("the sweeper has never published the conditions of the stage",)


def test_a_class_is_behind_when_its_oldest_bucket_has_been_due_for_longer_than_ticks_jitter():
    assert health({0: standing(at=NOON - BEHIND_AFTER)}).status is HealthStatus.OK

    late = standing()
    late.cursors[Priority.LOW] = cursor.ClassCursor(bucket(NOON - BEHIND_AFTER - SECOND))
    found = health({0: late, 1: standing()}, shards=2)

    assert (found.status, found.reasons) == (HealthStatus.BEHIND, ("low is 2 minutes behind",))
    assert [each.age for each in found.classes] == [timedelta(0)] * 3 + [BEHIND_AFTER + SECOND]


def test_a_tenant_that_is_behind_makes_its_class_behind_and_one_that_is_held_does_not():
    whale, paused = at(NOON - timedelta(hours=5)), at(NOON - timedelta(days=3), is_held_back=True)

    assert health({0: standing({"paused": paused})}).status is HealthStatus.OK
    assert health({0: standing({"paused": paused, "whale": whale})}).reasons == ("normal is 5 hours behind",)


def test_a_stage_that_is_paused_is_not_behind():
    found = health({0: standing(at=NOON - timedelta(days=2))}, everybody=PAUSED, audited=cursor.BucketAuditPosition(0))

    assert found.status is HealthStatus.PAUSED
    assert found.reasons == ("all tenants are paused since 2027-03-01T11:59:00.000Z: the database moves",)


def test_a_paused_stage_of_which_nothing_is_known_is_unknown_with_both_reasons():
    found = health(everybody=TenantPlan(is_stage_paused=True), conditions=None)

    assert found.status is HealthStatus.UNKNOWN
    assert found.reasons == (
        "the sweeper has never published the conditions of the stage",
        "all tenants are paused",
    )


def test_full_queues_and_shed_classes_are_reasons():
    conditions = Conditions(
        published_at=NOON,
        budgets={Priority.HIGH: 0, Priority.LOW: 7},
        shed=frozenset({Priority.LOW, Priority.NORMAL}),
    )

    found = health(conditions=conditions)

    assert found.status is HealthStatus.BEHIND
    assert found.reasons == (
        "the ready queue of high is full",
        "submissions of normal are refused",
        "submissions of low are refused",
    )


@pytest.mark.parametrize(
    ("scanned_at", "unscanned"),
    [(NOON - UNSCANNED_AFTER, ()), (NOON - UNSCANNED_AFTER - SECOND, (0,)), (None, (0,))],
)
def test_a_shard_that_nobody_has_scanned_for_a_while_is_named(scanned_at: datetime | None, unscanned: tuple[int, ...]):
    assert health({0: standing(scanned_at=scanned_at)}).unscanned == unscanned


def test_a_shard_that_was_never_scanned_is_named_with_the_first_of_the_others():
    found = health({5: standing()}, shards=MOST_NAMES + 3)

    assert found.status is HealthStatus.BEHIND
    assert found.reasons == ("nobody has scanned 12 of 13 shards for 3 minutes: 0, 1, 2, 3, 4, 6, 7, 8, 9, 10, ...",)
    assert len(found.unscanned) == MOST_NAMES + 2


def test_an_audit_that_has_stood_still_is_a_reason():
    standing_at = to_seconds(NOON - AUDIT_BEHIND_AFTER)

    assert health(audited=cursor.BucketAuditPosition(standing_at)).status is HealthStatus.OK
    assert health(audited=None).status is HealthStatus.OK
    assert health(audited=cursor.BucketAuditPosition(standing_at - 1)).reasons == ("the audit is 30 minutes behind",)


def test_the_worst_shards_are_reported_with_the_tenants_that_are_furthest_behind_first():
    own = {
        "b": at(NOON - 9 * MINUTE),
        "a": at(NOON - MINUTE),
        "p": at(NOON - timedelta(days=1), is_held_back=True),
    }

    found = health({0: standing(), 1: standing(own), 2: standing(at=NOON - timedelta(hours=1))}, shards=3)

    first, second = found.worst
    assert (first.shard, first.age, first.behind) == (2, timedelta(hours=1), Names(count=0, first=()))
    assert (second.shard, second.age, second.oldest_bucket_at) == (1, 9 * MINUTE, NOON - 9 * MINUTE)
    assert (second.behind, second.held) == (Names(count=2, first=("b", "a")), Names(count=1, first=("p",)))
    assert (found.behind, found.held) == (2, 1)


def test_a_tenant_that_is_behind_in_two_classes_is_counted_twice_and_named_once():
    shard = standing({"whale": at(NOON - MINUTE)})
    shard.cursors[Priority.LOW] = cursor.ClassCursor(bucket(NOON), {"whale": at(NOON)})

    assert health({0: shard}).worst[0].behind == Names(count=2, first=("whale",))


def test_of_many_only_the_first_are_reported():
    own = {f"t{number:02d}": at(NOON) for number in range(MOST_NAMES + 1)}

    found = health({number: standing(own) for number in range(MOST_WORST + 1)}, shards=MOST_WORST + 1)

    assert len(found.worst) == MOST_WORST
    assert found.worst[0].behind.count == MOST_NAMES + 1
    assert found.worst[0].behind.first == tuple(sorted(own)[:MOST_NAMES])
    assert found.behind == (MOST_NAMES + 1) * (MOST_WORST + 1)


def test_where_no_shard_was_scanned_no_class_has_a_bucket():
    found = health({})

    assert {each.oldest_bucket_at for each in found.classes} == {None}
    assert found.status is HealthStatus.BEHIND


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=359), "5 minutes"),
        (timedelta(minutes=119), "119 minutes"),
        (timedelta(hours=2), "2 hours"),
        (timedelta(hours=47, minutes=59), "47 hours"),
        (timedelta(days=2), "2 days"),
    ],
)
def test_durations_are_reported_in_one_unit(age: timedelta, text: str):
    assert health({0: standing(at=NOON - age)}).reasons == tuple(
        f"{name} is {text} behind" for name in ("critical", "high", "normal", "low")
    )
