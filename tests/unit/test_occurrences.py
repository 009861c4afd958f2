from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from functions.domain.errors import NotPlaced
from functions.domain.instants import HOUR, MILLISECOND, MINUTE, SECOND
from functions.domain.jobs.claims import LedgerRow
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.occurrence import UNBOUND
from functions.domain.jobs.overlap import Overlap
from functions.domain.lifecycle import TERMINAL, Event, State, target
from functions.domain.schedules import firing
from functions.domain.schedules.schedule import Schedule
from functions.domain.schedules.slots import SAID_AGAIN, SILENCE
from functions.domain.schedules.state import Cut, SkipReason, Status
from functions.ports.ready_queue import Rejected
from functions.services.jobs.occurrences import FireDecision
from testkit.builders import NOON, a_link, a_schedule, a_template, an_occurrence_timer, every
from testkit.fakes import InMemoryLedger, InMemoryScheduleStore
from testkit.scheduler import World

ALLOWING = a_schedule(rule=every(minutes=1))
HOURLY = a_schedule()
FORBIDDING = a_schedule(rule=every(minutes=1), overlap=Overlap.FORBID)
BUFFERING = a_schedule(rule=every(minutes=1), overlap=Overlap.BUFFER_ONE)
REPLACING = a_schedule(rule=every(minutes=1), overlap=Overlap.REPLACE)
WAITING = a_schedule(rule=every(minutes=10, from_end=True))
PAUSING = a_schedule(rule=every(minutes=1), pause_after_failures=3)
OVERLAPPING = [FORBIDDING, BUFFERING, REPLACING]


@pytest.fixture
def world() -> World:
    return World()


class TestVersions:
    def test_a_fire_of_the_version_that_stands_may_run_and_nothing_is_written(self, world: World):
        world.store(ALLOWING, version=3)
        before = world.state(ALLOWING)

        assert decide(world, a_fire(ALLOWING, version=3)) is FireDecision.MAY_RUN
        assert (world.ledger.rows, world.state(ALLOWING)) == ({}, before)

    def test_a_fire_that_came_due_before_the_change_may_run(self, world: World):
        world.store(ALLOWING, version=3, cuts=(Cut(2, NOON - HOUR), Cut(3, NOON)))

        assert decide(world, a_fire(ALLOWING, version=2, fire_at=NOON)) is FireDecision.MAY_RUN

    def test_a_fire_that_was_due_after_the_change_is_dropped_without_a_trace_in_the_ledger(self, world: World):
        world.store(ALLOWING, version=3, cuts=(Cut(2, NOON - HOUR), Cut(3, NOON)))
        before = world.state(ALLOWING)
        fire = a_fire(ALLOWING, version=2, fire_at=NOON + MILLISECOND)

        assert decide(world, fire) is FireDecision.IS_OVER

        # The new version may decide the same fire: under the same name it must run.
        assert (world.ledger.rows, world.state(ALLOWING)) == ({}, before)
        assert world.events("stale_fire_dropped") == [{"job_id": str(job_id_of(fire.job))}]

    @pytest.mark.parametrize("state", [State.SCHEDULED, State.RUNNING, State.RETRYING, *sorted(TERMINAL)])
    def test_a_run_of_the_new_version_is_left_to_its_own_message(self, world: World, state: State):
        world.store(ALLOWING, version=3, cuts=(Cut(2, NOON - HOUR), Cut(3, NOON - MINUTE)))
        fire = a_fire(ALLOWING, version=2)
        row = LedgerRow(state=state, attempt=1, lease_until=NOON)
        world.ledger.rows[fire.job.key] = row

        assert decide(world, fire) is FireDecision.IS_OVER
        assert world.ledger.rows[fire.job.key] == row

    @pytest.mark.parametrize("state", [State.RUNNING, State.RETRYING])
    def test_a_run_that_no_version_decides_any_more_comes_to_its_end_by_the_message_it_has(
        self, world: World, state: State
    ):
        # Clocks differ: it began just before the change that it is due after.
        world.store(HOURLY, version=3, cuts=(Cut(2, NOON - HOUR), Cut(3, NOON - MINUTE)))
        fire = a_fire(ALLOWING, version=2, fire_at=NOON + MINUTE)
        row = LedgerRow(state=state, attempt=1, lease_until=NOON)
        world.ledger.rows[fire.job.key] = row

        assert decide(world, fire) is FireDecision.MAY_RUN
        assert world.row(fire.job) == row

    @pytest.mark.parametrize("state", [State.SCHEDULED, *sorted(TERMINAL)])
    def test_a_fire_that_no_version_decides_any_more_and_that_does_not_run_is_dropped(self, world: World, state: State):
        world.store(HOURLY, version=3, cuts=(Cut(2, NOON - HOUR), Cut(3, NOON - MINUTE)))
        fire = a_fire(ALLOWING, version=2, fire_at=NOON + MINUTE)
        row = LedgerRow(state=state, attempt=1)
        world.ledger.rows[fire.job.key] = row

        assert decide(world, fire) is FireDecision.IS_OVER
        assert world.row(fire.job) == row

    @pytest.mark.parametrize("place", ["holder", "waiting"])
    @pytest.mark.parametrize(
        ("schedule", "is_settled"), [("hourly", True), ("minutely", False)], ids=["not decided again", "decided again"]
    )
    def test_a_fire_that_no_version_decides_any_more_leaves_its_slot_to_the_next(
        self, world: World, place: str, schedule: str, *, is_settled: bool
    ):
        now_put = replace(HOURLY if schedule == "hourly" else ALLOWING, overlap=Overlap.BUFFER_ONE)
        fire = a_fire(BUFFERING, version=2, fire_at=NOON + MINUTE)
        taken: dict[str, Any] = {place: name(fire), f"{place}_since": NOON}
        world.store(now_put, version=3, cuts=(Cut(2, NOON - HOUR), Cut(3, NOON - MINUTE)), **taken)

        assert decide(world, fire) is FireDecision.IS_OVER

        row = world.ledger.get(fire.job.key)
        assert (row is not None and row.state is State.SKIPPED) is is_settled
        assert decide(world, a_fire(now_put, version=3, fire_at=NOON + HOUR)) is (
            FireDecision.MAY_RUN if is_settled else FireDecision.IS_OVER
        )

    @pytest.mark.parametrize("row", [None, LedgerRow(state=State.RUNNING, attempt=1, lease_until=NOON)])
    def test_a_fire_whose_schedule_cannot_be_worked_out_comes_to_its_end_and_not_back(
        self, world: World, monkeypatch: pytest.MonkeyPatch, row: LedgerRow | None
    ):
        monkeypatch.setattr(firing, "STEPS_OF_A_WALK", 2)
        fire = a_fire(BUFFERING, version=2, fire_at=NOON + MINUTE)
        world.store(
            BUFFERING,
            version=3,
            cuts=(Cut(2, NOON - HOUR), Cut(3, NOON - MINUTE)),
            holder=name(fire),
            holder_since=NOON,
        )
        if row is not None:
            world.ledger.rows[fire.job.key] = row

        assert decide(world, fire) is (FireDecision.IS_OVER if row is None else FireDecision.MAY_RUN)
        assert world.row(fire.job).state is (State.SKIPPED if row is None else State.RUNNING)

    @pytest.mark.parametrize(("place", "status"), [("holder", Status.PAUSED), ("waiting", Status.DELETED)])
    def test_a_fire_of_a_schedule_that_is_stopped_leaves_its_slot_too(self, world: World, place: str, status: Status):
        fire = a_fire(BUFFERING, version=2, fire_at=NOON + MINUTE)
        taken: dict[str, Any] = {place: name(fire), f"{place}_since": NOON}
        world.store(BUFFERING, version=3, status=status, cuts=(Cut(2, NOON - HOUR), Cut(3, NOON)), **taken)

        assert decide(world, fire) is FireDecision.IS_OVER
        assert world.row(fire.job).state is State.SKIPPED

    def test_a_fire_of_a_paused_schedule_is_skipped_also_when_it_came_due_before(self, world: World):
        world.store(ALLOWING, version=2, status=Status.PAUSED, cuts=(Cut(1, NOON - HOUR), Cut(2, NOON)))
        fire = a_fire(ALLOWING, version=1)

        assert decide(world, fire) is FireDecision.IS_OVER

        row = world.row(fire.job)
        assert (row.state, row.error) == (State.SKIPPED, "paused: its schedule is paused")
        state = world.state(ALLOWING)
        assert (state.skips, state.last_skip) == ({SkipReason.PAUSED: 1}, (SkipReason.PAUSED, NOON))
        assert world.journal.counts == {"skipped": 1}

    @pytest.mark.parametrize("asked_of", [UNBOUND, -1, -2])
    def test_a_run_that_somebody_asked_for_runs_while_its_schedule_is_paused(self, world: World, asked_of: int):
        world.store(ALLOWING, version=2, born=1, status=Status.PAUSED)

        assert decide(world, a_fire(ALLOWING, version=asked_of)) is FireDecision.MAY_RUN

    def test_a_run_that_was_asked_of_a_schedule_that_was_deleted_since_is_not_that_of_its_successor(self, world: World):
        world.store(ALLOWING, version=5, born=4)
        fire = a_fire(ALLOWING, version=-3)

        assert decide(world, a_fire(ALLOWING, version=-4)) is FireDecision.MAY_RUN
        assert world.ledger.rows == {}
        assert decide(world, fire) is FireDecision.IS_OVER
        # No other message decides it, and the audit would take it for lost.
        assert world.row(fire.job).state is State.SKIPPED
        assert world.state(ALLOWING).skips == {}

    def test_such_a_run_is_reported_as_skipped_where_it_keeps_no_row_too(self, world: World):
        schedule = a_schedule(job=replace(a_schedule().job, delivery=Delivery.AT_LEAST_ONCE))
        world.store(schedule, version=5, born=4)

        assert decide(world, a_fire(schedule, version=-3)) is FireDecision.IS_OVER

        assert [(ending.outcome, ending.reason) for ending in world.trail.endings] == [
            (State.SKIPPED, "its schedule was deleted")
        ]
        assert world.journal.counts == {"skipped": 1}
        assert world.ledger.rows == {}
        assert world.state(schedule).skips == {}

    @pytest.mark.parametrize("version", [UNBOUND, -2, 1, 2])
    def test_nothing_of_a_deleted_schedule_runs(self, world: World, version: int):
        world.store(ALLOWING, version=2, born=1, status=Status.DELETED, cuts=(Cut(1, NOON - HOUR), Cut(2, NOON)))
        fire = a_fire(ALLOWING, version=version)

        assert decide(world, fire) is FireDecision.IS_OVER
        assert (world.row(fire.job).state, world.row(fire.job).error) == (
            State.SKIPPED,
            "paused: its schedule is deleted",
        )
        assert world.state(ALLOWING).skips == {SkipReason.PAUSED: 1}

    def test_nothing_of_a_schedule_whose_state_is_gone_runs(self, world: World):
        fire = a_fire(ALLOWING)

        assert decide(world, fire) is FireDecision.IS_OVER
        assert world.row(fire.job).state is State.SKIPPED

    @pytest.mark.parametrize("state", [State.RUNNING, State.RETRYING, *sorted(TERMINAL)])
    def test_a_fire_that_has_begun_or_ended_is_left_to_its_claim(self, world: World, state: State):
        world.store(ALLOWING, status=Status.PAUSED)
        fire = a_fire(ALLOWING)
        row = LedgerRow(state=state, attempt=1, owner="w", lease_until=NOON)
        world.ledger.rows[fire.job.key] = row

        assert decide(world, fire) is FireDecision.MAY_RUN
        assert world.row(fire.job) == row
        assert world.state(ALLOWING).skips == {}

    @pytest.mark.parametrize(
        "state",
        [{"status": Status.PAUSED}, {"version": 3, "cuts": (Cut(2, NOON - MINUTE), Cut(3, NOON - MINUTE))}],
        ids=["paused", "replaced"],
    )
    def test_a_fire_that_is_not_ledgered_is_dropped_without_a_row(self, world: World, state: dict[str, Any]):
        schedule = a_schedule(job=a_template(delivery=Delivery.AT_LEAST_ONCE))
        world.store(schedule, **state)

        assert decide(world, a_fire(schedule)) is FireDecision.IS_OVER
        assert world.ledger.rows == {}

    def test_the_end_to_start_chain_goes_on_after_a_skipped_fire(self, world: World):
        schedule = replace(WAITING, overlap=Overlap.FORBID)
        world.store(schedule, link=a_link(is_awaited=True), fire_count=1)
        a_run_in_the_way(world, schedule)

        assert decide(world, a_fire(schedule)) is FireDecision.IS_OVER

        assert world.state(schedule).link == a_link(NOON + 10 * MINUTE, index=1, previous_at=NOON)


class TestSlots:
    @pytest.mark.parametrize("schedule", OVERLAPPING, ids=lambda schedule: schedule.overlap)
    def test_a_free_slot_is_taken_before_the_run(self, world: World, schedule: Schedule):
        world.store(schedule)
        fire = a_fire(schedule)

        assert decide(world, fire) is FireDecision.MAY_RUN

        state = world.state(schedule)
        assert (state.holder, state.holder_since) == (name(fire), NOON)
        assert world.ledger.rows == {}

    @pytest.mark.parametrize("schedule", OVERLAPPING, ids=lambda schedule: schedule.overlap)
    def test_the_slot_is_one_s_own_when_its_message_comes_again(self, world: World, schedule: Schedule):
        world.store(schedule)
        fire = a_fire(schedule)
        decide(world, fire)
        world.clock.tick(HOUR)

        assert decide(world, fire) is FireDecision.MAY_RUN
        assert world.state(schedule).holder_since == NOON

    @pytest.mark.parametrize("state", sorted(TERMINAL))
    @pytest.mark.parametrize("schedule", OVERLAPPING, ids=lambda schedule: schedule.overlap)
    def test_the_slot_of_a_run_that_has_come_to_its_end_is_free(self, world: World, schedule: Schedule, state: State):
        world.store(schedule)
        holds_slot(world, schedule, an_other(schedule), row=LedgerRow(state=state))
        fire = a_fire(schedule)

        assert decide(world, fire) is FireDecision.MAY_RUN
        assert world.state(schedule).holder == name(fire)

    def test_runs_of_a_schedule_that_allows_overlap_take_no_slot(self, world: World):
        world.store(ALLOWING)
        holds_slot(world, ALLOWING, an_other(ALLOWING), row=LedgerRow(state=State.RUNNING, lease_until=NOON))

        assert decide(world, a_fire(ALLOWING)) is FireDecision.MAY_RUN
        assert world.state(ALLOWING).holder == name(an_other(ALLOWING))

    @pytest.mark.parametrize(
        "row",
        [
            LedgerRow(state=State.SCHEDULED, attempt=1, updated_at=NOON, due_at=NOON),
            LedgerRow(state=State.RETRYING, attempt=1, updated_at=NOON, due_at=NOON),
            LedgerRow(state=State.RUNNING, attempt=1, fence=1, lease_until=NOON, held="record"),
        ],
        ids=["released", "retrying", "running"],
    )
    @pytest.mark.parametrize("schedule", [FORBIDDING, BUFFERING], ids=lambda schedule: schedule.overlap)
    def test_a_run_that_nobody_carries_on_is_brought_to_its_end_and_its_slot_taken(
        self, world: World, schedule: Schedule, row: LedgerRow
    ):
        other, fire = takes_the_slot_of_a_silent_run(world, schedule, row=row)

        assert world.state(schedule).holder == name(fire)
        met = world.row(other.job)
        assert (met.state, met.fence, met.held) == (State.CANCELLED, row.fence, "")
        [ending] = world.trail.endings
        assert (str(ending.job_id), ending.outcome, ending.reason) == (name(other), State.CANCELLED, "abandoned")
        assert world.journal.counts["runs_abandoned"] == 1

    @pytest.mark.parametrize("schedule", [FORBIDDING, BUFFERING], ids=lambda schedule: schedule.overlap)
    def test_a_run_whose_target_is_heard_of_just_then_is_not_given_up(self, world: World, schedule: Schedule):
        world.store(schedule)
        other = an_other(schedule)
        holds_slot(world, schedule, other, row=LedgerRow(state=State.RUNNING, attempt=1, fence=1, lease_until=NOON))
        world.clock.tick(SILENCE + world.wheel.skew + MILLISECOND)

        fire = a_fire(schedule)
        assert fire.job.occurrence is not None

        assert (
            world.occurrences(ledger=heard_of(world, other)).decide(fire, fire.job.occurrence) is FireDecision.IS_OVER
        )
        assert (world.state(schedule).holder, world.row(other.job).state) == (name(other), State.RUNNING)
        assert (world.events("run_abandoned"), world.trail.endings[:-1]) == ([], [])

    @pytest.mark.parametrize("schedule", OVERLAPPING, ids=lambda schedule: schedule.overlap)
    def test_the_slot_of_a_run_whose_row_is_gone_is_free_and_nothing_is_written_of_it(
        self, world: World, schedule: Schedule
    ):
        _, fire = takes_the_slot_of_a_silent_run(world, schedule, row=None)

        assert (world.state(schedule).holder, world.ledger.rows) == (name(fire), {})
        assert (world.events("run_abandoned"), world.trail.endings) == ([], [])

    def test_whoever_has_the_slot_and_has_not_begun_says_so_again(self, world: World):
        world.store(FORBIDDING)
        fire, later = a_fire(FORBIDDING), a_fire(FORBIDDING, fire_at=NOON + SILENCE)
        for _ in range(SILENCE // SAID_AGAIN + 2):
            assert decide(world, fire) is FireDecision.MAY_RUN
            world.clock.tick(SAID_AGAIN)

        assert decide(world, later) is FireDecision.IS_OVER
        assert world.state(FORBIDDING).holder == name(fire)

    def test_a_run_that_may_yet_be_rescued_keeps_its_slot(self, world: World):
        world.store(FORBIDDING)
        other = an_other(FORBIDDING)
        holds_slot(world, FORBIDDING, other, row=LedgerRow(state=State.RUNNING, fence=1, lease_until=NOON))
        world.clock.tick(SILENCE + world.wheel.skew)

        assert decide(world, a_fire(FORBIDDING)) is FireDecision.IS_OVER
        assert world.state(FORBIDDING).holder == name(other)
        assert not world.row(other.job).cancel_requested

    def test_a_slot_that_somebody_else_takes_first_is_theirs(self, world: World):
        world.store(FORBIDDING)
        other = an_other(FORBIDDING)
        world.schedules = Racing(
            world.schedules, lambda rows: rows.take_slot(FORBIDDING.uid, name(other), seen=rows.met, now=NOON)
        )
        fire = a_fire(FORBIDDING)

        assert decide(world, fire) is FireDecision.IS_OVER

        assert world.state(FORBIDDING).holder == name(other)
        assert world.row(fire.job).state is State.SKIPPED

    def test_a_schedule_that_is_deleted_meanwhile_runs_no_more(self, world: World):
        world.store(FORBIDDING)
        world.schedules = Racing(world.schedules, lambda rows: rows.rows.clear())
        fire = a_fire(FORBIDDING)

        assert decide(world, fire) is FireDecision.IS_OVER
        assert world.row(fire.job).error == "paused: its schedule is deleted"

    def test_a_message_whose_slot_keeps_changing_hands_comes_back(self, world: World):
        world.store(REPLACING)
        others = iter([an_other(REPLACING, at=NOON - number * SECOND) for number in range(1, 9)])
        world.schedules = Racing(
            world.schedules,
            lambda rows: rows.take_slot(REPLACING.uid, name(next(others)), seen=rows.met, now=NOON),
            times=9,
        )

        with pytest.raises(NotPlaced, match="kept changing hands"):
            decide(world, a_fire(REPLACING))


class TestForbid:
    @pytest.mark.parametrize(
        "row",
        [
            None,
            LedgerRow(state=State.SCHEDULED, updated_at=NOON),
            LedgerRow(state=State.RUNNING, lease_until=NOON + MINUTE),
            LedgerRow(state=State.RETRYING, updated_at=NOON, due_at=NOON + HOUR),
        ],
        ids=["not claimed yet", "released", "running", "retrying"],
    )
    def test_a_fire_that_meets_another_run_is_skipped(self, world: World, row: LedgerRow | None):
        world.store(FORBIDDING)
        other = an_other(FORBIDDING)
        holds_slot(world, FORBIDDING, other, row=row)
        fire = a_fire(FORBIDDING)

        assert decide(world, fire) is FireDecision.IS_OVER

        met = world.row(fire.job)
        assert (met.state, met.error) == (State.SKIPPED, f"overlap: {name(other)} has not come to its end")
        state = world.state(FORBIDDING)
        assert (state.holder, state.skips) == (name(other), {SkipReason.OVERLAP: 1})
        assert world.events("fire_skipped") == [{"job_id": name(fire), "reason": "overlap"}]


class TestBufferOne:
    def test_a_fire_that_meets_another_run_waits_for_its_end_and_is_not_claimed(self, world: World):
        other, fire = meets_a_run(world, BUFFERING)

        assert decide(world, fire) is FireDecision.IS_OVER

        assert world.ready.sent == [replace(fire, due_at=NOON + 2 * SECOND)]
        state = world.state(BUFFERING)
        assert (state.holder, state.waiting, state.waiting_since) == (name(other), name(fire), NOON)
        assert (state.skips, world.ledger.get(fire.job.key)) == ({}, None)

    def test_it_asks_again_after_a_quarter_of_what_it_has_waited(self, world: World):
        _, fire = meets_a_run(world, BUFFERING)
        decide(world, fire)
        world.clock.tick(40 * SECOND)

        assert decide(world, fire) is FireDecision.IS_OVER

        assert world.ready.sent[-1] == replace(fire, due_at=NOON + 50 * SECOND)
        assert world.state(BUFFERING).waiting == name(fire)

    def test_a_second_fire_that_would_wait_is_skipped(self, world: World):
        world.store(BUFFERING)
        a_run_in_the_way(world, BUFFERING)
        first, second = a_fire(BUFFERING), a_fire(BUFFERING, fire_at=NOON + SECOND)
        decide(world, first)

        assert decide(world, second) is FireDecision.IS_OVER

        met = world.row(second.job)
        assert (met.state, met.error) == (State.SKIPPED, f"buffer_full: {name(first)} waits already")
        state = world.state(BUFFERING)
        assert (state.waiting, state.skips) == (name(first), {SkipReason.BUFFER_FULL: 1})

    def test_the_fire_that_waits_runs_when_the_other_has_ended(self, world: World):
        other, fire = meets_a_run(world, BUFFERING)
        decide(world, fire)
        world.ledger.rows[other.job.key] = LedgerRow(state=State.SUCCEEDED)

        assert decide(world, fire) is FireDecision.MAY_RUN

        state = world.state(BUFFERING)
        assert (state.holder, state.waiting, state.waiting_since) == (name(fire), "", None)

    def test_a_fire_that_waits_long_is_not_taken_for_abandoned(self, world: World):
        world.store(BUFFERING)
        other = a_run_in_the_way(world, BUFFERING)
        first = a_fire(BUFFERING)
        for _ in range(60):
            assert decide(world, first) is FireDecision.IS_OVER
            world.clock.tick(SAID_AGAIN)
            world.ledger.rows[other.job.key] = a_running_row(world)

        second = a_fire(BUFFERING, fire_at=world.clock.now())
        assert decide(world, second) is FireDecision.IS_OVER

        assert world.row(second.job).state is State.SKIPPED
        assert world.ledger.get(first.job.key) is None
        assert world.state(BUFFERING).waiting == name(first)

    def test_the_place_of_a_fire_that_nobody_carries_on_is_taken_and_it_runs_no_more(self, world: World):
        world.store(BUFFERING)
        other = a_run_in_the_way(world, BUFFERING)
        lost, fire = a_fire(BUFFERING), a_fire(BUFFERING, fire_at=NOON + 2 * SILENCE)
        decide(world, lost)
        world.clock.tick(2 * SILENCE)
        world.ledger.rows[other.job.key] = a_running_row(world)

        assert decide(world, fire) is FireDecision.IS_OVER

        assert world.state(BUFFERING).waiting == name(fire)
        assert world.ready.sent[-1].job == fire.job
        assert world.ledger.get(lost.job.key) is None
        assert decide(world, lost) is FireDecision.IS_OVER
        assert world.row(lost.job).state is State.SKIPPED

    def test_the_place_of_a_fire_that_was_cancelled_is_free(self, world: World):
        world.store(BUFFERING)
        a_run_in_the_way(world, BUFFERING)
        cancelled, fire = a_fire(BUFFERING), a_fire(BUFFERING, fire_at=NOON + SECOND)
        decide(world, cancelled)
        world.ledger.cancel(job_id_of(cancelled.job), owner="api", now=NOON)

        assert decide(world, fire) is FireDecision.IS_OVER
        assert world.state(BUFFERING).waiting == name(fire)

    def test_a_place_that_somebody_else_takes_first_is_theirs(self, world: World):
        world.store(BUFFERING)
        a_run_in_the_way(world, BUFFERING)
        quick, fire = a_fire(BUFFERING, fire_at=NOON - SECOND), a_fire(BUFFERING)
        world.schedules = Racing(
            world.schedules, lambda rows: rows.wait_for_slot(BUFFERING.uid, name(quick), seen=rows.met, now=NOON)
        )

        assert decide(world, fire) is FireDecision.IS_OVER

        assert world.row(fire.job).state is State.SKIPPED
        assert world.state(BUFFERING).waiting == name(quick)

    def test_a_fire_that_has_expired_while_it_waited_is_left_to_its_claim(self, world: World):
        schedule = replace(BUFFERING, max_lateness=MINUTE)
        _, fire = meets_a_run(world, schedule)
        decide(world, fire)
        world.clock.tick(MINUTE)

        assert decide(world, fire) is FireDecision.MAY_RUN
        assert world.state(schedule).holder != name(fire)

    def test_a_fire_that_cannot_be_placed_again_comes_back(self, world: World):
        world.store(BUFFERING)
        a_run_in_the_way(world, BUFFERING)
        world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)

        with pytest.raises(NotPlaced, match="throttled"):
            decide(world, a_fire(BUFFERING))

    def test_a_fire_that_finds_the_slot_free_does_not_overtake_the_one_that_waits_for_it(self, world: World):
        world.store(BUFFERING)
        other = a_run_in_the_way(world, BUFFERING)
        first, second = a_fire(BUFFERING), a_fire(BUFFERING, fire_at=NOON + SECOND)
        decide(world, first)
        world.ledger.rows[other.job.key] = LedgerRow(state=State.SUCCEEDED)

        assert decide(world, second) is FireDecision.IS_OVER
        assert decide(world, first) is FireDecision.MAY_RUN

        assert world.row(second.job).error == f"buffer_full: {name(first)} waits already"
        state = world.state(BUFFERING)
        assert (state.holder, state.waiting) == (name(first), "")

    def test_a_request_that_is_repeated_is_the_run_that_has_the_slot(self, world: World):
        world.store(BUFFERING)
        first, again = a_fire(BUFFERING), a_fire(BUFFERING)
        again = replace(again, job=replace(again.job, scheduled_at=NOON + SECOND))
        assert decide(world, first) is FireDecision.MAY_RUN

        assert decide(world, again) is FireDecision.MAY_RUN
        assert world.state(BUFFERING).holder == name(first)

    def test_a_request_that_is_repeated_is_the_fire_that_waits(self, world: World):
        world.store(BUFFERING)
        a_run_in_the_way(world, BUFFERING)
        first, again = a_fire(BUFFERING), a_fire(BUFFERING)
        again = replace(again, job=replace(again.job, scheduled_at=NOON + SECOND))
        decide(world, first)

        assert decide(world, again) is FireDecision.IS_OVER

        assert world.ledger.get(first.job.key) is None
        assert world.state(BUFFERING).skips == {}


class TestReplace:
    def test_a_fire_takes_the_place_of_a_run_and_asks_it_to_end(self, world: World):
        other, fire = meets_a_run(world, REPLACING)

        assert decide(world, fire) is FireDecision.MAY_RUN

        met = world.row(other.job)
        assert (met.state, met.cancel_requested) == (State.RUNNING, True)
        state = world.state(REPLACING)
        assert (state.holder, state.skips) == (name(fire), {})
        assert world.events("run_replaced") == [{"job_id": name(other)}]

    @pytest.mark.parametrize(
        "row",
        [None, LedgerRow(state=State.SCHEDULED, updated_at=NOON), LedgerRow(state=State.RETRYING, updated_at=NOON)],
        ids=["not claimed yet", "released", "retrying"],
    )
    def test_a_run_that_does_not_run_now_is_cancelled_and_counted_as_replaced(
        self, world: World, row: LedgerRow | None
    ):
        world.store(REPLACING)
        other = an_other(REPLACING)
        holds_slot(world, REPLACING, other, row=row)
        fire = a_fire(REPLACING)

        assert decide(world, fire) is FireDecision.MAY_RUN

        assert world.row(other.job).state is State.CANCELLED
        state = world.state(REPLACING)
        assert (state.holder, state.skips) == (name(fire), {SkipReason.REPLACED: 1})
        assert state.last_skip == (SkipReason.REPLACED, other.job.scheduled_at)

    def test_a_fire_that_comes_after_a_later_one_is_skipped(self, world: World):
        world.store(REPLACING)
        later = an_other(REPLACING, at=NOON + SECOND)
        holds_slot(world, REPLACING, later, row=a_running_row(world))
        fire = a_fire(REPLACING)

        assert decide(world, fire) is FireDecision.IS_OVER

        assert not world.row(later.job).cancel_requested
        assert world.row(fire.job).error == f"replaced: {name(later)} is later"
        assert world.state(REPLACING).skips == {SkipReason.REPLACED: 1}

    @pytest.mark.parametrize(
        ("rival_at", "admission"),
        [(NOON + SECOND, FireDecision.IS_OVER), (NOON - SECOND, FireDecision.MAY_RUN)],
        ids=["a later one", "an earlier one"],
    )
    def test_of_two_that_take_a_run_s_place_at_the_same_time_the_later_runs(
        self, world: World, rival_at: datetime, admission: FireDecision
    ):
        world.store(REPLACING)
        other = a_run_in_the_way(world, REPLACING)
        fire, rival = a_fire(REPLACING), a_fire(REPLACING, fire_at=rival_at)
        world.schedules = Racing(
            world.schedules, lambda rows: rows.take_slot(REPLACING.uid, name(rival), seen=rows.met, now=NOON)
        )

        assert decide(world, fire) is admission

        winner = fire if admission is FireDecision.MAY_RUN else rival
        assert world.state(REPLACING).holder == name(winner)
        assert world.row(other.job).cancel_requested
        loser = world.ledger.get((rival if winner is fire else fire).job.key)
        assert loser is not None
        assert loser.state in (State.CANCELLED, State.SKIPPED)

    def test_a_run_that_ends_while_it_is_being_replaced_keeps_its_end(self, world: World):
        world.store(REPLACING)
        other = a_run_in_the_way(world, REPLACING)

        class Ending(type(world.ledger)):
            def cancel(self, *args: Any, **options: Any) -> Any:
                self.rows[other.job.key] = LedgerRow(state=State.SUCCEEDED)
                return super().cancel(*args, **options)

        ledger = Ending(skew=world.wheel.skew)
        ledger.rows = world.ledger.rows
        fire = a_fire(REPLACING)
        assert fire.job.occurrence is not None

        assert world.occurrences(ledger=ledger).decide(fire, fire.job.occurrence) is FireDecision.MAY_RUN
        assert world.row(other.job).state is State.SUCCEEDED
        assert world.state(REPLACING).skips == {}

    def test_a_run_whose_row_keeps_changing_brings_the_message_back(self, world: World):
        world.store(REPLACING)
        other = a_run_in_the_way(world, REPLACING)

        class Busy(type(world.ledger)):
            def request_cancel(self, *args: Any, **options: Any) -> Any:
                row = self.rows[other.job.key]
                self.rows[other.job.key] = replace(row, fence=row.fence + 1)
                return super().request_cancel(*args, **options)

        ledger = Busy(skew=world.wheel.skew)
        ledger.rows = world.ledger.rows
        fire = a_fire(REPLACING)
        assert fire.job.occurrence is not None

        with pytest.raises(NotPlaced, match="kept changing"):
            world.occurrences(ledger=ledger).decide(fire, fire.job.occurrence)


class TestFailures:
    def test_a_schedule_is_paused_when_so_many_runs_in_a_row_have_failed(self, world: World):
        world.store(PAUSING, link=a_link(NOON + HOUR))
        fires = [a_fire(PAUSING, fire_at=NOON + number * MINUTE) for number in range(3)]

        for fire in fires[:2]:
            failing(world, fire)
        assert world.state(PAUSING).status is Status.ACTIVE
        failing(world, fires[2])

        state = world.state(PAUSING)
        assert (state.status, state.version, state.link) == (Status.PAUSED, 2, None)
        assert state.note == f"paused after 3 failures in a row, the last of {fires[2].job.identity}"
        stored, _ = world.schedules.get(PAUSING.uid)
        assert stored is not None
        assert (stored.status, stored.version, stored.schedule) == (Status.PAUSED, 2, PAUSING)
        assert world.journal.counts == {"schedules_paused": 1}

    def test_a_failure_that_is_noted_again_counts_once(self, world: World):
        world.store(PAUSING)

        for _ in range(5):
            failing(world, a_fire(PAUSING))

        assert world.state(PAUSING).status is Status.ACTIVE

    def test_a_success_begins_the_count_anew(self, world: World):
        world.store(PAUSING)
        for number in range(2):
            failing(world, a_fire(PAUSING, fire_at=NOON + number * MINUTE))

        ended(world, a_fire(PAUSING, fire_at=NOON + 2 * MINUTE), Event.SUCCEED)
        for number in range(3, 5):
            failing(world, a_fire(PAUSING, fire_at=NOON + number * MINUTE))

        assert world.state(PAUSING).status is Status.ACTIVE
        failing(world, a_fire(PAUSING, fire_at=NOON + 5 * MINUTE))
        assert world.state(PAUSING).status is Status.PAUSED

    @pytest.mark.parametrize("event", [Event.FAIL, Event.BURY, Event.EXPIRE, Event.WITHDRAW])
    def test_an_end_that_is_no_success_forgets_no_failure(self, world: World, event: Event):
        world.store(PAUSING)
        failing(world, a_fire(PAUSING))

        ended(world, a_fire(PAUSING, fire_at=NOON + MINUTE), event)

        assert len(world.state(PAUSING).failures) == 1

    def test_a_schedule_that_is_not_to_be_paused_is_not_even_looked_at(self, world: World):
        failing(world, a_fire(ALLOWING))
        ended(world, a_fire(ALLOWING), Event.SUCCEED)

    def test_a_pause_that_somebody_else_made_keeps_its_note(self, world: World):
        world.store(PAUSING, status=Status.PAUSED, note="for the night")

        for number in range(4):
            failing(world, a_fire(PAUSING, fire_at=NOON + number * MINUTE))

        state = world.state(PAUSING)
        assert (state.note, state.version) == ("for the night", 1)

    def test_failures_of_a_schedule_that_is_gone_pause_nothing(self, world: World):
        for number in range(4):
            failing(world, a_fire(PAUSING, fire_at=NOON + number * MINUTE))

        assert world.schedules.rows == {}


class TestEndToStart:
    @pytest.mark.parametrize("event", [Event.SUCCEED, Event.FAIL, Event.BURY, Event.EXPIRE, Event.WITHDRAW])
    def test_the_next_fire_is_placed_when_the_run_has_ended(self, world: World, event: Event):
        world.store(WAITING, link=a_link(is_awaited=True), fire_count=1, alarm_at=NOON + 10 * MINUTE)
        fire = a_fire(WAITING)
        world.ledger.rows[fire.job.key] = LedgerRow(state=State.SUCCEEDED, updated_at=NOON + 3 * MINUTE)
        world.clock.tick(3 * MINUTE)

        ended(world, fire, event)

        link = a_link(NOON + 13 * MINUTE, index=1, previous_at=NOON)
        assert world.state(WAITING).link == link
        assert [alarm.link for alarm in world.timers.alarms] == [link]

    def test_a_run_that_was_asked_for_carries_no_chain_on(self, world: World):
        world.store(WAITING, link=a_link(is_awaited=True), fire_count=1)
        fire = a_fire(WAITING)
        occurrence = fire.job.occurrence
        assert occurrence is not None

        extra = replace(fire, job=replace(fire.job, occurrence=replace(occurrence, is_end_to_start=False)))
        world.ends().runs.ended(extra, State.SUCCEEDED)

        assert world.timers.alarms == []


class Racing(InMemoryScheduleStore):
    """A store in which somebody else is quicker, so many times, just before a slot is taken or waited for."""

    def __init__(self, store: InMemoryScheduleStore, quick: Callable[[Any], object], *, times: int = 1) -> None:
        self.__dict__.update(store.__dict__)
        self._quick = quick
        self._left = times
        self.met: Any = None

    def take_slot(self, key: str, identity: str, **options: Any) -> bool:
        self._race(key)
        return super().take_slot(key, identity, **options)

    def wait_for_slot(self, key: str, identity: str, **options: Any) -> bool:
        self._race(key)
        return super().wait_for_slot(key, identity, **options)

    def _race(self, key: str) -> None:
        if self._left:
            left, self._left = self._left - 1, 0
            self.met = self.state(key)
            self._quick(self)
            self._left = left


def decide(world: World, timer: Timer) -> FireDecision:
    assert timer.job.occurrence is not None
    return world.occurrences().decide(timer, timer.job.occurrence)


def failing(world: World, timer: Timer) -> None:
    world.ends().runs.failing(timer)


def ended(world: World, timer: Timer, event: Event) -> None:
    world.ends().runs.ended(timer, target(event))


def a_fire(schedule: Schedule, **options: Any) -> Timer:
    return an_occurrence_timer(schedule, **options)


def an_other(schedule: Schedule, *, at: datetime = NOON - MINUTE) -> Timer:
    """The fire before."""
    return an_occurrence_timer(schedule, fire_at=at)


def name(timer: Timer) -> str:
    """What a run is called in the slot."""
    return str(job_id_of(timer.job))


def holds_slot(world: World, schedule: Schedule, timer: Timer, *, row: LedgerRow | None) -> None:
    """Let a run have the slot since noon; row: of its ledger."""
    assert world.schedules.take_slot(schedule.uid, name(timer), seen=world.state(schedule), now=NOON)
    if row is not None:
        world.ledger.rows[timer.job.key] = row


def a_run_in_the_way(world: World, schedule: Schedule) -> Timer:
    """The fire before, which runs."""
    other = an_other(schedule)
    holds_slot(world, schedule, other, row=a_running_row(world))
    return other


def meets_a_run(world: World, schedule: Schedule) -> tuple[Timer, Timer]:
    """The fire before, which runs, and the one that meets it."""
    world.store(schedule)
    return a_run_in_the_way(world, schedule), a_fire(schedule)


def a_running_row(world: World) -> LedgerRow:
    return LedgerRow(state=State.RUNNING, attempt=1, fence=1, owner="w", lease_until=world.clock.now() + MINUTE)


def heard_of(world: World, run: Timer) -> InMemoryLedger:
    """The same ledger, in which the target of a run is heard of right before the run is given up."""

    class HeardOf(InMemoryLedger):
        def give_up(self, job_id: Any, **options: Any) -> Any:
            now = world.clock.now()
            self.extend(job_id_of(run.job), fence=1, lease_until=now + HOUR, now=now, needs_id=False)
            return super().give_up(job_id, **options)

    ledger = HeardOf(skew=world.wheel.skew)
    ledger.rows = world.ledger.rows
    return ledger


def takes_the_slot_of_a_silent_run(world: World, schedule: Schedule, *, row: LedgerRow | None) -> tuple[Timer, Timer]:
    """The run of which nothing was heard for long, and the fire that may run."""
    world.store(schedule)
    other, fire = an_other(schedule), a_fire(schedule)
    holds_slot(world, schedule, other, row=row)
    world.clock.tick(SILENCE + world.wheel.skew + MILLISECOND)
    assert decide(world, fire) is FireDecision.MAY_RUN
    return other, fire
