"""Schedules under faults keep every promise; see `tests.properties.schedule_machine`. Then what breaks them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from functions.domain.instants import MILLISECOND, SECOND
from functions.domain.schedules.rules import CronRule
from testkit.builders import a_schedule, every
from testkit.world.expected import fires_between
from testkit.world.world import World
from tests.properties import schedule_histories as histories
from tests.properties import schedule_mutations as mutations
from tests.properties.lives import (
    broken_by_each_mutation,
    in_each_history,
    kept_in_each_history,
    live_through,
    name_of,
    run_briefly,
    run_mutant,
)
from tests.properties.schedule_machine import SCHEDULES_SETTINGS, Schedules

TestSchedules = pytest.mark.long(Schedules.TestCase)
TestSchedules.settings = SCHEDULES_SETTINGS


def test_every_promise_is_kept_in_the_first_histories() -> None:
    run_briefly(Schedules)


@pytest.mark.parametrize(
    ("mutation", "violation"),
    [
        (mutations.records_before_it_places, "recorded an alarm that is not placed"),
        (mutations.places_one_fire_and_no_alarm_for_one_that_is_near, "nobody continues"),
        (mutations.keeps_the_version_of_what_changes, "extra: |lost: |counted .* gaps of"),
        (mutations.runs_what_is_stale, "a stale fire ran"),
        (mutations.counts_what_lies_between_two_versions, "counted .* gaps of"),
        (mutations.admits_whatever_comes, "ran after it was"),
        (mutations.takes_each_run_for_ended, "follows the end of nothing"),
        pytest.param(mutations.takes_whatever_is_late_for_missed, "was dropped at", marks=pytest.mark.long),
    ],
    ids=name_of,
)
def test_the_machine_notices_a_scheduler_that(mutation, violation, monkeypatch) -> None:
    with pytest.raises(AssertionError, match=violation):
        run_mutant(Schedules, mutation(monkeypatch))


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
    histories.put(world, rule=rule)
    world.live_on(20 * histories.MINUTE, heals=False)
    world.look()
    calls = world.promises.schedules.fires.calls_of(histories.KEY)
    assert list(calls) == list(fires_between(a_schedule(rule=rule), since + MILLISECOND, world.clock.instant))
    assert all(timedelta(0) <= called_at - fire_at <= SECOND for fire_at, called_at in calls.items())


@pytest.mark.parametrize("seconds", [15, 60, 150, 155, 400])
def test_without_faults_and_without_the_sweep_each_run_follows_the_end_of_the_one_before(seconds) -> None:
    world = World(audits=False)
    due_at = world.clock.instant + seconds * SECOND
    histories.put(world, rule=every(seconds=seconds, from_end=True))
    world.live_on(20 * histories.MINUTE, heals=False)
    world.look()
    for called_at in world.promises.schedules.fires.calls_of(histories.KEY).values():
        assert timedelta(0) <= called_at - due_at <= SECOND
        due_at = called_at + seconds * SECOND
    assert due_at > world.clock.instant - SECOND


BROKEN = [
    (histories.a_schedule_comes_to_its_end, mutations.gives_nothing_back, "the sums of schedules are"),
    (histories.a_scanner_dies_when_it_records, mutations.records_before_it_places, "lost"),
    (histories.the_alarm_of_a_dead_scanner_rings_again, mutations.drops_what_it_loses, "lost"),
    (
        histories.a_scanner_dies_when_it_records,
        mutations.records_its_alarm_before_it_places_it,
        "recorded an alarm that is not placed",
    ),
    (
        histories.fires_are_nearer_than_the_far_ring,
        mutations.places_one_fire_and_no_alarm_for_one_that_is_near,
        "nobody continues",
    ),
    (histories.a_change_leaves_messages_behind, mutations.keeps_the_version_of_what_changes, "extra: no rule names"),
    (histories.a_change_leaves_messages_behind, mutations.runs_what_is_stale, "a stale fire ran"),
    (histories.a_pause_leaves_messages_behind, mutations.admits_whatever_comes, "ran after it was"),
    (histories.a_delete_leaves_messages_behind, mutations.runs_what_is_stale, "a stale fire ran"),
    (histories.two_fires_find_the_slot_free, mutations.takes_the_slot_from_whoever_has_it, "two live runs"),
    (histories.a_fire_is_skipped, mutations.skips_without_a_ledger_row, "lost"),
    (histories.a_fire_waits, mutations.waits_without_a_message, "lost"),
    (histories.a_run_is_replaced, mutations.retries_what_should_stop, "tried again after it was replaced"),
    (histories.a_run_outlasts_its_interval, mutations.takes_each_run_for_ended, "follows the end of nothing"),
    (histories.a_worker_dies_after_a_change, mutations.finishes_what_another_version_began, "a stale fire ran"),
    (
        histories.a_run_with_the_slot_is_overtaken_by_a_change,
        mutations.drops_what_has_the_slot,
        "skipped for a run that there is not",
    ),
    (histories.fires_were_missed_before_a_change, mutations.changes_before_it_has_caught_up, "lost: a change of"),
    (histories.a_fire_comes_back_after_a_change, mutations.forgets_what_has_run, "max_runs exceeded"),
    (histories.an_alarm_rings_late, mutations.takes_whatever_is_late_for_missed, "was dropped at"),
    (histories.a_definition_is_read_too_early, mutations.trusts_what_it_reads, "nobody continues"),
    (histories.a_run_without_a_ledger_row_is_to_be_alone, mutations.lets_runs_without_a_row_have_the_slot, "lost"),
]


test_every_promise_is_kept_when = kept_in_each_history(of=BROKEN)
test_a_promise_is_broken_when = broken_by_each_mutation(BROKEN)


@in_each_history(of=BROKEN)
def test_a_sweep_that_carries_on_what_goes_on_anyway_is_harmless_when(history, monkeypatch) -> None:
    live_through(history, lambdas=mutations.heals_whatever_goes_on(monkeypatch))
