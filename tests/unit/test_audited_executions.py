"""Every execution that ends leaves a line, and again when somebody may have died before it was sent."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from functions.domain.audit import ActionName, Ending
from functions.domain.far_ring.timer_record import encode_envelope
from functions.domain.instants import SECOND
from functions.domain.jobs.claims import MAX_RESCUES, LedgerRow
from functions.domain.jobs.job import Delivery, Payload, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.lifecycle import State
from functions.domain.operations.operation import Operation
from functions.domain.schedules.state import Status
from functions.domain.targets.error_classes import WORKER_DIED
from functions.ports.ready_queue import Rejected
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded
from testkit.builders import NOON, a_schedule, a_timer, an_occurrence_timer, an_operation
from testkit.fakes import InMemoryShardStore
from testkit.scheduler import World
from tests.unit.test_execute import a_message
from tests.unit.test_scan import a_row, recorded

ONCE = RetryPolicy(attempts=1)


@pytest.fixture
def world() -> World:
    return World()


def answers(world: World, outcome: Outcome, *, takes: timedelta = timedelta(0)) -> None:
    def answer(_: str, __: Invocation) -> Outcome:
        world.clock.tick(takes)
        return outcome

    world.targets.answer = answer


def endings(world: World) -> list[tuple[State, int, bool]]:
    return [(ending.outcome, ending.attempt, ending.is_repeated) for ending in world.trail.endings]


def test_a_success_is_reported_with_when_it_was_due_began_and_ended(world: World):
    answers(world, Succeeded(), takes=2 * SECOND)
    timer = a_timer()
    world.clock.tick(3 * SECOND)

    world.work(a_message(timer))

    assert world.trail.entries == [
        Ending(
            job_id=job_id_of(timer.job),
            outcome=State.SUCCEEDED,
            attempt=1,
            ended_at=NOON + 5 * SECOND,
            due_at=NOON,
            began_at=NOON + 3 * SECOND,
            target="https://example.com/hook",
        )
    ]


@pytest.mark.parametrize("delivery", Delivery)
def test_a_job_of_each_delivery_is_reported_once(world: World, delivery: Delivery):
    world.work(a_message(a_timer(delivery=delivery)))

    assert endings(world) == [(State.SUCCEEDED, 1, False)]


@pytest.mark.parametrize("delivery", Delivery)
def test_a_dead_letter_is_reported_with_the_class_of_its_error_and_not_its_text(world: World, delivery: Delivery):
    answers(world, Failed("secret", "http_500"))

    world.work(a_message(a_timer(delivery=delivery, retry=ONCE)))

    (ending,) = world.trail.endings
    assert (ending.outcome, ending.error_class, ending.began_at) == (State.FAILED, "http_500", NOON)
    assert "secret" not in str(ending)


def test_an_attempt_that_is_followed_by_another_has_not_ended_anything(world: World):
    answers(world, Failed("busy"))

    world.work(a_message(a_timer()))

    assert world.trail.entries == []


@pytest.mark.parametrize("delivery", Delivery)
def test_what_expires_is_reported_without_a_start(world: World, delivery: Delivery):
    world.work(a_message(a_timer(delivery=delivery, expires_at=NOON)))

    (ending,) = world.trail.endings
    assert (ending.outcome, ending.began_at) == (State.EXPIRED, None)


def test_what_fails_without_a_call_is_reported_without_a_start(world: World):
    world.work(a_message(a_timer(payload=Payload(packed="hello"), retry=ONCE)))

    (ending,) = world.trail.endings
    assert (ending.outcome, ending.error_class, ending.began_at) == (State.FAILED, "payload_unreadable", None)


def test_a_cancelled_job_is_reported_with_who_cancelled_it(world: World):
    timer = a_timer(due_at=NOON + timedelta(hours=1))
    world.placer.place([timer])

    world.canceller().cancel(job_id_of(timer.job), caller="ann")

    assert endings(world) == [(State.CANCELLED, 0, False)]
    (action,) = world.trail.actions
    assert (action.action, action.caller, action.tenant, action.subject) == (
        ActionName.JOB_CANCEL,
        "ann",
        "acme",
        str(job_id_of(timer.job)),
    )
    assert action.after == {"state": "cancelled"}


def test_a_running_job_that_is_asked_to_end_has_not_ended_yet(world: World):
    timer = a_timer()
    world.ledger.claim(timer, owner="w", lease_until=NOON + 60 * SECOND, now=NOON)

    world.canceller().cancel(job_id_of(timer.job), caller="ann")

    assert world.trail.endings == []
    assert [action.after for action in world.trail.actions] == [{"state": "cancel_requested"}]


def test_a_job_that_fails_after_its_cancel_was_requested_is_reported_as_cancelled(world: World):
    timer = a_timer()

    def answer(_: str, __: Invocation) -> Outcome:
        world.canceller().cancel(job_id_of(timer.job))
        return Failed("busy", "http_503")

    world.targets.answer = answer
    world.work(a_message(timer))

    (ending,) = world.trail.endings
    assert (ending.outcome, ending.began_at, ending.error_class) == (State.CANCELLED, NOON, "http_503")


def test_a_skipped_fire_is_reported_with_its_reason(world: World):
    schedule = a_schedule()
    world.store(schedule, status=Status.PAUSED)

    world.work(a_message(an_occurrence_timer(schedule)))

    (ending,) = world.trail.endings
    assert (ending.outcome, ending.attempt, ending.reason, ending.began_at) == (State.SKIPPED, 0, "paused", None)


def test_a_run_that_another_replaces_is_reported_as_cancelled(world: World):
    schedule = a_schedule(overlap=Overlap.REPLACE)
    first = an_occurrence_timer(schedule, fire_at=NOON - timedelta(hours=1))
    world.store(schedule, holder=str(job_id_of(first.job)), holder_since=NOON)
    second = an_occurrence_timer(schedule)

    world.work(a_message(second))

    assert [(ending.job_id, ending.outcome, ending.reason) for ending in world.trail.endings] == [
        (job_id_of(first.job), State.CANCELLED, "replaced"),
        (job_id_of(second.job), State.SUCCEEDED, ""),
    ]


def test_a_schedule_that_is_paused_for_its_failures_is_an_action_of_the_scheduler(world: World):
    schedule = a_schedule(pause_after_failures=1)
    world.store(schedule)
    timer = an_occurrence_timer(schedule)
    answers(world, Failed("no", is_permanent=True))

    world.work(a_message(timer))

    (action,) = world.trail.actions
    assert (action.action, action.caller, action.subject) == (ActionName.SCHEDULE_PAUSE, "tickwheel", "nightly")


def test_a_schedule_that_was_paused_before_its_run_has_failed_is_not_reported_to_be_paused(world: World):
    schedule = a_schedule(pause_after_failures=1)
    world.store(schedule, status=Status.PAUSED, note="the target moves")
    timer = an_occurrence_timer(schedule, attempt=2)
    answers(world, Failed("no", is_permanent=True))

    world.work(a_message(timer))

    assert world.row(timer.job).state is State.FAILED
    assert (world.trail.actions, world.events("schedule_paused")) == ([], [])
    assert "schedules_paused" not in world.journal.counts


def test_a_pause_whose_teller_has_died_is_reported_by_whoever_repeats_it(world: World):
    schedule = a_schedule(pause_after_failures=1)
    world.store(schedule)
    timer = an_occurrence_timer(schedule)
    world.ends().runs.failing(timer)
    first = list(world.trail.actions)
    world.trail.entries.clear()

    world.ends().runs.failing(timer)

    assert len(first) == 1
    assert world.trail.actions == first


def test_a_retry_that_was_buried_unclaimed_is_reported_again_under_the_same_name(world: World):
    recorded(world, world.wheel.bucket_of(NOON))
    retry = a_row(world, attempt=2)
    world.ledger.rows[retry.job.key] = LedgerRow(state=State.RETRYING, attempt=1, fence=1, due_at=retry.due_at)
    world.ready.refuses = lambda timer: Rejected(timer, "too long", is_permanent=True)
    world.scan()

    world.work(a_message(replace(retry, attempt=1)))

    first, again = world.trail.endings
    assert (first.is_repeated, again.is_repeated) == (False, True)
    assert again.line_id == first.line_id


def settled(world: World, state: State) -> Timer:
    """A job in a state, whose worker has died before its line was sent."""
    timer = a_timer(retry=ONCE)
    match state:
        case State.CANCELLED:
            world.canceller().cancel(job_id_of(timer.job))
        case State.EXPIRED:
            timer = a_timer(expires_at=NOON)
            world.work(a_message(timer))
        case State.FAILED:
            answers(world, Failed("busy"))
            world.work(a_message(timer))
        case _:
            world.work(a_message(timer))
    assert world.row(timer.job).state is state
    return timer


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.EXPIRED, State.CANCELLED])
def test_a_message_that_comes_again_says_the_end_again_under_its_name(world: World, state: State):
    timer = settled(world, state)
    (first,) = world.trail.endings
    world.trail.entries.clear()
    world.clock.tick(60 * SECOND)

    world.work(a_message(timer, receive_count=2))

    (again,) = world.trail.endings
    assert (again.outcome, again.is_repeated) == (state, True)
    assert again.line_id == first.line_id
    assert again.ended_at == first.ended_at


def test_a_skip_is_reported_again_under_its_name(world: World):
    schedule = a_schedule()
    world.store(schedule, status=Status.PAUSED)
    timer = an_occurrence_timer(schedule)

    for _ in range(2):
        world.work(a_message(timer))

    first, again = world.trail.endings
    assert (first.line_id, first.reason) == (again.line_id, again.reason)
    assert again.is_repeated


def test_an_at_most_once_job_is_reported_again_under_its_name(world: World):
    timer = a_timer(delivery=Delivery.AT_MOST_ONCE)
    for _ in range(2):
        world.work(a_message(timer))

    first, again = world.trail.endings
    assert (first.line_id, again.is_repeated) == (again.line_id, True)


def test_a_job_that_has_not_ended_is_not_reported_when_a_message_of_it_is_dropped(world: World):
    timer = a_timer()
    world.ledger.claim(a_timer(attempt=2, identity=timer.job.identity), owner="w", lease_until=NOON, now=NOON)

    world.work(a_message(timer))

    assert world.events("duplicate_dropped")
    assert world.trail.entries == []


def test_a_cancel_that_is_asked_for_again_says_the_end_again(world: World):
    timer = settled(world, State.CANCELLED)

    assert world.canceller().cancel(job_id_of(timer.job), caller="bob")

    first, again = world.trail.endings
    assert first.line_id == again.line_id
    assert [action.caller for action in world.trail.actions] == ["", "bob"]


def killing(world: World) -> Timer:
    """A job whose workers have died as often as they may."""
    timer = a_timer()
    world.ledger.rows[timer.job.key] = LedgerRow(
        state=State.RUNNING, attempt=1, fence=4, owner="w", lease_until=NOON, rescue_count=MAX_RESCUES
    )
    world.clock.tick(timedelta(minutes=1))
    return timer


def bury(world: World, timer: Timer) -> bool:
    return world.burier().bury(encode_envelope([timer]), message_id="m1", seen_at=world.clock.now(), receive_count=10)


def test_a_job_that_kills_its_workers_is_reported_by_whoever_buries_it(world: World):
    timer = killing(world)

    assert bury(world, timer)

    (ending,) = world.trail.endings
    assert (ending.outcome, ending.error_class, ending.attempt) == (State.FAILED, WORKER_DIED, 1)


def test_a_message_that_is_buried_twice_says_the_end_again_under_its_name(world: World):
    timer = killing(world)
    for _ in range(2):
        assert bury(world, timer)

    first, again = world.trail.endings
    assert (first.line_id, first.is_repeated, again.is_repeated) == (again.line_id, False, True)


def test_what_tickwheel_did_not_write_is_no_execution(world: World):
    assert world.burier().bury("foreign", message_id="m1", seen_at=NOON, receive_count=10)

    assert world.trail.entries == []


def held(world: World) -> Timer:
    answers(world, Pending())
    timer = a_timer(retry=ONCE)
    world.work(a_message(timer))
    assert world.trail.entries == []
    return timer


def complete(world: World, timer: Timer) -> None:
    world.outcome_reports().complete(job_id_of(timer.job), fence=1, result="", caller="target")


def fail(world: World, timer: Timer) -> None:
    failure = Failed("no", "target_failed", is_permanent=True)
    world.outcome_reports().fail(job_id_of(timer.job), fence=1, failure=failure, caller="target")


@pytest.mark.parametrize(
    ("finish", "action", "state"),
    [(complete, ActionName.JOB_COMPLETE, State.SUCCEEDED), (fail, ActionName.JOB_FAIL, State.FAILED)],
)
def test_a_target_that_finishes_later_leaves_its_action_and_the_end(
    world: World, finish: Callable[[World, Timer], None], action: ActionName, state: State
):
    timer = held(world)

    finish(world, timer)
    finish(world, timer)

    assert endings(world) == [(state, 1, False), (state, 1, True)]
    assert len({ending.line_id for ending in world.trail.endings}) == 1
    assert [(action.action, action.caller, action.before, action.after) for action in world.trail.actions] == [
        (action, "target", {"state": "running", "fence": 1}, {"state": state.value}),
        (action, "target", {"state": state.value, "fence": 1}, {"state": state.value}),
    ]


def test_a_timer_that_cannot_be_promoted_is_reported_by_the_scanner_and_again_by_the_next_tick(world: World):
    timer = a_row(world, identity="bad")
    world.ready.refuses = lambda refused: Rejected(refused, "too long", is_permanent=True)
    # The tick dies before its checkpoint: the next one begins where it began.
    world.scan()
    world.shards = InMemoryShardStore()
    recorded(world, world.wheel.bucket_of(NOON))
    world.scan()

    first, again = world.trail.endings
    assert (first.job_id, first.outcome, first.error_class) == (job_id_of(timer.job), State.FAILED, "not_promoted")
    assert (first.line_id, first.is_repeated, again.is_repeated) == (again.line_id, False, True)


def test_lines_hold_instants_of_the_clock_of_who_settled(world: World):
    world.clock.ahead = timedelta(seconds=1)

    world.work(a_message(a_timer()))

    (ending,) = world.trail.endings
    assert isinstance(ending.ended_at, datetime)
    assert ending.ended_at == NOON + SECOND


def test_an_operation_reports_each_job_by_its_caller_and_sends_the_lines_of_a_page_before_it_goes_on():
    world = World(dates_rows=True)
    due_at = NOON + timedelta(hours=1)
    timers = [a_timer(due_at=due_at + number * SECOND) for number in range(3)]
    world.placer.place(timers)
    world.clock.tick(timedelta(minutes=2))
    world.operations.create(an_operation(created_at=world.clock.now()))
    kept: list[int] = []
    before = world.operations.finish

    def finish(operation: Operation) -> bool:
        kept.append(world.trail.kept)
        return before(operation)

    world.operations.finish = finish
    world.operate()

    assert kept == [len(world.trail.entries)] == [6]
    assert {(action.action, action.caller) for action in world.trail.actions} == {(ActionName.JOB_CANCEL, "ann")}
    assert {ending.job_id for ending in world.trail.endings} == {job_id_of(timer.job) for timer in timers}
