"""Every end of an execution, and everything that hears of it: each exactly once, whoever has ended it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import functions
from functions.domain.far_ring.cursor import BucketAuditPosition
from functions.domain.far_ring.timer_record import encode_envelope
from functions.domain.instants import HOUR
from functions.domain.jobs.claims import MAX_RESCUES, LedgerRow
from functions.domain.jobs.job import Delivery, Timer
from functions.domain.jobs.job_id import JobId, job_id_of
from functions.domain.jobs.occurrence import fire_of
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy
from functions.domain.lifecycle import TERMINAL, State
from functions.domain.schedules.slots import SILENCE
from functions.domain.schedules.state import Status
from functions.domain.stage.pulse import Figure
from functions.domain.tenants.plan import TenantPlan
from functions.domain.tenants.usage import Usage
from functions.ports.ledger import Claimed
from functions.ports.ready_queue import Rejected
from functions.ports.targets import Failed, Invocation, Outcome, Pending
from functions.services.schedules.run_ends import RunEnds
from testkit.builders import NOON, a_dead_letter, a_link, a_schedule, a_timer, an_occurrence_timer, an_operation, every
from testkit.scheduler import World
from tests.unit.test_execute import a_message
from tests.unit.test_sweep import scanned as scanned_up_to

FUNCTIONS = Path(functions.__file__).parent
ONCE = RetryPolicy(attempts=1)
NO = Failed("no", "target_failed", is_permanent=True)
LEDGERED = [Delivery.EXACTLY_ONCE, Delivery.AT_MOST_ONCE]

Heard = Mapping[str, int]

TOLD: Mapping[State, Heard] = {
    State.SUCCEEDED: {"log": 1, "metrics": 1, "usage": 1, "pulse": 1, "audit": 1},
    State.FAILED: {"log": 1, "metrics": 1, "usage": 1, "pulse": 1, "audit": 1},
    State.EXPIRED: {"log": 1, "metrics": 1, "usage": 0, "pulse": 0, "audit": 1},
    State.CANCELLED: {"log": 1, "metrics": 1, "usage": 0, "pulse": 0, "audit": 1},
    State.SKIPPED: {"log": 1, "metrics": 1, "usage": 0, "pulse": 0, "audit": 1},
}
"""What hears of each end, beside its schedule or what counts jobs that wait: usage and pulse have no figure for the rest."""

NO_ENDS = {
    State.MOVED: "the job goes on under another id",
    State.ATTEMPTED: "an at_most_once job has begun: how that ended is reported as a success or a failure",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded(RunEnds):
    """What schedules hear."""

    heard: list[str] = field(default_factory=list[str])

    def ended(self, timer: Timer, state: State, **how: Any) -> None:
        if timer.job.occurrence is not None:
            self.heard.append(timer.job.key)
        RunEnds.ended(self, timer, state, **how)

    def cancelled(self, job_id: JobId) -> None:
        if fire_of(job_id.identity):
            self.heard.append(job_id.key)
        RunEnds.cancelled(self, job_id)


class Listened(World):
    """A world that hears what its ends report. Everybody has a limit of jobs that may wait."""

    def __init__(self) -> None:
        super().__init__(dates_rows=True)
        self.plans.everybody = TenantPlan(max_pending=1_000)
        self.schedules_heard: list[str] = []
        self.instead = {RunEnds: Recorded}

    def given(self) -> dict[str, Any]:
        return {**super().given(), "heard": self.schedules_heard}

    def heard(self, timer: Timer, state: State) -> Heard:
        self.clock.tick(timedelta(minutes=2))
        self.tally.flush()
        job_id = str(job_id_of(timer.job))
        lines = [keys for name, keys in self.journal.events if name in ("job_settled", "fire_skipped")]
        used = sum(self.used.rows.values(), Usage())
        figure = Figure(state.value) if state.value in set(Figure) else None
        return {
            "log": sum(keys["job_id"] == job_id and keys.get("outcome", "skipped") == state.value for keys in lines),
            "metrics": self.journal.counts.get(state.value, 0),
            "usage": used.succeeded + used.failed,
            "pulse": self.pulse.counts[figure, "acme"] if figure else 0,
            "audit": sum(
                (str(ending.job_id), ending.outcome, ending.is_repeated) == (job_id, state, False)
                for ending in self.trail.endings
            ),
            "pending": -sum(self.waiting.rows.values()),
            "schedule": self.schedules_heard.count(timer.job.key),
        }

    def again(self, timer: Timer, state: State) -> int:
        return sum(
            (ending.job_id, ending.is_repeated) == (job_id_of(timer.job), True)
            # Its row tells no more of an at_most_once job than that it has begun.
            and ending.outcome in (state, State.ATTEMPTED)
            for ending in self.trail.endings
        )


class AnswersLost:
    """A ledger whose every write is made twice, because its first answer was lost: what counts is the second answer."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._ledger, name)
        if name not in ("attempt", "settle", "complete", "fail", "bury", "cancel", "skip", "give_up"):
            return call

        def twice(*given: Any, **named: Any) -> Any:
            call(*given, **named)
            return call(*given, **named)

        return twice


@dataclass(frozen=True)
class Caller:
    """Who ends an execution. end: drives it to its end; again: asks or delivers once more."""

    state: State
    timer: Callable[[World], Timer]
    end: Callable[[World, Timer], object]
    again: Callable[[World, Timer], object]
    is_reported_again: bool = True


def a_plain(**options: Any) -> Callable[[World], Timer]:
    return lambda _: a_timer(**options)


def a_run(*, delivery: Delivery = Delivery.EXACTLY_ONCE, **options: Any) -> Callable[[World], Timer]:
    """Of a schedule, whose definition has no overlap policy that a delivery could not keep."""

    def store(world: World) -> Timer:
        schedule = a_schedule(job=replace(a_schedule().job, retry=ONCE, delivery=delivery))
        world.store(schedule, **options)
        return an_occurrence_timer(schedule)

    return store


def a_fire(_: World) -> Timer:
    return an_occurrence_timer(a_schedule())


def an_awaited_run(world: World) -> Timer:
    """Of a schedule whose next fire waits for its end; its worker died."""
    schedule = a_schedule(rule=every(minutes=10, from_end=True))
    world.store(schedule, link=a_link(is_awaited=True), fire_count=1)
    timer = an_occurrence_timer(schedule)
    world.ledger.claim(timer, owner="dead", lease_until=NOON + HOUR, now=NOON)
    return timer


def work(world: World, timer: Timer) -> None:
    world.work(a_message(timer))


def answering(outcome: Outcome) -> Callable[[World, Timer], None]:
    def run(world: World, timer: Timer) -> None:
        world.targets.answer = lambda *_: outcome
        work(world, timer)

    return run


def cancelled_meanwhile(world: World, timer: Timer) -> None:
    def answer(_: str, __: Invocation) -> Outcome:
        world.canceller().cancel(job_id_of(timer.job))
        return Failed("busy")

    world.targets.answer = answer
    work(world, timer)


def died_too_often(world: World, timer: Timer) -> None:
    world.ledger.rows[timer.job.key] = LedgerRow(
        state=State.RUNNING,
        attempt=timer.attempt,
        fence=4,
        owner="dead",
        lease_until=NOON - HOUR,
        rescue_count=MAX_RESCUES,
        due_at=timer.due_at,
        job_id=str(job_id_of(timer.job)),
    )


def died_and_worked(world: World, timer: Timer) -> None:
    died_too_often(world, timer)
    work(world, timer)


def consumed(world: World, timer: Timer) -> None:
    body = encode_envelope([timer])
    assert world.burier().bury(body, message_id="m1", seen_at=NOON, receive_count=10)


def died_and_consumed(world: World, timer: Timer) -> None:
    died_too_often(world, timer)
    consumed(world, timer)


def begun_and_consumed(world: World, timer: Timer) -> None:
    for _ in range(MAX_RESCUES):
        world.ledger.note_start(timer, now=NOON)
    consumed(world, timer)


def refuse_all(world: World) -> None:
    world.ready.refuses = lambda timer: Rejected(timer, "too long", is_permanent=True)


def scanned(world: World, timer: Timer) -> None:
    """By a tick that dies before it has recorded that the row is passed."""
    refuse_all(world)
    world.rows.put([timer])
    world.shards.rows.clear()
    scanned_up_to(world, timer.job.shard, world.wheel.bucket_of(NOON))
    world.scan(timer.job.shard)


def swept(world: World, timer: Timer) -> None:
    world.rows.put([timer])
    swept_again(world, timer)


def swept_again(world: World, timer: Timer) -> None:
    """By a sweep that dies before it has recorded that the row is passed."""
    refuse_all(world)
    world.shards.rows.clear()
    for shard in range(world.wheel.scan_shards):
        scanned_up_to(world, shard, world.wheel.bucket_of(NOON) + 120)
    world.shards.audit = BucketAuditPosition(timer.job.bucket)
    world.sweep()


def held(world: World, timer: Timer) -> None:
    world.targets.answer = lambda *_: Pending()
    work(world, timer)


def completed(world: World, timer: Timer) -> None:
    world.outcome_reports().complete(job_id_of(timer.job), fence=1, result="")


def held_and_completed(world: World, timer: Timer) -> None:
    held(world, timer)
    completed(world, timer)


def completed_before_it_was_held(world: World, timer: Timer) -> None:
    def answer(_: str, __: Invocation) -> Outcome:
        completed(world, timer)
        return Pending()

    world.targets.answer = answer
    work(world, timer)


def failed_by_its_target(world: World, timer: Timer) -> None:
    world.outcome_reports().fail(job_id_of(timer.job), fence=1, failure=NO)


def held_and_failed(world: World, timer: Timer) -> None:
    held(world, timer)
    failed_by_its_target(world, timer)


def cancel(world: World, timer: Timer) -> None:
    assert world.canceller().cancel(job_id_of(timer.job))


def placed_and_cancelled(world: World, timer: Timer) -> None:
    world.placer.place([timer])
    world.clock.tick(timedelta(minutes=2))
    cancel(world, timer)


def operated(world: World, timer: Timer) -> None:
    world.placer.place([timer])
    world.clock.tick(timedelta(minutes=2))
    world.operations.create(an_operation(created_at=world.clock.now()))
    world.operate()


def replaced(world: World, timer: Timer) -> None:
    """By the next fire, which finds it in the slot."""
    schedule = a_schedule(overlap=Overlap.REPLACE)
    world.store(schedule, holder=str(job_id_of(timer.job)), holder_since=NOON)
    world.occurrences().decide(*of(an_occurrence_timer(schedule, fire_at=NOON + HOUR)))


def abandoned(world: World, timer: Timer) -> None:
    """By the next fire, which finds it in the slot, and nothing that carries it on."""
    schedule = a_schedule(overlap=Overlap.FORBID)
    long_ago = NOON - 2 * SILENCE
    world.store(schedule, holder=str(job_id_of(timer.job)), holder_since=long_ago)
    world.ledger.rows[timer.job.key] = LedgerRow(
        state=State.SCHEDULED, due_at=long_ago, job_id=str(job_id_of(timer.job))
    )
    world.occurrences().decide(*of(an_occurrence_timer(schedule, fire_at=NOON + HOUR)))


def given_up(world: World, timer: Timer) -> None:
    """By the next fire, long after its worker died and its message was lost."""
    schedule = a_schedule(overlap=Overlap.FORBID)
    world.store(schedule, holder=str(job_id_of(timer.job)), holder_since=NOON)
    assert isinstance(world.ledger.claim(timer, owner="dead", lease_until=NOON + HOUR, now=NOON), Claimed)
    world.clock.tick(2 * SILENCE)
    world.occurrences().decide(*of(an_occurrence_timer(schedule, fire_at=world.clock.now())))


def given_up_by_its_chain(world: World, timer: Timer) -> None:
    """Of a schedule whose next fire waits for its end."""
    world.clock.tick(2 * SILENCE)
    occurrence = timer.job.occurrence
    assert occurrence is not None
    world.materialiser.revive(f"acme#{occurrence.schedule_id}")


def purged(world: World, timer: Timer) -> None:
    letter = a_dead_letter(timer, replayed_at=NOON)
    world.letters.put(letter)
    again = timer.replayed(due_at=NOON + HOUR)
    world.ledger.rows[timer.job.key] = LedgerRow(state=State.FAILED, attempt=1, fence=1, job_id=letter.job_id)
    world.ledger.replay(again, far=again, job_id=letter.job_id, fence=1, owner="r", now=NOON)
    world.purger().purge(letter.letter_id, caller="ann")


def skip_of_a_deleted_schedule(world: World, timer: Timer) -> None:
    """It was asked of a schedule of that name that was deleted before this one was created."""
    assert timer.job.occurrence is not None
    old = replace(timer.job.occurrence, version=-1)
    work(world, replace(timer, job=replace(timer.job, occurrence=old)))


def nothing(_: World, __: Timer) -> None:
    """There is nobody who could ask or deliver again."""


def of(timer: Timer) -> tuple[Timer, Any]:
    return timer, timer.job.occurrence


SOON, RIPE = NOON + HOUR, NOON - timedelta(minutes=6)

CALLERS: Mapping[str, Caller] = {
    **{
        f"the worker, of a job that is {delivery}": Caller(
            State.SUCCEEDED, a_plain(delivery=delivery), work, work, is_reported_again=delivery in LEDGERED
        )
        for delivery in Delivery
    },
    "the worker, of a run": Caller(State.SUCCEEDED, a_run(), work, work),
    "the worker, of a run that is at_most_once": Caller(
        State.SUCCEEDED, a_run(delivery=Delivery.AT_MOST_ONCE), work, work
    ),
    "a target that answered 202": Caller(State.SUCCEEDED, a_plain(), held_and_completed, completed),
    "a target that was done before its worker had noted that it goes on": Caller(
        State.SUCCEEDED, a_plain(), completed_before_it_was_held, completed
    ),
    "a target that completes a run": Caller(State.SUCCEEDED, a_run(), held_and_completed, completed),
    **{
        f"the worker, of a job that fails and is {delivery}": Caller(
            State.FAILED, a_plain(delivery=delivery), answering(NO), work, is_reported_again=delivery in LEDGERED
        )
        for delivery in Delivery
    },
    "the worker, of a run that fails": Caller(State.FAILED, a_run(), answering(NO), work),
    "the worker, of a run that fails and is at_most_once": Caller(
        State.FAILED, a_run(delivery=Delivery.AT_MOST_ONCE), answering(NO), work
    ),
    "a target that failed by itself": Caller(State.FAILED, a_plain(retry=ONCE), held_and_failed, failed_by_its_target),
    "a target that fails a run": Caller(State.FAILED, a_run(), held_and_failed, failed_by_its_target),
    "the worker, of a job that its workers died of": Caller(State.FAILED, a_plain(), died_and_worked, work),
    "the worker, of a run that its workers died of": Caller(State.FAILED, a_run(), died_and_worked, work),
    "the consumer of dead letters": Caller(State.FAILED, a_plain(), died_and_consumed, consumed),
    "the consumer of dead letters, of a run": Caller(State.FAILED, a_run(), died_and_consumed, consumed),
    "the consumer of dead letters, of a job that is at_least_once": Caller(
        State.FAILED, a_plain(delivery=Delivery.AT_LEAST_ONCE), begun_and_consumed, nothing, is_reported_again=False
    ),
    "the consumer of dead letters, of a run that is at_least_once": Caller(
        State.FAILED, a_run(delivery=Delivery.AT_LEAST_ONCE), begun_and_consumed, nothing, is_reported_again=False
    ),
    **{
        f"the scanner, of a row that cannot be sent and is {delivery}": Caller(
            State.FAILED,
            a_plain(delivery=delivery),
            scanned,
            scanned if delivery in LEDGERED else nothing,
            is_reported_again=delivery in LEDGERED,
        )
        for delivery in Delivery
    },
    "the scanner, of a run that cannot be sent": Caller(State.FAILED, a_run(), scanned, scanned),
    "the sweeper, of a straggler that cannot be sent": Caller(State.FAILED, a_plain(due_at=RIPE), swept, swept_again),
    "the worker, of a job that comes too late": Caller(State.EXPIRED, a_plain(expires_at=NOON), work, work),
    "the worker, of an at_most_once job that comes too late": Caller(
        State.EXPIRED, a_plain(expires_at=NOON, delivery=Delivery.AT_MOST_ONCE), work, work
    ),
    "the worker, of an at_least_once job that comes too late": Caller(
        State.EXPIRED, a_plain(expires_at=NOON, delivery=Delivery.AT_LEAST_ONCE), work, nothing, is_reported_again=False
    ),
    "the worker, of a job that was cancelled while it ran": Caller(
        State.CANCELLED, a_plain(retry=RetryPolicy(attempts=2)), cancelled_meanwhile, work
    ),
    "somebody, of a job that is near": Caller(State.CANCELLED, a_plain(), cancel, cancel),
    "somebody, of a run that is near": Caller(State.CANCELLED, a_run(), cancel, cancel),
    **{
        f"somebody, of a far job that is {delivery}": Caller(
            State.CANCELLED, a_plain(due_at=SOON, delivery=delivery), placed_and_cancelled, cancel
        )
        for delivery in Delivery
    },
    "an operation": Caller(State.CANCELLED, a_plain(due_at=SOON), operated, cancel),
    "the next fire, which replaces it": Caller(State.CANCELLED, a_fire, replaced, cancel),
    "the next fire, which finds it abandoned": Caller(State.CANCELLED, a_fire, abandoned, cancel),
    "the next fire, which finds that it is not running any more": Caller(State.CANCELLED, a_fire, given_up, cancel),
    "the chain that waits for its end": Caller(State.CANCELLED, an_awaited_run, given_up_by_its_chain, cancel),
    "the purge of a letter whose replay had not come": Caller(State.CANCELLED, a_plain(), purged, cancel),
    "the worker, of a fire of a paused schedule": Caller(State.SKIPPED, a_run(status=Status.PAUSED), work, work),
    "the worker, of a fire that was asked of a deleted schedule": Caller(
        State.SKIPPED, a_run(version=5), skip_of_a_deleted_schedule, skip_of_a_deleted_schedule
    ),
}

SPARED = (
    "the next fire, which replaces it",
    "the next fire, which finds it abandoned",
    "the next fire, which finds that it is not running any more",
    "the chain that waits for its end",
    "the worker, of a fire that was asked of a deleted schedule",
)
"""The schedule has ended it, or is another one by now."""


@pytest.fixture
def world() -> Listened:
    return Listened()


def drive(world: Listened, name: str) -> Timer:
    timer = CALLERS[name].timer(world)
    CALLERS[name].end(world, timer)
    return timer


def expected(name: str, timer: Timer) -> Heard:
    is_run = timer.job.occurrence is not None
    return {
        **TOLD[CALLERS[name].state],
        "pending": int(not is_run),
        "schedule": int(is_run and name not in SPARED),
    }


def test_every_end_has_a_caller_and_every_state_that_is_none_says_why():
    assert {caller.state for caller in CALLERS.values()} == set(TOLD)
    assert set(TOLD) | set(NO_ENDS) == TERMINAL


def test_nobody_else_writes_ends_into_the_trail():
    writers = {
        str(file.relative_to(FUNCTIONS))
        for file in FUNCTIONS.rglob("*.py")
        if re.search(r"\bEnding\(", file.read_text())
    }

    assert writers == {"domain/audit.py", "services/jobs/ends.py", "services/schedules/stops.py"}


@pytest.mark.parametrize("name", CALLERS)
def test_every_end_is_heard_once_by_everything_that_is_to_know(world: Listened, name: str):
    timer = drive(world, name)

    assert world.heard(timer, CALLERS[name].state) == expected(name, timer)


@pytest.mark.parametrize("name", CALLERS)
def test_an_end_whose_write_got_no_answer_is_heard_once(world: Listened, name: str):
    lossy: Any = AnswersLost(world.ledger)
    world.ledger = lossy

    timer = drive(world, name)

    assert world.heard(timer, CALLERS[name].state) == expected(name, timer)


@pytest.mark.parametrize("name", CALLERS)
def test_an_end_that_is_found_again_is_reported_to_the_audit_alone(world: Listened, name: str):
    caller, timer = CALLERS[name], drive(world, name)
    if not caller.is_reported_again:
        return

    caller.again(world, timer)

    assert world.heard(timer, caller.state) == expected(name, timer)
    assert world.again(timer, caller.state) == 1
