"""Tenants in turns: what goes out in which tick when more is due than may."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from functions.domain.far_ring.cursor import OwnCursor, Position, first_cursors
from functions.domain.far_ring.fairness import MIN_QUANTUM, ROUNDS_A_TICK
from functions.domain.far_ring.timer_key import timer_key
from functions.domain.instants import DAY, MILLISECOND, SECOND
from functions.domain.jobs.claims import LEDGER_LIFE, RENEW_AFTER, LedgerRow
from functions.domain.jobs.job import Delivery, Priority, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import State
from functions.domain.stage.conditions import Conditions
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.ready_queue import Rejected
from functions.scanner import fair_scan as rounds
from testkit.builders import NOON, a_timer
from testkit.scheduler import World

BUDGET = MIN_QUANTUM * ROUNDS_A_TICK
TICK = timedelta(minutes=1)


@pytest.fixture
def world() -> World:
    """A shard that was scanned up to now, and promotes so many normal jobs a tick."""
    world = World()
    recorded(world, world.wheel.bucket_of(NOON))
    budget(world, BUDGET)
    return world


def budget(world: World, jobs: int | None) -> None:
    """For as long as the test lasts."""
    budgets = {Priority.NORMAL: jobs} if jobs is not None else {}
    world.shards.publish(Conditions(published_at=NOON + timedelta(days=1), budgets=budgets))


def test_no_more_goes_out_than_the_budget_and_the_next_tick_goes_on_where_it_ended(world: World):
    rows(world, "acme", BUDGET + 5)

    report = world.scan()

    assert (report.sent, report.stopped_by) == (BUDGET, "the budget of a class is used up")
    assert (world.scan().sent, world.scan().sent) == (5, 0)


def test_a_class_without_a_budget_has_no_bound(world: World):
    budget(world, None)
    rows(world, "acme", 3 * rounds.PAGE + 1)

    assert world.scan().sent == 3 * rounds.PAGE + 1


def test_a_tenant_with_one_job_is_not_behind_one_with_thousands(world: World):
    rows(world, "a-whale", 5_000)
    minnow = rows(world, "minnow", 1)[0]

    world.scan()

    assert minnow in world.ready.sent
    assert Counter(timer.job.tenant for timer in world.ready.sent) == {"a-whale": BUDGET - 1, "minnow": 1}


def test_a_job_that_comes_later_is_not_behind_one_with_thousands_either(world: World):
    rows(world, "a-whale", 5_000)
    world.scan()
    minnow = rows(world, "minnow", 1, due_at=NOON + 3 * TICK)[0]
    world.clock.tick(2 * TICK)

    world.scan()

    assert minnow in world.ready.sent


def test_tenants_that_have_more_than_goes_out_share_it_by_their_weights(world: World):
    world.plans.plans = {"heavy": TenantPlan(weight=3), "light": TenantPlan(weight=0.5)}
    for tenant in ("heavy", "light", "usual"):
        rows(world, tenant, 3_000)

    for _ in range(10):
        world.scan()

    sent = Counter(timer.job.tenant for timer in world.ready.sent)
    assert sum(sent.values()) == 10 * BUDGET
    unit = 10 * BUDGET / 4.5
    for tenant, weight in (("heavy", 3), ("light", 0.5), ("usual", 1)):
        assert abs(sent[tenant] - weight * unit) <= 3 * MIN_QUANTUM * weight


def test_a_turn_that_the_budget_cuts_off_goes_on_in_the_next_tick(world: World):
    budget(world, 15)
    for tenant in ("a", "b", "c"):
        rows(world, tenant, 100)

    for _ in range(6):
        world.scan()

    sent = Counter(timer.job.tenant for timer in world.ready.sent)
    assert sum(sent.values()) == 6 * 15
    assert max(sent.values()) - min(sent.values()) <= MIN_QUANTUM


def test_everything_goes_out_once_however_it_is_cut(world: World):
    due = [*rows(world, "whale", 777), *rows(world, "b", 20), *rows(world, "zebra", 300), *rows(world, "a", 3)]
    due += rows(world, "whale", 50, due_at=NOON + TICK)

    while len(world.ready.sent) < len(due):
        world.clock.tick(SECOND)
        assert world.scan().sent
    world.clock.tick(TICK)

    assert world.scan().sent == 0
    assert Counter(map(key, world.ready.sent)) == Counter(map(key, due))


def test_a_tenant_that_has_caught_up_is_in_the_stream_again(world: World):
    rows(world, "whale", 300)
    assert "whale" in world.scan().cursors[Priority.NORMAL].own

    world.scan()

    assert world.scan().cursors[Priority.NORMAL].own == {}
    late = rows(world, "whale", 1, due_at=NOON + 3 * TICK)
    world.clock.tick(2 * TICK)
    world.scan()
    assert world.ready.sent[-1:] == late


def test_a_paused_tenant_is_passed_and_goes_on_in_order_when_it_is_resumed(world: World):
    held = rows(world, "paused", 5) + rows(world, "paused", 5, due_at=NOON + TICK)
    others = rows(world, "a", 2) + rows(world, "z", 2) + rows(world, "z", 2, due_at=NOON + TICK)
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}

    for _ in range(5):
        world.scan()
        world.clock.tick(TICK)
    assert world.ready.sent == others

    world.plans.plans = {}
    assert world.scan().sent == len(held)
    assert world.ready.sent[len(others) :] == held
    assert world.scan().cursors[Priority.NORMAL].own == {}


def test_a_paused_tenant_makes_no_bucket_old(world: World):
    rows(world, "paused", 5)
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}

    for _ in range(10):
        world.scan()
        world.clock.tick(TICK)

    assert world.journal.values["oldest_bucket_age_s"][-1] == 0.0


def test_a_paused_tenant_is_neither_a_straggler_nor_does_the_audit_wait_for_it(world: World):
    held, ran = rows(world, "paused", 2), rows(world, "acme", 1)
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}
    world.sweep()
    for _ in range(10):
        world.scan(0)
        world.scan(1)
        world.clock.tick(TICK)

    report = world.sweep()

    assert (report.waits_for, report.audited, report.stragglers) == ([], 1, 1)  # nobody has run what was promoted
    assert not set(map(key, held)) & {key(timer) for timer in world.ready.sent}
    assert key(ran[0]) in {key(timer) for timer in world.ready.sent}


def test_a_capped_tenant_goes_out_with_its_bookings_as_far_as_a_tick_reaches_and_the_next_goes_on(world: World):
    budget(world, None)
    rows(world, "capped", 400)
    other = rows(world, "z", 1)[0]
    world.plans.plans = {"capped": TenantPlan(execution_rate=1)}

    waves = []
    for _ in range(4):
        before = len(world.ready.sent)
        report = world.scan()
        waves.append([timer for timer in world.ready.sent[before:] if timer.job.tenant == "capped"])
        assert (
            report.stopped_by,
            sum(cursor.own["capped"].is_held_back for cursor in [report.cursors[Priority.NORMAL]]),
        ) == (
            "",
            1,
        )
        world.clock.tick(TICK)

    # A tick reaches GUARD and BUCKET ahead: from then on a minute's worth a minute.
    reach = (world.wheel.guard + world.wheel.bucket) // SECOND
    assert [len(wave) for wave in waves] == [reach + 1, 60, 60, 60]
    starts = [timer.wakes_at for wave in waves for timer in wave]
    assert all(later - earlier == SECOND for earlier, later in pairwise(starts))
    assert other in world.ready.sent


def test_a_capped_tenant_makes_no_bucket_old_and_is_in_the_stream_again_when_it_has_caught_up(world: World):
    budget(world, None)
    rows(world, "capped", 200)
    world.plans.plans = {"capped": TenantPlan(execution_rate=1)}

    for _ in range(6):
        world.scan()
        world.clock.tick(TICK)
    report = world.scan()

    assert max(world.journal.values["oldest_bucket_age_s"]) == 0.0
    assert len(world.ready.sent) == 200
    assert not report.cursors[Priority.NORMAL].own


def test_a_capped_tenant_that_hands_in_all_the_time_does_not_keep_its_own_rows_waiting(world: World):
    budget(world, None)
    waiting = rows(world, "capped", 40)
    world.plans.plans = {"capped": TenantPlan(execution_rate=1)}

    for minute in range(4):
        # More than its rate, due now: they book all that is near.
        now = world.clock.now()
        near = [a_timer(due_at=now, tenant="capped", identity=f"near-{minute}-{number}") for number in range(300)]
        world.placer.place(near)
        world.scan()
        world.clock.tick(TICK)

    sent = {key(timer) for timer in world.ready.sent}
    assert {key(timer) for timer in waiting} <= sent


def test_the_shards_of_a_whale_share_one_cap(world: World):
    budget(world, None)
    rows(world, "whale", 300)
    rows(world, "whale", 300, shard=1)
    world.plans.plans = {"whale": TenantPlan(execution_rate=1, subshards=2)}

    world.scan(0)
    world.scan(1)

    starts = sorted(timer.wakes_at for timer in world.ready.sent)
    assert len(starts) == (world.wheel.guard + world.wheel.bucket) // SECOND + 1
    assert all(later - earlier == SECOND for earlier, later in pairwise(starts))


def test_while_the_rates_cannot_be_read_a_capped_tenant_waits_and_the_others_go_on(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    capped, other = rows(world, "capped", 3), rows(world, "z", 2)
    world.plans.plans = {"capped": TenantPlan(execution_rate=1)}

    with monkeypatch.context() as broken:
        broken.setattr(world.rates, "book", _refuse)
        world.scan()
        assert world.ready.sent == other
        assert world.events("rate_unknown")
    world.scan()

    assert list(map(key, world.ready.sent)) == list(map(key, [*other, *capped]))


def test_a_capped_tenant_for_which_there_is_no_room_has_its_turn_in_the_stream(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rounds, "MAX_OWN", 0)
    rows(world, "capped", 3)
    world.plans.plans = {"capped": TenantPlan(execution_rate=1)}

    assert world.scan().sent == 3


def test_a_pause_outlasts_the_life_of_a_row(world: World):
    budget(world, None)
    rows(world, "paused", 700, delivery=Delivery.AT_LEAST_ONCE)
    rows(world, "paused", 3, due_at=NOON + TICK)
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}
    world.scan()
    for _ in range(4):
        world.clock.tick(6 * DAY)
        for _ in range(5):
            world.scan()
            world.clock.tick(TICK)
    assert not world.ready.sent
    let_go(world)

    world.plans.plans = {}
    for _ in range(8):
        world.scan()
        world.clock.tick(TICK)

    assert len({key(timer) for timer in world.ready.sent}) == 703
    assert min(timer.due_at for timer in world.ready.sent) == NOON


def test_as_much_is_put_anew_in_a_tick_as_it_has_time_for(world: World):
    budget(world, None)
    rows(world, "paused", 3 * rounds.PAGE + 1, delivery=Delivery.AT_LEAST_ONCE)
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}
    world.scan()
    world.clock.tick(8 * DAY)

    world.scan()

    assert sum(map(len, world.timers.puts)) == 3 * rounds.PAGE + 1


def test_a_job_that_has_ended_meanwhile_is_not_put_anew_and_one_that_waits_keeps_its_ledger_row(world: World):
    ended, waits = rows(world, "paused", 2)
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}
    world.ledger.cancel(job_id_of(ended.job), owner="me", now=NOON)
    world.scan()
    world.clock.tick(8 * DAY)

    world.scan()

    assert [timer.job.identity for put in world.timers.puts for timer in put] == [waits.job.identity]
    row = world.ledger.get(waits.job.key)
    assert row is not None
    assert row.parked_until is not None
    assert row.parked_until > world.clock.now()


@pytest.mark.parametrize("dies", [False, True])
def test_what_is_put_anew_of_a_job_whose_later_attempt_has_lost_its_message_is_that_attempt(world: World, dies: bool):
    (first,) = rows(world, "paused", 1)
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}
    world.ledger.rows[first.job.key] = LedgerRow(state=State.RETRYING, attempt=1, fence=1, due_at=NOON + TICK)
    world.scan()
    world.clock.tick(8 * DAY)
    if dies:
        world.timers.unwritten = lambda _: True
        world.scan()
        world.timers.unwritten = lambda _: False

    world.scan()
    world.plans.plans = {}
    for _ in range(8):
        world.scan()
        world.receive_and_work()
        world.clock.tick(TICK)

    row = world.row(first.job)
    assert (row.state, row.attempt) == (State.SUCCEEDED, 2)
    assert {event["attempt"] for event in world.events("revived")} == {2}


def test_a_row_that_could_not_be_put_anew_is_not_passed(world: World):
    held = rows(world, "paused", 3)
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}
    world.scan()
    world.clock.tick(8 * DAY)
    world.timers.unwritten = lambda entry: (
        entry.job.identity == held[1].job.identity if isinstance(entry, Timer) else False
    )

    own = world.scan().cursors[Priority.NORMAL].own["paused"]
    assert own.at == (world.wheel.bucket_of(NOON), timer_key(held[0].job, due_at=held[0].due_at))
    assert world.journal.counts["held_too_long"] == 1

    world.timers.unwritten = lambda _: False
    own = world.scan().cursors[Priority.NORMAL].own["paused"]
    assert own.at.bucket > world.wheel.bucket_of(NOON)
    assert world.journal.counts["held_too_long"] == 1


def test_a_pause_of_everybody_outlasts_the_life_of_a_row(world: World):
    budget(world, None)
    rows(world, "a", 5)
    rows(world, "b", 5)
    world.plans.everybody = TenantPlan(status=TenantStatus.PAUSED)
    world.scan()
    for _ in range(3):
        world.clock.tick(6 * DAY + timedelta(hours=1))
        for _ in range(4):
            world.scan(time_limit=timedelta(hours=2))
            world.clock.tick(TICK)
    assert not world.ready.sent
    let_go(world)

    world.plans.everybody = TenantPlan()
    for _ in range(8):
        world.scan(time_limit=timedelta(hours=2))
        world.clock.tick(TICK)

    assert len({key(timer) for timer in world.ready.sent}) == 10


@pytest.mark.long
def test_no_job_of_a_tenant_with_more_load_than_its_cap_vanishes_in_forty_days(world: World):
    budget(world, None)
    world.plans.plans = {"capped": TenantPlan(execution_rate=0.01)}
    due: list[Timer] = []
    for hour in range(40 * 24):
        # A tick books three of them, about.
        due += rows(world, "capped", 6, due_at=world.clock.now() + TICK)
        world.scan(time_limit=timedelta(hours=2))
        world.clock.tick(timedelta(hours=1))
        if hour % 12 == 0:
            let_go(world)
    sent_while_capped = len(world.ready.sent)
    assert sent_while_capped < 0.7 * len(due)
    # Put anew in time, however long it goes on.
    assert RENEW_AFTER < timedelta(seconds=max(world.journal.values["held_age_s"])) < RENEW_AFTER + timedelta(hours=2)
    assert world.journal.counts["held_too_long"] == 0
    assert max(world.journal.values["oldest_bucket_age_s"][1:]) < 2 * 3_600

    world.plans.plans = {}
    assert_all_go_out(world, due)


def test_the_ledger_row_of_what_waits_for_its_cap_outlives_it(world: World):
    budget(world, None)
    world.plans.plans = {"capped": TenantPlan(execution_rate=0.01)}
    waits = rows(world, "capped", 40)[-1]
    world.ledger.register(waits.job, job_id=str(job_id_of(waits.job)), fingerprint="", owner="me", now=NOON)
    world.scan()
    world.clock.tick(8 * DAY)

    world.scan()

    assert world.ledger.expiry[waits.job.key] > world.clock.now() + LEDGER_LIFE


@pytest.mark.parametrize("priority", [Priority.NORMAL, Priority.LOW])
def test_what_waits_for_room_in_its_queue_outlasts_the_life_of_a_row(world: World, priority: Priority):
    due = [*rows(world, "a", 3, priority=priority), *rows(world, "b", 3, priority=priority)]
    world.shards.publish(Conditions(published_at=NOON + 40 * DAY, budgets={priority: 0}))
    for _ in range(20):
        world.scan(time_limit=timedelta(hours=2))
        world.clock.tick(DAY)
        let_go(world)
    assert not world.ready.sent

    world.shards.publish(Conditions(published_at=NOON + 40 * DAY, budgets={}))
    assert_all_go_out(world, due)


def test_what_is_put_anew_keeps_no_others_from_going_out(world: World):
    budget(world, None)
    rows(world, "paused", 20 * rounds.PAGE, delivery=Delivery.AT_LEAST_ONCE)
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}
    world.scan()
    world.clock.tick(8 * DAY)
    other = rows(world, "z", 1, due_at=world.clock.now())
    recorded(
        world,
        world.wheel.bucket_of(world.clock.now()),
        own={"paused": OwnCursor(Position(world.wheel.bucket_of(NOON)))},
    )
    world.timers.put_takes = 4 * SECOND

    world.scan()

    assert world.ready.sent == other


def test_whoever_waits_for_long_is_put_anew_in_turns(world: World):
    budget(world, None)
    for tenant in ("a", "b"):
        rows(world, tenant, 3 * rounds.PAGE, delivery=Delivery.AT_LEAST_ONCE)
    world.plans.plans = {name: TenantPlan(status=TenantStatus.PAUSED) for name in ("a", "b")}
    world.scan()
    world.clock.tick(8 * DAY)
    world.timers.put_takes = 12 * SECOND

    world.scan()

    assert Counter(timer.job.tenant for put in world.timers.puts for timer in put) == {
        "a": rounds.PAGE,
        "b": rounds.PAGE,
    }


def test_a_row_that_nobody_can_read_is_a_dead_letter_before_its_table_lets_it_go(world: World):
    rows(world, "paused", 1)
    (place,) = world.rows.rows
    world.rows.rows[place][f"{Priority.NORMAL.value}#paused#0#broken"] = "not a timer"
    world.plans.plans = {"paused": TenantPlan(status=TenantStatus.PAUSED)}
    world.scan()
    world.clock.tick(8 * DAY)

    world.scan()

    assert [letter.identity for letter in world.letters.letters.values()] == ["broken"]


def test_the_rows_of_a_deleted_tenant_are_passed_and_forgotten(world: World):
    rows(world, "gone", 30)
    rows(world, "behind", 600)
    rows(world, "z", 2)
    world.plans.plans = {"gone": TenantPlan(status=TenantStatus.DELETED)}
    world.scan()
    assert {timer.job.tenant for timer in world.ready.sent} == {"behind", "z"}
    world.plans.plans |= {"behind": TenantPlan(status=TenantStatus.DELETING)}
    world.ready.sent.clear()
    world.clock.tick(TICK)

    report = world.scan()

    assert not world.ready.sent
    assert not report.cursors[Priority.NORMAL].own
    assert not report.stopped_by


def test_nothing_goes_out_while_everybody_is_paused_and_all_of_it_after(world: World):
    due = rows(world, "a", 3)
    world.plans.everybody = TenantPlan(status=TenantStatus.PAUSED)
    for _ in range(3):
        assert world.scan().stopped_by == "everybody is paused"
        world.clock.tick(TICK)
    assert "oldest_bucket_age_s" not in world.journal.values

    world.plans.everybody = TenantPlan()
    world.scan()

    assert world.ready.sent == due


def _refuse(*_: Any, **__: Any) -> Any:
    raise ConnectionError("no answer")


@pytest.mark.parametrize("plan", [TenantPlan(execution_rate=0.01), TenantPlan(status=TenantStatus.DELETED)])
def test_what_may_still_wait_for_its_booking_or_is_forgotten_is_no_straggler(world: World, plan: TenantPlan):
    rows(world, "acme", 1)
    world.plans.plans = {"acme": plan}
    world.sweep()
    for _ in range(10):
        world.scan(0)
        world.scan(1)
        world.clock.tick(TICK)

    assert (world.sweep().audited, world.sweep().stragglers) == (0, 0)


def test_tenants_beyond_those_that_may_have_a_turn_of_their_own_hold_the_stream_up_and_are_served(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rounds, "MAX_OWN", 2)
    due = [timer for tenant in ("a", "b", "c", "d") for timer in rows(world, tenant, 100)]
    due += rows(world, "e", 1)

    sent = 0
    while sent < len(due):
        report = world.scan()
        assert report.sent
        assert len(report.cursors[Priority.NORMAL].own) <= 2
        sent += report.sent

    assert Counter(map(key, world.ready.sent)) == Counter(map(key, due))


def test_a_paused_tenant_for_which_there_is_no_room_is_left_to_the_workers(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(rounds, "MAX_OWN", 1)
    world.plans.plans = {name: TenantPlan(status=TenantStatus.PAUSED) for name in ("a", "b")}
    rows(world, "a", 1)
    beyond, other = rows(world, "b", 1), rows(world, "c", 1)

    world.scan()

    assert world.ready.sent == [*beyond, *other]


def test_a_refused_row_of_a_tenant_that_left_the_stream_is_read_again_and_nothing_is_passed(world: World):
    due = [*rows(world, "a", 30), *rows(world, "b", 30), *rows(world, "c", 5)]
    refused = {key(due[3]), key(due[33])}
    world.ready.refuses = lambda timer: Rejected(timer, "busy", is_permanent=False) if key(timer) in refused else None
    for _ in range(3):
        world.scan()

    world.ready.refuses = lambda _: None
    for _ in range(5):
        world.scan()

    assert {key(timer) for timer in world.ready.sent} == set(map(key, due))


def test_a_tick_that_died_loses_nothing_of_any_turn(world: World):
    due = [*rows(world, "a", 300), *rows(world, "b", 40), *rows(world, "c", 1)]
    world.scan()
    world.shards.rows[0]["lease_until"] = None
    before = world.shards.rows[0]["cursors"]
    world.scan()
    # What the second tick recorded is gone, as if it had died before: what it sent is sent again.
    world.shards.rows[0]["cursors"] = before

    for _ in range(5):
        world.scan()

    assert {key(timer) for timer in world.ready.sent} == set(map(key, due))


def test_a_higher_class_leaves_the_lower_ones_a_share_of_every_tick(world: World):
    budget(world, None)
    for priority in Priority:
        rows(world, "acme", 3 * rounds.PAGE, priority=priority)
    world.timers.before_read = lambda: world.clock.tick(2 * SECOND)

    world.scan()

    assert {timer.job.priority for timer in world.ready.sent} >= {Priority.CRITICAL, Priority.LOW}


def rows(world: World, tenant: str, count: int, *, due_at: Any = NOON, shard: int = 0, **overrides: Any) -> list[Timer]:
    """Rows of a tenant in the shard that is scanned, or in another, in the order of their keys."""
    timers = [a_timer(due_at=due_at + number * MILLISECOND, tenant=tenant, **overrides) for number in range(count)]
    timers = [replace(timer, job=replace(timer.job, shard=shard)) for timer in timers]
    world.rows.put(timers)
    return timers


def key(timer: Timer) -> str:
    """What names a row."""
    return f"{timer.job.tenant}#{timer.job.identity}"


def let_go(world: World) -> None:
    """What the ttl of the tables does, in the end."""
    world.rows.expire(world.clock.now())
    world.ledger.expire(world.clock.now())


def recorded(world: World, bucket: int, *, own: Mapping[str, OwnCursor] | None = None) -> None:
    """Both shards were scanned up to a bucket, but for tenants that are behind in the class of normal jobs."""
    cursors = first_cursors(bucket)
    cursors[Priority.NORMAL] = replace(cursors[Priority.NORMAL], own=own or {})
    for shard in range(world.wheel.scan_shards):
        lease = world.shards.acquire(shard, owner="", now=NOON, lease_until=NOON, skew=world.wheel.skew)
        assert lease is not None
        world.shards.checkpoint(lease, cursors, lease_until=None)


def assert_all_go_out(world: World, due: list[Timer]) -> None:
    """Within eight ticks, and each of them once."""
    for _ in range(8):
        world.scan(time_limit=timedelta(hours=2))
        world.clock.tick(TICK)

    assert Counter(map(key, world.ready.sent)) == Counter(map(key, due))
