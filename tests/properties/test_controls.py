"""Jobs in the hands of their targets, owners and operators, under faults; and what breaks them."""

from __future__ import annotations

import pytest

from tests.properties import control_histories as histories
from tests.properties import control_mutations as mutations
from tests.properties.control_machine import CONTROLLED_SETTINGS, Controlled
from tests.properties.lives import broken_by_each_mutation, kept_in_each_history, run_briefly

TestControlled = pytest.mark.long(Controlled.TestCase)
TestControlled.settings = CONTROLLED_SETTINGS


def test_every_promise_is_kept_in_the_first_histories() -> None:
    run_briefly(Controlled)


BROKEN = [
    (histories.a_target_falls_silent, mutations.holds_without_a_watchdog, "lost"),
    (histories.a_target_falls_silent_after_a_heartbeat, mutations.drops_a_watchdog_that_finds_a_lease, "lost"),
    (histories.a_zombie_speaks, mutations.listens_to_stale_fences, "a stale fence was heard"),
    (histories.a_zombie_speaks, mutations.prolongs_whatever_runs, "a stale fence was heard"),
    (
        histories.a_replay_dies_on_the_way,
        mutations.forgets_the_letter_before_its_replay,
        "failed without a dead letter",
    ),
    (histories.a_replay_dies_on_the_way, mutations.replays_without_a_far_row, "lost"),
    (histories.a_move_dies_on_the_way, mutations.moves_in_two_steps, "lost"),
    (histories.a_retry_is_hastened, mutations.hastens_without_its_row, "lost"),
    (
        histories.a_target_is_done_before_its_worker_knows,
        mutations.completes_whoever_asks,
        "got the answer that it is done",
    ),
    (
        histories.a_turn_with_a_slow_clock_moves_a_job_ahead_of_itself,
        mutations.forgets_what_it_has_moved,
        "shifted twice",
    ),
    (
        histories.an_operation_cancels_a_job_that_is_promoted,
        mutations.cancels_without_a_tombstone,
        "ran after its cancel",
    ),
    (histories.a_turn_of_a_cancel_dies, mutations.records_a_step_before_it_is_made, "left out by a cancel"),
    (
        histories.a_job_is_submitted_after_a_cancel_was_asked_for,
        mutations.means_what_is_submitted_later,
        "no operation means it",
    ),
    (histories.a_late_turn_of_an_export_comes_back, mutations.puts_a_part_without_its_lease, "not once in an export"),
]


test_every_promise_is_kept_when = kept_in_each_history(of=BROKEN)
test_a_promise_is_broken_when = broken_by_each_mutation(BROKEN)
