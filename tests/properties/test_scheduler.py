"""The whole scheduler under faults keeps every promise; see `tests.properties.machine`.

Then the promises are broken one by one in the code, to see that this machine notices.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from functions.domain.instants import SECOND
from testkit.builders import a_submission
from testkit.world.process import HELD, Conditions, Fate, Fault
from tests.properties import histories, mutations
from tests.properties.lives import broken_by_each_mutation, kept_in_each_history, name_of, run_briefly, run_mutant
from tests.properties.machine import SCHEDULER_SETTINGS, Scheduler

TestScheduler = pytest.mark.long(Scheduler.TestCase)
TestScheduler.settings = SCHEDULER_SETTINGS


def test_every_promise_is_kept_in_the_first_histories() -> None:
    run_briefly(Scheduler)


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
    ],
    ids=name_of,
)
def test_the_machine_notices_a_scheduler_that(mutation, machine, violation, monkeypatch) -> None:
    with pytest.raises(AssertionError, match=violation):
        run_mutant(machine, mutation(monkeypatch))


BROKEN = [
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
    (histories.a_job_comes_while_its_collection_is_given, mutations.lets_no_other_release_follow, "lost"),
    (histories.a_job_that_is_collected_is_cancelled, mutations.gives_what_has_ended, "given after its cancel"),
    (histories.a_release_dies_between_the_ends_of_its_jobs, mutations.gives_what_has_ended, "given after its end"),
    (histories.a_release_dies_between_the_ends_of_its_jobs, mutations.takes_rows_out_before_their_jobs_end, "lost"),
    (histories.a_target_has_not_taken_all, mutations.ends_what_its_target_named, "ended without having been taken"),
    (histories.an_ordered_job_waits_for_its_retry, mutations.runs_an_order_at_once, "out of order"),
    (histories.an_ordered_job_comes_late, mutations.runs_an_order_as_it_comes, "out of order"),
    (histories.two_jobs_of_a_flow_come_at_once, mutations.lets_in_without_a_permit, "calls at the same time"),
    (histories.many_jobs_of_a_flow_come_at_once, mutations.spends_what_is_spent, "tokens within"),
    (histories.a_job_with_callbacks_fails, mutations.forgets_the_callbacks_of_failures, "and told"),
]


test_every_promise_is_kept_when = kept_in_each_history(histories.three_jobs_kill_their_company, of=BROKEN)
test_a_promise_is_broken_when = broken_by_each_mutation(BROKEN)
