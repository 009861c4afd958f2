"""A job that has failed for good is given another budget of attempts: once, whoever asks and whenever somebody dies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.api.dead_letters.finder import DeadLetterFilter, DeadLetterFinder
from functions.api.dead_letters.replay import (
    FARTHEST,
    MOST_DEAD_LETTERS,
    ROW_IS_SURE,
    AlreadyReplayed,
    NotReplayed,
    Replayed,
    Replayer,
    Replays,
)
from functions.domain.dead_letters.dead_letter_id import DeadLetterId
from functions.domain.errors import (
    DeadLetterNotFound,
    InvalidInput,
    JobNotFailed,
    NotPlaced,
    NotReplayable,
    PayloadGone,
    QuotaExceeded,
    RateExceeded,
)
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.domain.instants import SECOND
from functions.domain.jobs.claims import LEDGER_LIFE, REQUEST_LIMIT, LedgerRow
from functions.domain.jobs.job import Delivery, Job, Payload, Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.lifecycle import State
from functions.domain.schedules.state import Status
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.domain.wheel import FAR_MARGIN, Wheel
from functions.ports.dead_letters import DeadLetter
from functions.ports.ready_queue import Rejected
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded
from functions.services.jobs.settler import Claim
from testkit.builders import (
    LOCAL_WHEEL,
    NOON,
    a_dead_letter,
    a_job,
    a_schedule,
    a_template,
    a_timer,
    an_occurrence_timer,
)
from testkit.observed import CrashError, DeathError, Watched
from testkit.scheduler import World, pass_time
from tests.unit.test_execute import a_message

ONCE = RetryPolicy(strategy=Strategy.FIXED, attempts=1, base=timedelta(seconds=10))
TWICE = replace(ONCE, attempts=2)
ACME = DeadLetterFilter(tenant="acme")
STEPS = ("letters.mark", "ledger.replay", "ready.send", "letters.delete")
DEATHS = [(step, when) for step in STEPS for when in ("before", "after")]
ALL_DEATHS = [*DEATHS, ("timers.delete", "before"), ("timers.delete", "after")]
GOES_ON = ALL_DEATHS[ALL_DEATHS.index(("ledger.replay", "after")) :]
"""After which the row of the job says that it goes on."""


class Operator(World):
    """The scheduler on fakes, with somebody who mends what failed in it."""

    def __init__(self, *, wheel: Wheel = LOCAL_WHEEL) -> None:
        super().__init__(wheel=wheel)
        self.is_mended = False
        self.targets.answer = self.answer

    def answer(self, _: str, __: Invocation) -> Outcome:
        return Succeeded() if self.is_mended else Failed("HTTP 500", "http_500")

    def replayer(self, *, watch: Callable[[str, Any], Any] = lambda _, port: port) -> Replayer:
        """watch: puts something around a port, by its name."""
        letters, ledger, ready, timers = (
            watch("letters", self.letters),
            watch("ledger", self.ledger),
            watch("ready", self.ready),
            watch("timers", self.timers),
        )
        return self.build(
            Replayer,
            special={
                "dead_letters": letters,
                "finder": self.build(DeadLetterFinder, dead_letters=letters),
                "gate": self.gate,
                "ledger": ledger,
                "placer": replace(self.placer, ready=ready, timers=timers),
                "timers": timers,
            },
        )

    def dying(self, step: str, when: str) -> Replayer:
        """Whose process dies at a step."""

        def die(at: str) -> Callable[[str], None]:
            def look(call: str) -> None:
                if (call, at) == (step, when):
                    raise DeathError

            return look

        return self.replayer(watch=lambda name, port: Watched(port, name, die("before"), die("after")))

    def failing(self, step: str) -> Replayer:
        """Whose store fails at a step."""

        def fail(call: str) -> None:
            if call == step:
                raise TimeoutError

        return self.replayer(watch=lambda name, port: Watched(port, name, fail, lambda _: None))

    def fail(self, *jobs: Job) -> list[DeadLetter]:
        """Submit jobs, and run them until each is a dead letter; in the order of the jobs."""
        known = set(self.letters.letters)
        self.ready.send([Timer(job=job, due_at=job.scheduled_at) for job in jobs])
        self.run()
        new = [letter for key, letter in self.letters.letters.items() if key not in known]
        by_identity = {letter.identity: letter for letter in new}
        assert len(new) == len(jobs)
        return [by_identity[job.identity] for job in jobs]

    def expire(self) -> None:
        """Wait until the ledger has let go of everything."""
        self.clock.tick(LEDGER_LIFE + timedelta(days=1))
        self.ledger.expire(self.clock.now())
        assert self.ledger.rows == {}

    def run(self) -> None:
        """Deliver until no message is left, moving the clock on to each."""
        while self.ready.messages:
            upcoming = min(message.visible_at for message in self.ready.messages.values())
            self.clock.tick(upcoming - self.clock.instant)
            self.receive_and_work()

    def replay(self, letter: DeadLetter) -> Replayed | AlreadyReplayed:
        return self.replayer().replay(letter.letter_id, caller="arn:aws:iam::1:user/ann")

    def replay_part(self, wanted: DeadLetterFilter = ACME, *, after: str = "", rate: float | None = None) -> Replays:
        return self.replayer().replay_part(wanted, after=after, rate=rate, caller="ann")

    def replay_all(self, wanted: DeadLetterFilter = ACME, *, rate: float | None = None) -> list[Replays]:
        """As the client goes on until nothing is left."""
        parts = [self.replay_part(wanted, rate=rate)]
        while (goes_on := parts[-1].found.goes_on) is not None:
            parts.append(self.replay_part(wanted, after=str(goes_on), rate=rate))
        return parts

    @property
    def audit(self) -> list[dict[str, object]]:
        return self.events("dead_letters_replayed")


@pytest.fixture
def world() -> Operator:
    return Operator()


def test_a_replayed_job_runs_again_and_its_dead_letter_is_gone(world: Operator):
    job = a_job(retry=TWICE)
    [letter] = world.fail(job)
    world.is_mended = True

    outcome = world.replay(letter)
    replayed_at = world.clock.now()
    world.run()

    assert outcome == Replayed(letter_id=letter.letter_id, job_id=str(job_id_of(job)), attempt=4, due_at=replayed_at)
    assert [call.attempt for call in world.calls] == [1, 2, 4]
    assert {call.idempotency_key for call in world.calls} == {job.key}
    assert (world.row(job).state, world.buried) == (State.SUCCEEDED, [])


def test_replays_take_from_the_rate_of_their_tenant_and_go_on_where_they_left_off(world: Operator):
    world.fail(*(a_job(retry=ONCE) for _ in range(5)))
    world.plans.plans["acme"] = TenantPlan(submission_rate=0.1, submission_burst=2)

    first = world.replay_part()
    assert len(first.outcomes) == 2
    assert first.found.goes_on is not None
    with pytest.raises(RateExceeded) as refused:
        world.replay_part(after=str(first.found.goes_on))
    assert refused.value.retry_after <= timedelta(seconds=10)
    with pytest.raises(RateExceeded):
        world.replay(world.buried[0])
    assert len(world.buried) == 3

    world.clock.tick(timedelta(minutes=1))
    second = world.replay_part(after=str(first.found.goes_on))
    world.clock.tick(timedelta(minutes=1))
    third = world.replay_part(after=str(second.found.goes_on))
    assert [len(second.outcomes), len(third.outcomes), third.found.goes_on] == [2, 1, None]


def test_a_replayed_job_waits_within_the_quota_of_its_tenant_until_its_end(world: Operator):
    one, other = world.fail(a_job(retry=ONCE), a_job(retry=ONCE))
    world.clock.tick(timedelta(days=3))
    world.plans.plans["acme"] = TenantPlan(max_pending=1)
    world.is_mended = True

    world.replay(one)
    with pytest.raises(QuotaExceeded):
        world.replay(other)
    world.run()
    world.tally.flush()
    world.clock.tick(timedelta(seconds=10))

    assert isinstance(world.replay(other), Replayed)


def test_until_its_next_attempt_a_replayed_job_is_retrying(world: Operator):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)

    world.replay(letter)

    assert (world.row(job).state, world.row(job).due_at) == (State.RETRYING, world.clock.now())


def test_a_replayed_job_has_a_budget_of_its_own_and_then_another_dead_letter(world: Operator):
    job = a_job(retry=TWICE)
    [letter] = world.fail(job)

    world.replay(letter)
    world.run()

    assert [call.attempt for call in world.calls] == [1, 2, 4, 5]
    [second] = world.buried
    assert (second.attempt, world.row(job).state) == (5, State.FAILED)
    world.is_mended = True
    assert isinstance(world.replay(second), Replayed)
    world.run()
    assert world.row(job).state is State.SUCCEEDED


def test_a_job_that_has_expired_since_runs_all_the_same(world: Operator):
    job = a_job(retry=ONCE, expires_at=NOON + timedelta(minutes=1))
    [letter] = world.fail(job)
    world.clock.tick(timedelta(hours=1))
    world.is_mended = True

    world.replay(letter)
    world.run()

    assert world.row(job).state is State.SUCCEEDED


def test_a_job_whose_ledger_row_has_expired_is_replayed_too(world: Operator):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    world.clock.tick(LEDGER_LIFE + timedelta(days=1))
    world.ledger.expire(world.clock.now())
    assert world.ledger.get(job.key) is None
    world.is_mended = True

    world.replay(letter)
    world.run()

    assert (world.row(job).state, world.calls[-1].attempt) == (State.SUCCEEDED, 3)


@pytest.mark.parametrize("expires_at", [None, NOON + SECOND])
def test_a_watchdog_of_the_attempt_that_failed_does_not_take_its_replay_over(world: Operator, expires_at: Any):
    job = a_job(retry=ONCE, expires_at=expires_at)
    timer = Timer(job=job, due_at=NOON)
    world.targets.answer = lambda *_: Pending()
    world.work(a_message(timer))
    [watchdog] = world.ready.sent
    running = world.row(job)
    assert running.lease_until is not None
    claim = Claim(running.owner, running.fence, running.lease_until)
    world.settler().fail(timer, claim, Failed("it said so", is_permanent=True))
    world.replay(world.buried[0])
    row = world.row(job)
    world.clock.tick(watchdog.due_at - world.clock.now())

    assert world.work(a_message(watchdog, "watchdog")) == []

    assert (world.row(job), world.buried) == (row, [])
    world.is_mended, world.targets.answer = True, world.answer
    world.run()
    assert (world.row(job).state, [call.attempt for call in world.calls]) == (State.SUCCEEDED, [1, 3])


def test_a_target_that_remembers_the_highest_fence_takes_the_replay_of_a_job_whose_row_has_expired(world: Operator):
    [letter] = world.fail(a_job(retry=TWICE))
    world.expire()

    world.replay(letter)
    world.run()

    assert letter.fence == 2
    assert [call.fence for call in world.calls] == [1, 2, 3, 4]


@pytest.mark.parametrize("step", ["ledger.replay", "letters.delete"])
def test_a_dead_letter_that_outlives_the_row_of_its_replay_stays_and_runs_nothing_twice(world: Operator, step: str):
    [letter] = world.fail(a_job(retry=ONCE))
    world.is_mended = True
    with pytest.raises(DeathError):
        world.dying(step, "before").replay(letter.letter_id, caller="ann")
    marked = world.buried
    world.run()
    calls = len(world.calls)
    world.expire()

    parts = world.replay_all(replace(ACME, since=NOON - SECOND))
    world.run()

    [not_replayed] = [outcome for part in parts for outcome in part.outcomes]
    assert isinstance(not_replayed, NotReplayed)
    assert isinstance(not_replayed.error, NotReplayable)
    assert "a replay of it began at 2027-03-01T12:00:00.000Z, and nothing says any more" in str(not_replayed.error)
    assert (len(world.calls), world.buried, world.ledger.rows) == (calls, marked, {})


def test_a_dead_letter_whose_payload_went_with_its_replay_is_forgotten_however_long_ago_that_was(world: Operator):
    world.payloads.objects["acme/x"] = '"large"'
    [letter] = world.fail(a_job(retry=ONCE, payload=Payload(pointer="acme/x")))
    world.is_mended = True
    with pytest.raises(DeathError):
        world.dying("letters.delete", "before").replay(letter.letter_id, caller="ann")
    world.run()
    world.expire()

    outcome = world.replay(letter)

    assert outcome == AlreadyReplayed(letter_id=letter.letter_id, job_id=letter.job_id, state=State.ABSENT)
    assert (world.buried, world.ledger.rows, len(world.calls)) == ([], {}, 2)


ANOTHER_LIFE = [
    LedgerRow(state=state, attempt=attempt, fence=1, due_at=NOON + timedelta(days=20))
    for attempt in (1, 2, 9)
    for state in sorted(set(State) - {State.ABSENT})
]


@pytest.mark.parametrize("row", ANOTHER_LIFE, ids=lambda row: f"{row.state}-{row.attempt}")
def test_the_dead_letter_of_a_key_that_was_used_again_stays_and_leaves_the_other_job_alone(
    world: Operator, row: LedgerRow
):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    world.expire()
    again = replace(row, job_id=str(job_id_of(replace(job, scheduled_at=NOON + timedelta(days=20)))))
    world.ledger.rows[job.key] = again

    for _ in range(2):
        with pytest.raises(JobNotFailed, match=f"a job that is {row.state}"):
            world.replay(letter)

    assert [kept.letter_id for kept in world.buried] == [letter.letter_id]
    assert (world.row(job), world.ready.messages) == (again, {})
    del world.ledger.rows[job.key]
    world.is_mended = True
    assert isinstance(world.replay(letter), Replayed)
    world.run()
    assert [call.fence for call in world.calls] == [1, 2]


@pytest.mark.parametrize("state", [State.CANCELLED, State.SKIPPED, State.EXPIRED, State.SUCCEEDED])
def test_a_row_that_knows_of_no_replay_takes_no_dead_letter_away(world: Operator, state: State):
    job = a_job(retry=TWICE)
    [letter] = world.fail(job)
    world.expire()
    world.ledger.rows[job.key] = LedgerRow(state=state, attempt=0, due_at=NOON, job_id=letter.job_id)

    with pytest.raises(JobNotFailed):
        world.replay(letter)

    assert [kept.letter_id for kept in world.buried] == [letter.letter_id]


@pytest.mark.parametrize(("step", "when"), ALL_DEATHS)
def test_whenever_the_replay_of_a_job_without_a_row_dies_it_can_be_repeated(world: Operator, step: str, when: str):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    world.expire()
    world.is_mended = True
    with pytest.raises(DeathError):
        world.dying(step, when).replay(letter.letter_id, caller="ann")
    world.clock.tick(ROW_IS_SURE - SECOND)

    world.replay(letter)
    world.run()

    assert [call.attempt for call in world.calls] == [1, 3]
    assert (world.row(job).state, world.buried) == (State.SUCCEEDED, [])


def test_a_dead_letter_that_is_purged_while_it_is_replayed_is_not_found(world: Operator):
    [letter] = world.fail(a_job(retry=ONCE))
    row = world.ledger.rows[letter.timer.job.key] if letter.timer else None

    def meanwhile(call: str) -> None:
        if call == "letters.mark":
            world.letters.delete(letter.letter_id)

    replayer = world.replayer(watch=lambda name, port: Watched(port, name, meanwhile, lambda _: None))
    with pytest.raises(DeadLetterNotFound):
        replayer.replay(letter.letter_id, caller="ann")

    assert (list(world.ledger.rows.values()), world.ready.messages) == ([row], {})


def test_an_at_least_once_job_whose_dead_letter_another_operator_has_replayed_is_not_replayed_again(world: Operator):
    [letter] = world.fail(a_job(retry=ONCE, delivery=Delivery.AT_LEAST_ONCE))

    def meanwhile(call: str) -> None:
        if call == "letters.mark" and not world.audit:
            world.replay(letter)

    replayer = world.replayer(watch=lambda name, port: Watched(port, name, meanwhile, lambda _: None))
    with pytest.raises(DeadLetterNotFound):
        replayer.replay(letter.letter_id, caller="ann")

    assert len(world.ready.messages) == 1


@pytest.mark.parametrize(("step", "when"), ALL_DEATHS)
def test_whenever_a_replay_dies_it_can_be_repeated_and_the_job_runs_once_more(world: Operator, step: str, when: str):
    job, letter = dies_while_it_replays(world, step, when)
    world.clock.tick(SECOND)

    world.replay(letter)
    world.run()

    assert [call.attempt for call in world.calls] == [1, 3]
    assert (world.row(job).state, world.buried) == (State.SUCCEEDED, [])


@pytest.mark.parametrize(("step", "when"), ALL_DEATHS)
def test_whenever_a_replay_dies_the_job_may_have_run_before_it_is_repeated(world: Operator, step: str, when: str):
    job, letter = dies_while_it_replays(world, step, when)
    world.run()

    outcome = world.replay(letter)
    world.run()

    was_placed = ALL_DEATHS.index((step, when)) >= ALL_DEATHS.index(("ready.send", "after"))
    assert isinstance(outcome, AlreadyReplayed if was_placed else Replayed)
    assert [call.attempt for call in world.calls] == [1, 3]
    assert (world.row(job).state, world.buried) == (State.SUCCEEDED, [])


@pytest.mark.parametrize(("step", "when"), DEATHS)
@pytest.mark.parametrize(("other_step", "other_when"), DEATHS)
def test_two_replays_at_once_of_which_one_dies_lose_nothing_and_run_nothing_twice(
    world: Operator, step: str, when: str, other_step: str, other_when: str
):
    """The other stands at any of its steps while the first goes from its beginning to its death; then it goes on."""
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    world.is_mended = True
    dying = world.dying(step, when)

    def meanwhile(at: str) -> Callable[[str], None]:
        def look(call: str) -> None:
            if (call, at) == (other_step, other_when):
                # Its clock is ahead: what it wrote must not be put off.
                world.clock.tick(SECOND)
                with pytest.raises(DeathError):
                    dying.replay(letter.letter_id, caller="bob")

        return look

    if (other_step, other_when) == ("letters.delete", "after"):
        world.replay(letter)
    else:
        other = world.replayer(watch=lambda name, port: Watched(port, name, meanwhile("before"), meanwhile("after")))
        other.replay(letter.letter_id, caller="ann")
    world.run()

    assert [call.attempt for call in world.calls] == [1, 3]
    assert (world.row(job).state, world.buried) == (State.SUCCEEDED, [])


@pytest.mark.parametrize(("step", "when"), ALL_DEATHS)
@pytest.mark.parametrize("has_row", [True, False])
def test_whenever_a_replay_dies_its_job_goes_on_by_itself_or_has_failed_as_before(
    world: Operator, step: str, when: str, *, has_row: bool
):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    if not has_row:
        world.expire()
    row = world.ledger.get(job.key)
    world.is_mended = True
    with pytest.raises(DeathError):
        world.dying(step, when).replay(letter.letter_id, caller="ann")

    pass_time(world, until=world.clock.now() + timedelta(minutes=10))

    if (step, when) in GOES_ON:
        assert (world.row(job).state, [call.attempt for call in world.calls]) == (State.SUCCEEDED, [1, 3])
    else:
        assert (world.ledger.get(job.key), len(world.calls), len(world.buried)) == (row, 1, 1)


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_replay_that_dies_on_the_way_does_not_keep_the_next_fire_from_running(world: Operator, deaths: int):
    schedule = a_schedule(overlap=Overlap.FORBID, job=a_template(retry=ONCE))
    world.store(schedule)
    [letter] = world.fail(an_occurrence_timer(schedule).job)
    world.is_mended = True
    for _ in range(deaths):
        world.clock.tick(SECOND)
        with pytest.raises(DeathError):
            world.dying("ready.send", "before").replay(letter.letter_id, caller="ann")
    following = an_occurrence_timer(schedule, fire_at=NOON + timedelta(hours=1), index=1)

    pass_time(world, until=NOON + timedelta(hours=1))
    world.ready.send([following])
    world.run()

    assert world.row(following.job).state is State.SUCCEEDED


def test_those_of_many_that_a_death_left_behind_run_each_at_its_time(world: Operator):
    jobs = [a_job(retry=ONCE) for _ in range(6)]
    world.fail(*jobs)
    world.is_mended = True
    begin = world.clock.now()
    with pytest.raises(DeathError):
        world.dying("timers.put", "before").replay_part(ACME, after="", rate=1 / 120, caller="ann")
    assert (len(world.ready.messages), len(rows_of(world)), len(world.buried)) == (0, 6, 6)

    pass_time(world, until=begin + timedelta(minutes=20))

    assert [world.row(job).state for job in jobs] == [State.SUCCEEDED] * 6
    called = [(called_at - begin) // SECOND for called_at, _, _, _ in world.targets.effects[6:]]
    assert called == [200, 200, 240, 360, 480, 600]


def test_a_far_row_that_is_not_needed_any_more_is_taken_back(world: Operator):
    world.fail(*(a_job(retry=ONCE) for _ in range(3)))

    world.replay_part()

    assert (len(world.ready.messages), rows_of(world)) == (3, [])


def test_what_is_due_far_ahead_keeps_its_far_row(world: Operator):
    world.fail(*(a_job(retry=ONCE) for _ in range(3)))

    outcomes = world.replay_part(rate=1 / 180).outcomes

    due_ats = [outcome.due_at for outcome in outcomes if isinstance(outcome, Replayed)]
    assert (len(world.ready.messages), rows_of(world)) == (1, due_ats[1:])


@pytest.mark.parametrize("microseconds", range(-2, 3))
def test_an_attempt_that_is_due_when_its_far_row_would_be_keeps_it(world: Operator, microseconds: int):
    job = a_job(retry=ONCE)
    world.fail(job)
    lead = LOCAL_WHEEL.guard + LOCAL_WHEEL.skew + REQUEST_LIMIT + FAR_MARGIN
    world.fail(a_job(retry=ONCE))
    world.is_mended = True

    world.replay_part(rate=1 / (lead + timedelta(microseconds=microseconds)).total_seconds())
    pass_time(world, until=world.clock.now() + timedelta(minutes=10))

    assert [row.state for row in world.ledger.rows.values()] == [State.SUCCEEDED] * 2


def test_what_a_cap_holds_back_has_one_far_row(world: Operator):
    jobs = [a_job(retry=ONCE) for _ in range(5)]
    world.fail(*jobs)
    world.is_mended = True
    world.plans.plans["acme"] = TenantPlan(execution_rate=1 / 60)

    world.replay_part()

    assert len(world.ready.messages) + len(rows_of(world)) == 5
    pass_time(world, until=world.clock.now() + timedelta(minutes=30))
    assert [world.row(job).state for job in jobs] == [State.SUCCEEDED] * 5


@pytest.mark.parametrize("seconds", [0, 5, 15, 20, 24.999, 25, 25.001, 29.999, 30])
def test_what_a_pause_holds_back_of_a_slow_request_keeps_its_row(world: Operator, seconds: float):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    world.is_mended = True
    world.plans.plans["acme"] = TenantPlan(status=TenantStatus.PAUSED)

    def stall(call: str) -> None:
        if call == "ledger.replay":
            world.clock.tick(timedelta(seconds=seconds))

    replayer = world.replayer(watch=lambda name, port: Watched(port, name, lambda _: None, stall))
    replayer.replay(letter.letter_id, caller="ann")

    assert len(rows_of(world)) == 1
    world.plans.plans = {}
    pass_time(world, until=world.clock.now() + timedelta(minutes=10))
    assert world.row(job).state is State.SUCCEEDED


def test_a_far_row_that_stays_is_reported_and_runs_nothing_twice(world: Operator):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    world.is_mended = True

    def fail(call: str) -> None:
        if call == "timers.delete":
            raise CrashError

    replayer = world.replayer(watch=lambda name, port: Watched(port, name, fail, lambda _: None))
    assert isinstance(replayer.replay(letter.letter_id, caller="ann"), Replayed)
    pass_time(world, until=world.clock.now() + timedelta(minutes=10))

    assert world.events("far_row_stays") == [{"job_id": letter.job_id, "error": "CrashError"}]
    assert (world.row(job).state, [call.attempt for call in world.calls]) == (State.SUCCEEDED, [1, 3])
    assert world.buried == []


def test_a_far_row_that_comes_when_its_replay_has_failed_again_runs_nothing(world: Operator):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    world.clock.tick(SECOND)
    with pytest.raises(DeathError):
        world.dying("ready.send", "after").replay(letter.letter_id, caller="ann")
    world.run()
    second = world.buried[-1]
    assert second.attempt == 3

    pass_time(world, until=world.clock.now() + timedelta(minutes=10))

    assert ([call.attempt for call in world.calls], world.row(job).state) == ([1, 3], State.FAILED)
    assert [kept.letter_id for kept in world.buried] == [letter.letter_id, second.letter_id]


def test_a_replay_that_died_before_a_long_outage_of_the_scanners_runs_after_it(world: Operator):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    pass_time(world, until=world.clock.now() + timedelta(minutes=5))
    world.is_mended = True
    with pytest.raises(DeathError):
        world.dying("ready.send", "before").replay(letter.letter_id, caller="ann")

    world.clock.tick(timedelta(days=13, hours=23))
    world.rows.expire(world.clock.now())
    world.ledger.expire(world.clock.now())
    pass_time(world, until=world.clock.now() + timedelta(minutes=4))

    assert (world.row(job).state, [call.attempt for call in world.calls]) == (State.SUCCEEDED, [1, 3])


def test_a_clock_that_may_write_no_far_rows_replays_nothing(world: Operator):
    job, rowless = a_job(retry=ONCE), a_job(retry=ONCE, delivery=Delivery.AT_LEAST_ONCE)
    letter, other = world.fail(job, rowless)
    row = world.row(job)
    world.clock.known_offset = LOCAL_WHEEL.skew

    with pytest.raises(NotPlaced, match="clock"):
        world.replay(letter)

    assert (world.row(job), world.buried[0], world.ready.messages, rows_of(world)) == (row, letter, {}, [])
    assert isinstance(world.replay(other), Replayed)


def test_a_dead_letter_whose_job_has_succeeded_since_is_forgotten_and_the_answer_says_so(world: Operator):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    world.is_mended = True
    world.replay(letter)
    world.run()
    world.letters.put(letter)

    outcome = world.replay(letter)

    assert outcome == AlreadyReplayed(letter_id=letter.letter_id, job_id=letter.job_id, state=State.SUCCEEDED)
    assert (world.buried, world.ready.messages) == ([], {})


def test_a_dead_letter_whose_job_has_failed_again_is_forgotten_and_the_next_one_stays(world: Operator):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    world.clock.tick(SECOND)
    world.replay(letter)
    world.run()
    [second] = world.buried
    world.letters.put(letter)

    outcome = world.replay(letter)

    assert isinstance(outcome, AlreadyReplayed)
    assert (outcome.state, world.buried, world.ready.messages) == (State.FAILED, [second], {})


def test_a_replayed_job_that_was_cancelled_is_not_replayed_again(world: Operator):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    world.replay(letter)
    assert world.canceller().cancel(job_id_of(job))
    world.letters.put(letter)

    outcome = world.replay(letter)
    world.run()

    assert isinstance(outcome, AlreadyReplayed)
    assert (outcome.state, len(world.calls)) == (State.CANCELLED, 1)


def test_asking_again_after_a_lost_answer_says_that_the_job_goes_on(world: Operator):
    [letter] = world.fail(a_job(retry=ONCE))
    world.replay(letter)

    outcome = world.replay(letter)

    assert outcome == AlreadyReplayed(letter_id=letter.letter_id, job_id=letter.job_id, state=State.RETRYING)
    assert len(world.ready.messages) == 1


def test_a_dead_letter_that_was_purged_is_not_found(world: Operator):
    [letter] = world.fail(a_job(retry=ONCE))
    world.letters.delete(letter.letter_id)

    with pytest.raises(DeadLetterNotFound):
        world.replay(letter)


def test_a_dead_letter_that_never_was_is_not_found(world: Operator):
    with pytest.raises(DeadLetterNotFound):
        world.replayer().replay(DeadLetterId(tenant=NO_TENANT, dead_at=NOON, identity="x"), caller="ann")


@pytest.mark.parametrize("state", [State.SCHEDULED, State.RUNNING, State.RETRYING])
def test_a_job_that_is_under_way_by_another_submission_is_left_alone(world: Operator, state: State):
    timer = a_timer(attempt=3)
    letter = a_dead_letter(timer)
    world.letters.put(letter)
    row = LedgerRow(state=state, attempt=1 if state is not State.SCHEDULED else 0, due_at=NOON)
    world.ledger.rows[timer.job.key] = row

    with pytest.raises(JobNotFailed, match=f"is {state}: it was submitted again"):
        world.replay(letter)

    marked = replace(letter, replayed_at=NOON)
    assert (world.row(timer.job), world.buried, world.ready.messages) == (row, [marked], {})


def test_a_job_whose_payload_is_gone_is_refused_and_nothing_changes(world: Operator):
    job, letter = a_failed_job_with_a_large_payload(world)
    world.payloads.delete("acme/x")
    row = world.row(job)

    with pytest.raises(PayloadGone, match="submit it anew"):
        world.replay(letter)

    assert (world.row(job), world.buried, world.ready.messages) == (row, [letter], {})


def test_a_job_that_has_succeeded_since_misses_no_payload(world: Operator):
    _, letter = a_failed_job_with_a_large_payload(world)
    world.is_mended = True
    world.replay(letter)
    world.run()
    assert world.payloads.objects == {}
    world.letters.put(letter)

    assert isinstance(world.replay(letter), AlreadyReplayed)


def test_a_job_with_a_large_payload_is_replayed_with_it(world: Operator):
    _, letter = a_failed_job_with_a_large_payload(world)
    world.is_mended = True

    world.replay(letter)
    world.run()

    assert [payload for _, _, payload, _ in world.targets.effects] == ['"large"'] * 2


def test_what_tickwheel_did_not_write_cannot_be_replayed(world: Operator):
    foreign = DeadLetter(tenant=NO_TENANT, identity="m", dead_at=NOON, error="undecodable", raw="?")
    world.letters.put(foreign)

    with pytest.raises(NotReplayable, match="holds no job"):
        world.replay(foreign)

    assert world.buried == [foreign]


def test_an_at_most_once_job_is_never_tried_again(world: Operator):
    letter = a_dead_letter(a_timer(delivery=Delivery.AT_MOST_ONCE))
    world.letters.put(letter)

    with pytest.raises(NotReplayable, match="at_most_once"):
        world.replay(letter)

    assert (world.buried, world.ledger.rows, world.ready.messages) == ([letter], {}, {})


def test_an_at_least_once_job_is_placed_again_without_a_row(world: Operator):
    [letter] = world.fail(a_job(retry=ONCE, delivery=Delivery.AT_LEAST_ONCE))
    world.is_mended = True

    assert isinstance(world.replay(letter), Replayed)
    world.run()

    assert ([call.attempt for call in world.calls], world.buried, world.ledger.rows) == ([1, 3], [], {})


@pytest.mark.parametrize(("step", "when"), [death for death in DEATHS if death[0] != "ledger.replay"])
def test_whenever_the_replay_of_an_at_least_once_job_dies_it_runs_at_least_once(world: Operator, step: str, when: str):
    [letter] = world.fail(a_job(retry=ONCE, delivery=Delivery.AT_LEAST_ONCE))
    world.is_mended = True
    with pytest.raises(DeathError):
        world.dying(step, when).replay(letter.letter_id, caller="ann")

    world.replay_all()
    world.run()

    assert len(world.calls) >= 2
    assert world.buried == []


def test_an_at_least_once_job_without_its_payload_is_refused(world: Operator):
    letter = a_dead_letter(a_timer(delivery=Delivery.AT_LEAST_ONCE, payload=Payload(pointer="acme/x")))
    world.letters.put(letter)

    with pytest.raises(PayloadGone):
        world.replay(letter)

    assert (world.buried, world.ready.messages) == ([letter], {})


def test_a_job_that_no_queue_takes_keeps_its_dead_letter_and_can_be_replayed_later(world: Operator):
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    world.is_mended = True
    world.ready.refuses = lambda timer: Rejected(timer, "throttled", is_permanent=False)
    with pytest.raises(NotPlaced, match="throttled"):
        world.replay(letter)
    assert [kept.letter_id for kept in world.buried] == [letter.letter_id]
    world.ready.refuses = lambda _: None

    world.replay(letter)
    world.run()

    assert world.row(job).state is State.SUCCEEDED


def test_a_fire_is_not_admitted_again_and_leaves_its_schedule_paused(world: Operator):
    schedule = a_schedule(overlap=Overlap.FORBID, pause_after_failures=1, job=a_template(retry=ONCE))
    world.store(schedule)
    timer = an_occurrence_timer(schedule)
    [letter] = world.fail(timer.job)
    assert world.state(schedule).status is Status.PAUSED
    world.is_mended = True

    world.replay(letter)
    world.run()

    assert world.row(timer.job).state is State.SUCCEEDED
    assert world.state(schedule).status is Status.PAUSED


def test_a_run_that_succeeds_after_its_replay_ends_a_row_of_failures(world: Operator):
    schedule = a_schedule(pause_after_failures=2, job=a_template(retry=ONCE))
    world.store(schedule)
    [letter] = world.fail(an_occurrence_timer(schedule).job)
    assert len(world.state(schedule).failures) == 1
    world.is_mended = True

    world.replay(letter)
    world.run()

    assert len(world.state(schedule).failures) == 0


def test_a_failure_is_counted_once_however_often_its_run_is_replayed(world: Operator):
    schedule = a_schedule(pause_after_failures=2, job=a_template(retry=ONCE))
    world.store(schedule)
    [letter] = world.fail(an_occurrence_timer(schedule).job)

    world.replay(letter)
    world.run()

    assert len(world.buried) == 1
    assert (world.state(schedule).status, len(world.state(schedule).failures)) == (Status.ACTIVE, 1)


def test_a_replayed_run_has_the_slot_again_that_nobody_took(world: Operator):
    schedule = a_schedule(overlap=Overlap.FORBID, job=a_template(retry=ONCE))
    world.store(schedule)
    [letter] = world.fail(an_occurrence_timer(schedule).job)
    world.replay(letter)
    following = an_occurrence_timer(schedule, fire_at=NOON + timedelta(hours=1), index=1)

    world.ready.messages.clear()
    world.clock.tick(timedelta(hours=1))
    world.ready.send([following])
    world.run()

    assert world.row(following.job).state is State.SKIPPED


def test_many_are_replayed_by_a_filter_and_the_others_stay(world: Operator):
    meant = [a_job(retry=ONCE, tags=("eu",)) for _ in range(3)]
    others = [a_job(retry=ONCE), a_job(retry=ONCE, tags=("eu",), tenant="globex")]
    letters = world.fail(*meant, *others)
    world.is_mended = True

    [part] = world.replay_all(replace(ACME, tag="eu"))
    world.run()

    assert [type(outcome) for outcome in part.outcomes] == [Replayed] * 3
    assert [world.row(job).state for job in meant] == [State.SUCCEEDED] * 3
    assert world.buried == letters[3:]


def test_a_request_replays_a_bounded_number_and_the_next_goes_on(world: Operator):
    letters = [a_dead_letter(a_timer(), dead_at=NOON - number * SECOND) for number in range(MOST_DEAD_LETTERS + 7)]
    for letter in letters:
        world.letters.put(letter)

    parts = world.replay_all()

    assert [len(part.outcomes) for part in parts] == [MOST_DEAD_LETTERS, 7]
    assert {outcome.letter_id for part in parts for outcome in part.outcomes} == {
        letter.letter_id for letter in letters
    }
    assert (world.buried, len(world.ready.messages)) == ([], MOST_DEAD_LETTERS + 7)


def test_a_request_that_takes_long_ends_early_and_the_next_goes_on(world: Operator):
    for number in range(120):
        world.letters.put(a_dead_letter(a_timer(), dead_at=NOON - number * SECOND))
    world.ready.send_takes = timedelta(seconds=11)

    parts = world.replay_all()

    assert [len(part.outcomes) for part in parts] == [50, 50, 20]
    assert (world.buried, len(world.ready.messages)) == ([], 120)


def test_replaying_many_again_replays_nothing_twice(world: Operator):
    jobs = [a_job(retry=ONCE) for _ in range(5)]
    letters = world.fail(*jobs)
    world.is_mended = True
    world.replay_all()
    for letter in letters:
        world.letters.put(letter)  # as if it had died before it forgot them

    [again] = world.replay_all()
    world.run()
    for letter in letters:
        world.letters.put(letter)
    [and_again] = world.replay_all()
    world.run()

    assert {type(outcome) for outcome in again.outcomes} == {Replayed}
    assert {type(outcome) for outcome in and_again.outcomes} == {AlreadyReplayed}
    assert len(world.calls) == 2 * len(jobs)
    assert world.buried == []


def test_two_operators_at_once_replay_nothing_twice(world: Operator):
    jobs = [a_job(retry=ONCE) for _ in range(5)]
    world.fail(*jobs)
    world.is_mended = True

    def meanwhile(call: str) -> None:
        if call == "ready.send" and not world.audit:
            world.clock.tick(SECOND)
            world.replay_all()

    mine = world.replayer(watch=lambda name, port: Watched(port, name, meanwhile, lambda _: None))
    mine.replay_part(ACME, after="", rate=None, caller="ann")
    world.run()

    assert sorted(call.attempt for call in world.calls) == [1] * 5 + [3] * 5
    assert {world.row(job).state for job in jobs} == {State.SUCCEEDED}
    assert world.buried == []


def test_one_dead_letter_that_cannot_be_replayed_does_not_hold_up_the_others(world: Operator):
    good = a_job(retry=ONCE)
    world.fail(good)
    gone = a_dead_letter(a_timer(payload=Payload(pointer="acme/gone")), dead_at=NOON - SECOND)
    world.letters.put(gone)

    [part] = world.replay_all()

    assert [type(outcome) for outcome in part.outcomes] == [Replayed, NotReplayed]
    assert world.buried == [gone]


def test_a_store_that_fails_learns_of_the_dead_letter_that_it_failed_for(world: Operator):
    letter = a_dead_letter(a_timer())
    world.letters.put(letter)

    replayer = world.failing("ledger.replay")
    part = replayer.replay_part(ACME, after="", rate=None, caller="ann")

    [outcome] = part.outcomes
    assert isinstance(outcome, NotReplayed)
    assert "a store failed: TimeoutError" in str(outcome.error)
    assert world.buried == [replace(letter, replayed_at=NOON)]


def test_a_dead_letter_that_could_not_be_forgotten_has_been_replayed_all_the_same(world: Operator):
    [letter] = world.fail(a_job(retry=ONCE))
    world.is_mended = True

    replayer = world.failing("letters.delete")
    assert isinstance(replayer.replay(letter.letter_id, caller="ann"), Replayed)
    world.run()

    assert isinstance(world.replay(letter), AlreadyReplayed)
    assert (len(world.calls), world.buried) == (2, [])


def test_replays_are_staggered_over_all_the_requests_of_an_operation(world: Operator):
    count = MOST_DEAD_LETTERS + 50
    for number in range(count):
        world.letters.put(a_dead_letter(a_timer(), dead_at=NOON - number * SECOND))
    rate = 4.0

    parts = world.replay_all(rate=rate)

    due_ats = [outcome.due_at for part in parts for outcome in part.outcomes if isinstance(outcome, Replayed)]
    assert [due_at - NOON for due_at in due_ats] == [number * SECOND / rate for number in range(count)]


def test_a_staggered_replay_that_is_far_ahead_waits_in_the_far_ring(world: Operator):
    jobs = [a_job(retry=ONCE) for _ in range(2)]
    world.fail(*jobs)

    [part] = world.replay_all(rate=1 / 600)

    assert len(world.ready.messages) == 1
    [far] = [timer for puts in world.timers.puts for timer in puts]
    assert (far.attempt, far.due_at - world.clock.now()) == (3, timedelta(minutes=10))
    assert len(part.outcomes) == 2


def test_a_pause_between_two_requests_is_not_made_up_for(world: Operator):
    for number in range(MOST_DEAD_LETTERS + 1):
        world.letters.put(a_dead_letter(a_timer(), dead_at=NOON - number * SECOND))
    first = world.replay_part(rate=100)
    world.clock.tick(timedelta(hours=1))

    last = world.replay_part(after=str(first.found.goes_on), rate=100)

    [outcome] = last.outcomes
    assert isinstance(outcome, Replayed)
    assert outcome.due_at == NOON + timedelta(hours=1)


def test_nothing_is_replayed_further_ahead_than_twelve_hours(world: Operator):
    for number in range(30):
        world.letters.put(a_dead_letter(a_timer(), dead_at=NOON - number * SECOND))
    rate = 1 / 3_600

    first = world.replay_part(rate=rate)
    with pytest.raises(InvalidInput, match="more than 12 hours"):
        world.replay_part(after=str(first.found.goes_on), rate=rate)

    assert len(first.outcomes) == FARTHEST // timedelta(hours=1) + 1
    assert len(world.buried) == 30 - len(first.outcomes)
    world.clock.tick(timedelta(hours=6))
    later = world.replay_part(after=str(first.found.goes_on), rate=rate)
    assert len(later.outcomes) == 6


def test_each_replay_leaves_one_line_with_who_and_what(world: Operator):
    [letter] = world.fail(a_job(retry=ONCE))

    world.replay(letter)

    [line] = world.audit
    assert line == {
        "caller": "arn:aws:iam::1:user/ann",
        "tenant": "acme",
        "matched": 1,
        "replayed": 1,
        "already_replayed": 0,
        "failed": 0,
        "dead_letters": [str(letter.letter_id)],
    }
    assert world.journal.counts["dead_letters_replayed"] == 1


def test_a_replay_that_is_refused_leaves_a_line_too(world: Operator):
    foreign = DeadLetter(tenant=NO_TENANT, identity="m", dead_at=NOON, error="undecodable", raw="?")
    world.letters.put(foreign)

    with pytest.raises(NotReplayable):
        world.replay(foreign)

    [line] = world.audit
    assert (line["tenant"], line["failed"], line["dead_letters"]) == (NO_TENANT, 1, [])


def test_the_line_of_many_says_the_filter_without_what_may_be_a_secret(world: Operator):
    letters = world.fail(*(a_job(retry=ONCE, target="https://example.com/hook?key=s3cret") for _ in range(2)))
    wanted = replace(ACME, since=NOON - SECOND, target="https://example.com/hook?key=s3cret", error_class="http_500")

    world.replay_part(wanted)

    [line] = world.audit
    assert line["filter"] == {
        "since": "2027-03-01T11:59:59.000Z",
        "target": "https://example.com",
        "error_class": "http_500",
    }
    assert (line["matched"], line["replayed"]) == (2, 2)
    assert line["dead_letters"] == [
        str(letter.letter_id) for letter in sorted(letters, key=_newest_first, reverse=True)
    ]
    assert "s3cret" not in str(world.journal.events)


def rows_of(world: World) -> list[datetime]:
    """When the rows of the far ring are due."""
    pages = [world.rows.read(bucket, shard, limit=100) for bucket, shard in world.rows.rows]
    return sorted(row.timer.due_at for page in pages for row in page.rows if row.timer is not None)


def _newest_first(letter: DeadLetter) -> Any:
    return letter.dead_at, letter.identity


def dies_while_it_replays(world: Operator, step: str, when: str) -> tuple[Job, DeadLetter]:
    """A job that would succeed by now, and its dead letter, whose replay died."""
    job = a_job(retry=ONCE)
    [letter] = world.fail(job)
    world.is_mended = True
    with pytest.raises(DeathError):
        world.dying(step, when).replay(letter.letter_id, caller="ann")
    return job, letter


def a_failed_job_with_a_large_payload(world: Operator) -> tuple[Job, DeadLetter]:
    job = a_job(retry=ONCE, payload=Payload(pointer="acme/x"))
    world.payloads.objects["acme/x"] = '"large"'
    [letter] = world.fail(job)
    return job, letter
