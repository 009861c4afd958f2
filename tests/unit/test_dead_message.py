from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.errors import NotPlaced
from functions.domain.far_ring.timer_record import encode_envelope
from functions.domain.jobs.claims import MAX_REQUEUES, MAX_RESCUES, LedgerRow
from functions.domain.jobs.job import Delivery, Job, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import TERMINAL, State
from functions.domain.schedules.state import Status
from functions.ports.dead_letters import DeadLetter
from functions.ports.ledger import Applied, Refused
from functions.ports.ready_queue import Rejected
from functions.ports.targets import Failed
from testkit.builders import NOON, a_link, a_schedule, a_timer, an_occurrence_timer, every
from testkit.fakes import InMemoryLedger
from testkit.scheduler import World

SEEN_AT = NOON - timedelta(hours=1)


@pytest.fixture
def world() -> World:
    return World()


def test_a_message_whose_workers_died_is_kept_and_its_job_settled_as_failed(world: World):
    timer = a_timer(attempt=2)
    world.ledger.rows[timer.job.key] = a_running_row(attempt=2)

    assert bury(world, timer)

    letter = world.buried[0]
    assert (letter.tenant, letter.identity, letter.dead_at) == ("acme", timer.job.identity, SEEN_AT)
    assert (letter.attempt, letter.job_id, letter.timer) == (2, str(job_id_of(timer.job)), timer)
    assert letter.error.startswith("its message was received 10 times without an end")
    assert world.row(timer.job).state is State.FAILED
    assert world.row(timer.job).error == letter.error
    assert world.ready.sent == []
    assert world.journal.counts == {"dead_lettered": 1, "failed": 1}


@pytest.mark.parametrize(
    ("row", "attempt"),
    [
        (None, 1),
        (LedgerRow(state=State.SCHEDULED), 1),
        (LedgerRow(state=State.SCHEDULED, attempt=2, fence=3), 2),
        (LedgerRow(state=State.RETRYING, attempt=1, fence=1), 2),
    ],
    ids=["never claimed", "registered", "released", "retrying"],
)
def test_a_job_that_no_worker_has_is_placed_again_because_none_died_of_it(
    world: World, row: LedgerRow | None, attempt: int
):
    timer = a_timer(attempt=attempt)
    if row is not None:
        world.ledger.rows[timer.job.key] = row

    assert bury(world, timer)

    assert world.ready.sent == [timer]
    assert world.buried == []
    assert world.ledger.get(timer.job.key) == row
    assert world.events("requeued") == [{"job_id": str(job_id_of(timer.job)), "attempt": attempt}]
    assert world.journal.counts == {"requeued": 1}

    world.receive_and_work()
    assert world.row(timer.job).state is State.SUCCEEDED


@pytest.mark.parametrize("rescue_count", range(MAX_RESCUES))
def test_a_job_whose_workers_may_have_died_of_others_is_placed_again_and_its_deaths_stay_counted(
    world: World, rescue_count: int
):
    timer = a_timer()
    row = a_running_row(rescue_count=rescue_count)
    world.ledger.rows[timer.job.key] = row

    assert bury(world, timer)

    assert world.ready.sent == [timer]
    assert world.buried == []
    assert world.ledger.get(timer.job.key) == row


def test_a_job_that_cannot_be_placed_again_is_an_error_so_that_its_message_comes_back(world: World):
    world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)

    with pytest.raises(NotPlaced, match="throttled"):
        bury(world, a_timer())
    assert world.journal.counts == {}


def test_a_requeued_job_that_is_due_in_hours_goes_to_the_far_ring(world: World):
    timer = a_timer(due_at=NOON + timedelta(hours=3))

    assert bury(world, timer)
    assert world.rows.get(job_id_of(timer.job)) == timer


def test_a_message_that_is_buried_again_changes_nothing(world: World):
    timer = a_timer()
    world.ledger.rows[timer.job.key] = a_running_row()

    bury(world, timer)
    assert bury(world, timer)

    assert len(world.buried) == 1


def test_a_body_that_tickwheel_did_not_write_is_kept_as_it_is(world: World):
    assert world.burier().bury("hello", message_id="m-7", seen_at=SEEN_AT, receive_count=10)

    letter = world.buried[0]
    assert (letter.tenant, letter.identity, letter.raw, letter.timer) == ("?", "m-7", "hello", None)
    assert letter.error.startswith("undecodable: ")
    assert world.ledger.rows == {}


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_message_of_a_settled_job_is_dropped(world: World, state: State):
    timer = a_timer()
    world.ledger.rows[timer.job.key] = LedgerRow(state=state, attempt=1)

    assert bury(world, timer)
    assert world.buried == []
    assert world.row(timer.job).state is state


def test_a_message_of_an_attempt_that_was_followed_by_another_is_dropped(world: World):
    timer = a_timer()
    world.ledger.rows[timer.job.key] = a_running_row(attempt=2)

    assert bury(world, timer)
    assert world.buried == []


def test_a_message_whose_next_attempt_is_on_its_way_is_dropped(world: World):
    timer = a_timer()
    world.ledger.rows[timer.job.key] = LedgerRow(state=State.RETRYING, attempt=1)

    assert bury(world, timer)
    assert world.buried == []
    assert world.row(timer.job).state is State.RETRYING


def test_the_message_of_the_next_attempt_goes_on_where_it_was_when_the_one_before_was_abandoned(world: World):
    timer = a_timer(attempt=2)
    world.ledger.rows[timer.job.key] = a_running_row(attempt=1)

    assert bury(world, timer)
    assert world.buried == []
    assert [placed.attempt for placed in world.ready.sent] == [2]


def test_a_watchdog_looks_again_when_the_lease_of_its_attempt_is_over(world: World):
    timer = a_timer(attempt=2)
    world.ledger.rows[timer.job.key] = a_running_row(attempt=1, lease_until=NOON)

    assert bury(world, timer)
    assert world.buried == []
    assert [placed.due_at for placed in world.ready.sent] == [NOON + world.wheel.skew + timedelta(milliseconds=1)]


def test_a_message_whose_job_a_worker_still_has_comes_back(world: World):
    timer = a_timer()
    world.ledger.rows[timer.job.key] = a_running_row(lease_until=NOON - world.wheel.skew)

    assert not bury(world, timer)
    assert world.buried == []
    assert world.row(timer.job).state is State.RUNNING


def test_a_message_whose_worker_died_is_buried_when_its_lease_is_over(world: World):
    timer = a_timer()
    world.ledger.rows[timer.job.key] = a_running_row(lease_until=NOON - world.wheel.skew - timedelta(milliseconds=1))

    assert bury(world, timer)
    assert world.row(timer.job).state is State.FAILED
    assert [letter.fence for letter in world.buried] == [4]


def test_the_dead_letter_of_an_at_least_once_job_needs_no_ledger_row(world: World):
    timer = a_timer(delivery=Delivery.AT_LEAST_ONCE)
    for _ in range(MAX_RESCUES):
        world.ledger.note_start(timer, now=NOON)

    assert bury(world, timer)
    assert len(world.buried) == 1
    assert world.ledger.rows == {}


@pytest.mark.parametrize("starts", range(MAX_RESCUES))
def test_an_at_least_once_job_that_hardly_any_worker_began_is_placed_again_because_workers_were_throttled(
    world: World, starts: int
):
    timer = a_timer(delivery=Delivery.AT_LEAST_ONCE)
    for _ in range(starts):
        world.ledger.note_start(timer, now=NOON)

    assert bury(world, timer)

    assert (world.ready.sent, world.buried) == ([timer], [])
    world.receive_and_work()
    assert world.journal.counts["succeeded"] == 1


def test_an_at_least_once_job_that_no_worker_ever_begins_is_a_dead_letter_in_the_end(world: World):
    timer = a_timer(delivery=Delivery.AT_LEAST_ONCE)

    for _ in range(MAX_REQUEUES):
        assert bury(world, timer)
    assert (len(world.ready.sent), world.buried) == (MAX_REQUEUES, [])

    assert bury(world, timer)
    assert len(world.buried) == 1


def test_the_starts_of_an_attempt_are_not_those_of_the_one_before(world: World):
    timer = a_timer(delivery=Delivery.AT_LEAST_ONCE)
    for _ in range(MAX_RESCUES):
        world.ledger.note_start(timer, now=NOON)

    assert bury(world, replace(timer, attempt=2))
    assert world.buried == []


def test_an_at_most_once_job_that_was_never_started_is_placed_again(world: World):
    timer = a_timer(delivery=Delivery.AT_MOST_ONCE)

    assert bury(world, timer)
    assert world.ready.sent == [timer]
    assert world.ledger.rows == {}


def test_a_message_whose_row_keeps_changing_comes_back_and_leaves_no_dead_letter(world: World):
    timer = a_timer()

    class Contested(InMemoryLedger):
        def bury(self, letter: DeadLetter, job: Job, *, row: Any, **options: Any) -> Applied | Refused:
            self.rows[job.key] = replace(row, fence=row.fence + 1)
            return super().bury(letter, job, row=row, **options)

    world.ledger = Contested(skew=world.wheel.skew, dead_letters=world.letters)
    world.ledger.rows[timer.job.key] = a_running_row()

    assert not bury(world, timer)
    assert world.buried == []


def test_a_job_that_a_worker_rescues_meanwhile_is_left_to_it(world: World):
    timer = a_timer()

    class Rescued(InMemoryLedger):
        def bury(self, letter: DeadLetter, job: Job, **options: Any) -> Applied | Refused:
            self.rescue(timer, row=self.rows[job.key], owner="rescuer", lease_until=NOON + timedelta(hours=1), now=NOON)
            return super().bury(letter, job, **options)

    world.ledger = Rescued(skew=world.wheel.skew, dead_letters=world.letters)
    world.ledger.rows[timer.job.key] = a_running_row()

    assert not bury(world, timer)
    assert world.buried == []
    assert world.row(timer.job).owner == "rescuer"


def test_a_job_whose_burial_failed_is_neither_a_dead_letter_nor_settled(world: World):
    timer = a_timer()

    class Failing(InMemoryLedger):
        def bury(self, letter: DeadLetter, job: Job, **_: Any) -> Applied | Refused:
            raise ConnectionError

    world.ledger = Failing(skew=world.wheel.skew, dead_letters=world.letters)
    world.ledger.rows[timer.job.key] = a_running_row()
    with pytest.raises(ConnectionError):
        bury(world, timer)

    assert world.buried == []
    assert world.row(timer.job).state is State.RUNNING
    assert world.journal.counts == {}


def test_an_envelope_comes_back_whole_when_one_of_its_jobs_is_still_run(world: World):
    mine, busy = a_timer(), a_timer()
    world.ledger.rows[mine.job.key] = a_running_row()
    world.ledger.rows[busy.job.key] = a_running_row(lease_until=NOON)

    answer = world.burier().bury(encode_envelope([mine, busy]), message_id="m-1", seen_at=SEEN_AT, receive_count=10)

    assert not answer
    assert world.row(mine.job).state is State.FAILED


class TestOccurrences:
    def test_the_run_whose_workers_died_counts_as_a_failure_of_its_schedule_and_pauses_it(self, world: World):
        schedule = a_schedule(pause_after_failures=1)
        world.store(schedule, link=a_link(NOON + timedelta(hours=1)))
        timer = an_occurrence_timer(schedule)
        world.ledger.rows[timer.job.key] = a_running_row()

        assert bury(world, timer)

        assert world.row(timer.job).state is State.FAILED
        state = world.state(schedule)
        assert (state.status, state.note) == (
            Status.PAUSED,
            f"paused after 1 failures in a row, the last of {timer.job.identity}",
        )

    def test_a_run_that_is_buried_again_counts_once(self, world: World):
        schedule = a_schedule(pause_after_failures=2)
        world.store(schedule)
        timer = an_occurrence_timer(schedule)
        world.ledger.rows[timer.job.key] = a_running_row()

        bury(world, timer)
        bury(world, timer)

        assert world.state(schedule).failures == {timer.job.identity}

    def test_the_chain_of_an_end_to_start_schedule_goes_on_after_a_run_whose_workers_died(self, world: World):
        schedule = a_schedule(rule=every(hours=1, from_end=True))
        world.store(schedule, link=a_link(is_awaited=True), fire_count=1)
        timer = an_occurrence_timer(schedule)
        world.ledger.rows[timer.job.key] = a_running_row()
        world.clock.tick(timedelta(minutes=5))

        assert bury(world, timer)

        assert world.state(schedule).link == a_link(NOON + timedelta(hours=1, minutes=5), index=1, previous_at=NOON)

    def test_a_run_that_somebody_else_has_by_now_is_no_failure(self, world: World):
        schedule = a_schedule(pause_after_failures=1)
        world.store(schedule)
        timer = an_occurrence_timer(schedule)
        seen = a_running_row()
        world.ledger.rows[timer.job.key] = replace(seen, fence=seen.fence + 1)

        assert not world.ends().bury(timer, Failed("died", "worker_died"), row=seen, owner="consumer")

        assert world.buried == []
        assert world.state(schedule).failures == frozenset()
        assert world.state(schedule).status is Status.ACTIVE

    def test_a_run_that_is_placed_again_is_no_failure(self, world: World):
        schedule = a_schedule(pause_after_failures=1)
        world.store(schedule)
        timer = an_occurrence_timer(schedule)

        assert bury(world, timer)

        assert world.ready.sent == [timer]
        assert world.state(schedule).failures == frozenset()

    def test_a_run_that_was_skipped_is_dropped(self, world: World):
        schedule = a_schedule(pause_after_failures=1)
        world.store(schedule)
        timer = an_occurrence_timer(schedule)
        world.ledger.skip(timer, reason="overlap", owner="w", now=NOON)

        assert bury(world, timer)

        assert (world.buried, world.ready.sent) == ([], [])
        assert world.state(schedule).status is Status.ACTIVE


def bury(world: World, timer: Timer) -> bool:
    return world.burier().bury(encode_envelope([timer]), message_id="m-1", seen_at=SEEN_AT, receive_count=10)


def a_running_row(**overrides: Any) -> LedgerRow:
    """Of an attempt whose workers have died as often as they may."""
    fields: dict[str, Any] = {
        "attempt": 1,
        "fence": 4,
        "owner": "w",
        "lease_until": NOON - timedelta(hours=1),
        "rescue_count": MAX_RESCUES,
    }
    return LedgerRow(state=State.RUNNING, **{**fields, **overrides})
