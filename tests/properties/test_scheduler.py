"""The whole scheduler under faults keeps every promise; see `tests.properties.machine`.

Then the promises are broken one by one in the code, to see that this machine notices.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.schedules.rules import CronRule
from testkit.builders import a_schedule, a_submission, every
from testkit.world.expected import fires_between
from testkit.world.process import HELD, Conditions, Fate, Fault
from testkit.world.world import World
from tests.properties import histories, mutations, schedule_histories, schedule_mutations
from tests.properties.machine import SCHEDULER_SETTINGS, Scheduler
from tests.properties.schedule_machine import SCHEDULES_SETTINGS, Schedules

TestScheduler = Scheduler.TestCase
TestScheduler.settings = SCHEDULER_SETTINGS
TestSchedules = Schedules.TestCase
TestSchedules.settings = SCHEDULES_SETTINGS


class FailingAttempts(Scheduler):
    @rule(at_call=st.integers(1, 6))
    def die_while_an_attempt_fails(self, at_call) -> None:
        """Among the calls that follow the target's answer."""
        self.world.submit(a_submission(due_at=self.world.clock.instant, target="https://example.com/broken"))
        self.world.work(Conditions(fault=Fault(Fate.DIES_BEFORE, at_call=at_call)))


class OpposedClocks(Scheduler):
    @rule(seconds=st.integers(9, 17))
    def work_on_both_sides(self, seconds) -> None:
        """A slow target's worker has a clock that is behind; a message comes twice, to one whose clock is ahead."""
        side = self.world.wheel.skew / 2
        self.world.submit(a_submission(due_at=self.world.clock.instant - side))
        behind = self.world.work(Conditions(ahead=-side, is_held=True))
        if behind:
            for lane in range(len(behind.lanes) - 1):
                behind.go_on(lane, 2)
            self.world.time_passes(seconds * SECOND)
            self.world.redeliver()
            self.world.work(Conditions(ahead=side))
            self.began(behind)


class DyingWorkers(Scheduler):
    @rule()
    def die_when_another_has_waited(self) -> None:
        """Of the messages of its jobs only that one is left."""
        self.world.submit(a_submission(due_at=self.world.clock.instant))
        worker = self.world.work(HELD)
        if worker:
            for lane in range(len(worker.lanes) - 1):
                worker.go_on(lane, 1)
            self.world.redeliver()
            self.world.work()
            worker.kill()


@pytest.mark.parametrize(
    ("mutation", "machine", "violation"),
    [
        (mutations.settles_before_it_places, FailingAttempts, "lost"),
        (mutations.defers_by_acknowledging, DyingWorkers, "lost"),
        (mutations.leases_without_skew, OpposedClocks, "two live runs"),
        (mutations.forgets_before_its_messages, Scheduler, "ran again after 13 days"),
        (mutations.has_one_cursor_for_all_classes, Scheduler, "lost"),
        (schedule_mutations.records_before_it_places, Schedules, "recorded an alarm that is not placed"),
        (schedule_mutations.places_one_fire_and_no_alarm_for_one_that_is_near, Schedules, "nobody continues"),
        (schedule_mutations.keeps_the_version_of_what_changes, Schedules, "extra: |lost: "),
        (schedule_mutations.runs_what_is_stale, Schedules, "a stale fire ran"),
        (schedule_mutations.admits_whatever_comes, Schedules, "ran after it was"),
        (schedule_mutations.takes_each_run_for_ended, Schedules, "follows the end of nothing"),
        (schedule_mutations.takes_whatever_is_late_for_missed, Schedules, "was dropped at"),
    ],
    ids=lambda given: given.__name__ if callable(given) else "",
)
def test_the_machine_notices_a_scheduler_that(mutation, machine, violation, monkeypatch) -> None:
    class Mutant(machine):
        lambdas = mutation(monkeypatch)

    with pytest.raises(AssertionError, match=violation):
        run_state_machine_as_test(Mutant, settings=settings(SCHEDULER_SETTINGS, report_multiple_bugs=False))


HISTORIES = [
    (histories.a_late_scanner_comes_back, mutations.checkpoints_without_its_epoch, "a cursor went back"),
    (histories.two_workers_rescue_one_job, mutations.rescues_whatever_runs, "two live runs"),
    (histories.a_zombie_settles, mutations.settles_without_its_fence, "two live runs"),
    (histories.a_far_write_stalls, mutations.places_without_looking_back, "lost"),
    (histories.a_fast_clock_sends, mutations.runs_what_comes_early, "early"),
    (histories.a_client_asks_again_for_another_time, mutations.registers_after_it_places, "two ids"),
    (histories.a_client_asks_again, mutations.places_no_replay, "lost"),
    (histories.a_retry_is_refused, mutations.ignores_what_was_not_placed, "lost"),
    (histories.a_running_job_is_asked_to_stop, mutations.retries_what_should_stop, "tried again after its cancel"),
    (histories.a_job_kills_its_workers, mutations.rescues_without_end, "run without end"),
    (histories.a_job_kills_its_company, mutations.runs_what_came_back_with_the_rest, "buried without deaths"),
    (histories.a_submission_at_the_guard_is_cancelled, mutations.cancels_too_late, "ran after its cancel"),
    (histories.a_write_lands_behind_a_cancel, mutations.cancels_what_is_fresh, "ran after its cancel"),
    (histories.the_answer_to_a_claim_is_lost, mutations.forgets_its_token, "waits for its own lease"),
    (histories.a_job_fails_for_good, mutations.fails_without_a_letter, "failed without a dead letter"),
    (histories.a_started_job_comes_back, mutations.starts_again_what_has_started, "at most once ran again"),
    (histories.a_claimed_job_is_cancelled, mutations.cancels_what_runs, "ran after its cancel"),
]

SCHEDULE_HISTORIES = [
    (
        schedule_histories.a_schedule_comes_to_its_end,
        schedule_mutations.gives_nothing_back,
        "the sums of schedules are",
    ),
    (schedule_histories.a_scanner_dies_when_it_records, schedule_mutations.records_before_it_places, "lost"),
    (schedule_histories.the_alarm_of_a_dead_scanner_rings_again, schedule_mutations.drops_what_it_loses, "lost"),
    (
        schedule_histories.a_scanner_dies_when_it_records,
        schedule_mutations.records_its_alarm_before_it_places_it,
        "recorded an alarm that is not placed",
    ),
    (
        schedule_histories.fires_are_nearer_than_the_far_ring,
        schedule_mutations.places_one_fire_and_no_alarm_for_one_that_is_near,
        "nobody continues",
    ),
    (
        schedule_histories.a_change_leaves_messages_behind,
        schedule_mutations.keeps_the_version_of_what_changes,
        "extra: no rule names",
    ),
    (schedule_histories.a_change_leaves_messages_behind, schedule_mutations.runs_what_is_stale, "a stale fire ran"),
    (schedule_histories.a_pause_leaves_messages_behind, schedule_mutations.admits_whatever_comes, "ran after it was"),
    (schedule_histories.a_delete_leaves_messages_behind, schedule_mutations.runs_what_is_stale, "a stale fire ran"),
    (
        schedule_histories.two_fires_find_the_slot_free,
        schedule_mutations.takes_the_slot_from_whoever_has_it,
        "two live runs",
    ),
    (schedule_histories.a_fire_is_skipped, schedule_mutations.skips_without_a_ledger_row, "lost"),
    (schedule_histories.a_fire_waits, schedule_mutations.waits_without_a_message, "lost"),
    (
        schedule_histories.a_run_is_replaced,
        schedule_mutations.retries_what_should_stop,
        "tried again after it was replaced",
    ),
    (
        schedule_histories.a_run_outlasts_its_interval,
        schedule_mutations.takes_each_run_for_ended,
        "follows the end of nothing",
    ),
    (
        schedule_histories.a_worker_dies_after_a_change,
        schedule_mutations.finishes_what_another_version_began,
        "a stale fire ran",
    ),
    (
        schedule_histories.a_run_with_the_slot_is_overtaken_by_a_change,
        schedule_mutations.drops_what_has_the_slot,
        "skipped for a run that there is not",
    ),
    (
        schedule_histories.fires_were_missed_before_a_change,
        schedule_mutations.changes_before_it_has_caught_up,
        "lost: a change of",
    ),
    (schedule_histories.a_fire_comes_back_after_a_change, schedule_mutations.forgets_what_has_run, "max_runs exceeded"),
    (schedule_histories.an_alarm_rings_late, schedule_mutations.takes_whatever_is_late_for_missed, "was dropped at"),
    (schedule_histories.a_definition_is_read_too_early, schedule_mutations.trusts_what_it_reads, "nobody continues"),
    (
        schedule_histories.a_run_without_a_ledger_row_is_to_be_alone,
        schedule_mutations.lets_runs_without_a_row_have_the_slot,
        "lost",
    ),
]


RULES = [
    *(every(seconds=seconds) for seconds in (15, 60, 100, 150, 154, 155, 156, 160, 300, 400)),
    *(CronRule(expression) for expression in ("* * * * *", "*/2 * * * *", "*/5 * * * *")),
]
"""Below the guard and above it."""


@pytest.mark.parametrize("seconds", [0, 13, 31, 59])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_without_faults_and_without_the_sweep_every_fire_is_on_time(rule, seconds) -> None:
    world = World(audits=False)
    world.clock.tick(seconds * SECOND)
    since = world.clock.instant
    schedule_histories.put(world, rule=rule)
    world.live_on(20 * schedule_histories.MINUTE, heals=False)
    world.look()
    calls = world.promises.schedules.fires.calls_of(schedule_histories.KEY)
    assert list(calls) == list(fires_between(a_schedule(rule=rule), since + MILLISECOND, world.clock.instant))
    assert all(timedelta(0) <= called_at - fire_at <= SECOND for fire_at, called_at in calls.items())


@pytest.mark.parametrize("seconds", [15, 60, 150, 155, 400])
def test_without_faults_and_without_the_sweep_each_run_follows_the_end_of_the_one_before(seconds) -> None:
    world = World(audits=False)
    due_at = world.clock.instant + seconds * SECOND
    schedule_histories.put(world, rule=every(seconds=seconds, from_end=True))
    world.live_on(20 * schedule_histories.MINUTE, heals=False)
    world.look()
    for called_at in world.promises.schedules.fires.calls_of(schedule_histories.KEY).values():
        assert timedelta(0) <= called_at - due_at <= SECOND
        due_at = called_at + seconds * SECOND
    assert due_at > world.clock.instant - SECOND


def live_through(history, **options) -> None:
    world = World(audits=False, **options)
    try:
        history(world)
        world.promises.check_nothing_lost()
        world.check()
        world.come_to_an_end()
    finally:
        world.end()


@pytest.mark.parametrize(
    "history",
    [
        *dict.fromkeys(history for history, _, _ in (*HISTORIES, *SCHEDULE_HISTORIES)),
        histories.three_jobs_kill_their_company,
    ],
    ids=lambda history: history.__name__,
)
def test_every_promise_is_kept_when(history) -> None:
    live_through(history)


@pytest.mark.parametrize(
    ("history", "mutation", "violation"),
    [*HISTORIES, *SCHEDULE_HISTORIES],
    ids=lambda given: given.__name__ if callable(given) else "",
)
def test_a_promise_is_broken_when(history, mutation, violation, monkeypatch) -> None:
    with pytest.raises(AssertionError, match=violation):
        live_through(history, lambdas=mutation(monkeypatch))


@pytest.mark.parametrize(
    "history",
    dict.fromkeys(history for history, _, _ in SCHEDULE_HISTORIES),
    ids=lambda history: history.__name__,
)
def test_a_sweep_that_carries_on_what_goes_on_anyway_is_harmless_when(history, monkeypatch) -> None:
    live_through(history, lambdas=schedule_mutations.heals_whatever_goes_on(monkeypatch))
