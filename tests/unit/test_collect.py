"""Collections: jobs of a key are given to their target together."""

import itertools
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.domain.errors import InvalidJob
from functions.domain.far_ring.timer_record import decode_timer, encode_timer
from functions.domain.instants import DAY, HOUR, MINUTE, SECOND
from functions.domain.jobs.callbacks import Callbacks
from functions.domain.jobs.claims import LEASE_MARGIN
from functions.domain.jobs.collect import DEFAULT_MEMBERS, Collect, read_collect, write_collect
from functions.domain.jobs.collection import (
    ROW_MEMBERS,
    collection_of,
    count_of,
    digest_of,
    in_rows,
    member_identity,
    members_of,
    place_of,
    release_in,
    release_named,
    release_of,
)
from functions.domain.jobs.job import Payload, Timer
from functions.domain.jobs.job_id import job_id_of, parse_job_id
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.lifecycle import State
from functions.domain.operations.selection import is_selected
from functions.domain.schedules.collect_times import check_times
from functions.domain.schedules.collect_times import closes_at as closing_of
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded
from testkit.builders import LOCAL_WHEEL, NOON, a_filter, a_job, a_submission, a_timer, an_operation
from testkit.observed import CrashError, DeathError, Watched
from testkit.scheduler import World, pass_time
from tests.short_run import one_in

HOURLY = Collect(key="export", window=HOUR)
LATER = RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=HOUR, cap=HOUR)
"""Not within the minutes that a test looks at."""


@pytest.fixture
def world() -> World:
    return World()


def collected(collect: Collect = HOURLY, **given: Any) -> Timer:
    """A job that is collected, whose identity says so as that of one that was submitted without a key."""
    job = a_job(collect=collect, **given)
    return Timer.first_of(a_job(collect=collect, **{**given, "identity": member_identity(job, unique=job.identity)}))


def put(world: World, *timers: Timer) -> None:
    assert [placement.ring is not None for placement in world.placer.place(timers)] == [True] * len(timers)


def sent(world: World) -> list[list[dict[str, Any]]]:
    """What each call of the target was given."""
    return [json.loads(payload or "") for _, _, payload, _ in world.targets.effects]


def keys_of(*timers: Timer) -> set[str]:
    return {timer.job.key for timer in timers}


def answering(world: World, **said: Any) -> None:
    text = json.dumps(said)
    world.targets.answer = lambda *_: Succeeded(text, text)


def state_of(world: World, timer: Timer) -> State:
    row = world.ledger.get(timer.job.key)
    return row.state if row is not None else State.ABSENT


def test_jobs_of_a_key_are_given_together_when_the_window_closes(world: World):
    timers = [collected() for _ in range(5)]
    put(world, *timers)

    pass_time(world, until=NOON + 59 * MINUTE)
    assert world.calls == []
    pass_time(world, until=NOON + 62 * MINUTE)

    (jobs,) = sent(world)
    assert {job["key"] for job in jobs} == keys_of(*timers)
    assert {job["id"] for job in jobs} == {str(job_id_of(timer.job)) for timer in timers}
    assert {state_of(world, timer) for timer in timers} == {State.SUCCEEDED}
    assert not any(world.collections.kept.values())


def test_what_a_release_sends_of_a_job_is_its_id_key_attempt_time_and_payload(world: World):
    timer = collected(Collect(key="export", window=SECOND), payload=Payload(text='{"n": 1.50}'))
    put(world, timer)

    pass_time(world, until=NOON + MINUTE)

    assert '"payload": {"n": 1.50}' in (world.targets.effects[0][2] or "")
    assert sent(world) == [
        [
            {
                "id": str(job_id_of(timer.job)),
                "key": timer.job.key,
                "attempt": 1,
                "scheduled_at": "2027-03-01T12:00:00.000Z",
                "payload": {"n": 1.5},
            }
        ]
    ]


def test_a_job_that_is_not_collected_costs_nothing_of_it(world: World):
    put(world, a_timer())

    pass_time(world, until=NOON + MINUTE)

    assert (world.collections.reads, world.collections.writes) == (0, 0)


def test_a_collection_is_released_as_soon_as_its_count_is_reached(world: World):
    collect = Collect(key="export", window=HOUR, most=4)
    put(world, *[collected(collect) for _ in range(3)])
    pass_time(world, until=NOON + MINUTE)
    assert world.calls == []

    put(world, collected(collect))
    pass_time(world, until=NOON + 2 * MINUTE)

    assert [len(jobs) for jobs in sent(world)] == [4]


def test_no_release_has_more_jobs_than_its_count_and_the_others_follow(world: World):
    collect = Collect(key="export", window=HOUR, most=10)
    timers = [collected(collect) for _ in range(25)]
    for timer in timers:
        put(world, timer)  # in a row of its own: rows are given whole, in the order of their identities

    pass_time(world, until=NOON + 5 * MINUTE)
    assert [len(jobs) for jobs in sent(world)] == [10, 10]
    pass_time(world, until=NOON + 65 * MINUTE)

    assert [len(jobs) for jobs in sent(world)] == [10, 10, 5]
    assert Counter(job["key"] for jobs in sent(world) for job in jobs) == Counter(keys_of(*timers))


@pytest.mark.parametrize(("most", "together"), [(3, 60), (100, 600), (250, 1_000)])
def test_a_release_reads_few_rows_more_than_it_gives_however_many_wait_and_however_full_they_are(
    most: int, together: int, world: World
):
    collect = Collect(key="export", window=MINUTE, most=most)
    timers = [collected(collect) for _ in range(30 + together)]
    for timer in timers[:30]:
        put(world, timer)  # in a row of its own
    put(world, *timers[30:])
    (rows,) = map(len, world.collections.kept.values())
    world.collections.rows_read = 0

    pass_time(world, until=NOON + 10 * MINUTE)

    given = sent(world)
    assert Counter(job["key"] for jobs in given for job in jobs) == Counter(keys_of(*timers))
    # A row is given whole.
    assert all(most - ROW_MEMBERS < len(jobs) <= most for jobs in given[:-1])
    # It takes rows for as full as those that it has read.
    more_of_each = (DEFAULT_MEMBERS + most) // ROW_MEMBERS
    assert world.collections.rows_read <= rows + more_of_each * len(given)


def test_a_release_that_was_sent_ahead_leaves_the_next_window_to_those_that_come_after(world: World):
    collect = Collect(key="export", window=HOUR, most=2)
    put(world, collected(collect), collected(collect))
    pass_time(world, until=NOON + 30 * MINUTE)
    put(world, collected(collect, due_at=world.clock.now()))

    pass_time(world, until=NOON + 70 * MINUTE)
    assert [len(jobs) for jobs in sent(world)] == [2]
    pass_time(world, until=NOON + 95 * MINUTE)

    assert [len(jobs) for jobs in sent(world)] == [2, 1]


def test_a_collection_is_released_when_its_cron_comes(world: World):
    put(world, collected(Collect(key="digest", at="30 12 * * *")))

    pass_time(world, until=NOON + 29 * MINUTE)
    assert world.calls == []
    pass_time(world, until=NOON + 32 * MINUTE)

    assert len(world.calls) == 1


@pytest.mark.parametrize(
    ("collect", "closes_at"),
    [
        (Collect(key="k", window=HOUR), NOON + HOUR),
        (Collect(key="k", at="0 7 * * *"), NOON + 19 * HOUR),
        (Collect(key="k", at="0 7 * * *", timezone="Europe/Berlin"), NOON + 18 * HOUR),
        (Collect(key="k", at="0 12 * * *"), NOON + DAY),
        (Collect(key="k", at="0 7 * * *", window=HOUR), NOON + HOUR),
        (Collect(key="k", at="0 0 1 1 *"), NOON + 31 * DAY),
    ],
)
def test_whatever_comes_first_closes_a_window(collect: Collect, closes_at: datetime):
    assert closing_of(collect, NOON) == closes_at


def test_a_job_enters_its_collection_when_it_is_due(world: World):
    later = collected(due_at=NOON + 2 * HOUR)
    put(world, collected(), later)

    pass_time(world, until=NOON + 2 * HOUR + 59 * MINUTE)
    assert [len(jobs) for jobs in sent(world)] == [1]
    pass_time(world, until=NOON + 3 * HOUR + 2 * MINUTE)

    assert [job["key"] for job in sent(world)[1]] == [later.job.key]
    assert world.row(later.job).state is State.SUCCEEDED


def test_a_job_that_is_due_soon_is_given_no_earlier(world: World):
    late = collected(Collect(key="k", window=SECOND), due_at=NOON + MINUTE)
    put(world, collected(Collect(key="k", window=SECOND)), late)

    pass_time(world, until=NOON + 2 * MINUTE)

    assert [len(jobs) for jobs in sent(world)] == [1, 1]
    assert world.targets.effects[1][0] >= NOON + MINUTE


def test_a_job_with_an_idempotency_key_can_be_found_while_it_waits(world: World):
    accepted = world.submit(a_submission(collect=HOURLY, idempotency_key="order-7"))
    again = world.submit(a_submission(collect=HOURLY, idempotency_key="order-7"))

    pass_time(world, until=NOON + MINUTE)
    row = next(iter(world.ledger.rows.values()))
    pass_time(world, until=NOON + 62 * MINUTE)

    assert (again.job_id, row.state, row.waits_for[:6]) == (accepted.job_id, State.SCHEDULED, "acme#+")
    assert [[job["id"] for job in jobs] for jobs in sent(world)] == [[accepted.job_id]]


def test_the_id_of_a_submitted_job_says_of_which_collection_it_is(world: World):
    accepted = world.submit(a_submission(collect=HOURLY))

    (collection,) = world.collections.kept
    assert f"~g{collection.digest}-" in accepted.job_id
    assert not world.ready.messages or all(release_in(timer.job) for timer in world.ready.sent)


def test_jobs_that_differ_in_what_is_called_are_never_given_together(world: World):
    put(world, collected(), collected(target="https://example.com/other"), collected(tenant="other"))

    pass_time(world, until=NOON + 62 * MINUTE)

    assert [len(jobs) for jobs in sent(world)] == [1, 1, 1]
    assert {(target, call.tenant) for _, target, _, call in world.targets.effects} == {
        ("https://example.com/hook", "acme"),
        ("https://example.com/other", "acme"),
        ("https://example.com/hook", "other"),
    }


def test_a_target_may_name_those_that_have_failed(world: World):
    failing, fine = (collected(Collect(key="k", window=SECOND), retry=LATER) for _ in range(2))
    put(world, failing, fine)
    answering(world, failed=[{"id": str(job_id_of(failing.job)), "error": "no such order"}])

    pass_time(world, until=NOON + 5 * SECOND)

    row = world.row(failing.job)
    assert (state_of(world, fine), row.state, row.error) == (State.SUCCEEDED, State.RETRYING, "no such order")


@pytest.mark.parametrize(
    "answer",
    [
        lambda job: {"failed": [{"key": job.key}]},
        lambda job: {"failed": [str(job_id_of(job))]},
        lambda job: {"batchItemFailures": [{"itemIdentifier": str(job_id_of(job))}]},
    ],
)
def test_those_that_failed_are_named_in_several_ways(world: World, answer: Callable[[Any], Any]):
    failing, fine = (collected(Collect(key="k", window=SECOND), retry=LATER) for _ in range(2))
    put(world, failing, fine)
    answering(world, **answer(failing.job))

    pass_time(world, until=NOON + 5 * SECOND)

    assert (state_of(world, fine), state_of(world, failing)) == (State.SUCCEEDED, State.RETRYING)


@pytest.mark.parametrize(
    "said", ["", "nonsense", "[]", "null", '{"failed": 7}', '{"failed": [7, null, {}, {"id": 7}, {"id": "another"}]}']
)
def test_an_answer_that_names_nobody_is_a_success_of_all(world: World, said: str):
    timers = [collected(Collect(key="k", window=SECOND)) for _ in range(2)]
    put(world, *timers)
    world.targets.answer = lambda *_: Succeeded(said, said)

    pass_time(world, until=NOON + 5 * SECOND)

    assert {state_of(world, timer) for timer in timers} == {State.SUCCEEDED}


def test_each_has_its_own_attempts_and_its_own_retries(world: World):
    often = RetryPolicy(strategy=Strategy.FIXED, attempts=3, base=10 * SECOND)
    once = RetryPolicy(strategy=Strategy.FIXED, attempts=1)
    first, second = (collected(Collect(key="k", window=SECOND), retry=retry) for retry in (often, once))
    put(world, first, second)
    world.targets.answer = lambda *_: Failed("503", "http_503")

    pass_time(world, until=NOON + 2 * MINUTE)

    assert [[job["attempt"] for job in jobs] for jobs in sent(world)] == [[1, 1], [2], [3]]
    assert [letter.identity for letter in world.buried] == [second.job.identity, first.job.identity]
    assert {state_of(world, timer) for timer in (first, second)} == {State.FAILED}
    assert world.row(first.job).attempt == 3


def test_who_must_not_be_tried_again_is_a_dead_letter(world: World):
    failing = collected(Collect(key="k", window=SECOND))
    put(world, failing)
    answering(world, failed=[{"id": str(job_id_of(failing.job)), "error": "gone", "retry": False}])

    pass_time(world, until=NOON + 5 * SECOND)

    assert [(letter.error, letter.error_class) for letter in world.buried] == [("gone", "member_failed")]


def test_a_dead_letter_that_is_replayed_is_collected_again(world: World):
    timer = collected(Collect(key="k", window=SECOND))
    put(world, timer)
    world.targets.answer = lambda *_: Failed("400", is_permanent=True)
    pass_time(world, until=NOON + 5 * SECOND)
    world.targets.answer = lambda *_: Succeeded()
    letter = world.buried[0].timer
    assert letter is not None
    replayed = letter.replayed(due_at=world.clock.now())
    world.ledger.replay(
        replayed, far=replayed, job_id=str(job_id_of(timer.job)), fence=0, owner="operator", now=world.clock.now()
    )
    put(world, replayed)

    pass_time(world, until=NOON + 5 * MINUTE)

    assert [job["attempt"] for jobs in sent(world) for job in jobs] == [1, 3]
    assert state_of(world, timer) is State.SUCCEEDED


def test_a_target_that_answers_202_has_taken_them(world: World):
    timer = collected(Collect(key="k", window=SECOND))
    put(world, timer)
    world.targets.answer = lambda *_: Pending()

    pass_time(world, until=NOON + 5 * SECOND)

    assert state_of(world, timer) is State.SUCCEEDED


def test_a_call_takes_no_more_bytes_than_a_target_does(world: World):
    collect = Collect(key="k", window=SECOND, most=100)
    timers = [collected(collect, payload=Payload(text=json.dumps("x" * 8_000))) for _ in range(60)]
    put(world, *timers)

    pass_time(world, until=NOON + 2 * MINUTE)

    sizes = [len((payload or "").encode()) for _, _, payload, _ in world.targets.effects]
    assert len(sizes) == 3
    assert max(sizes) <= 245_000
    assert {state_of(world, timer) for timer in timers} == {State.SUCCEEDED}


def test_what_is_cancelled_while_it_waits_is_not_given(world: World):
    first, second = collected(), collected()
    put(world, first, second)

    assert world.canceller().cancel(job_id_of(first.job))
    pass_time(world, until=NOON + 62 * MINUTE)

    assert [[job["key"] for job in jobs] for jobs in sent(world)] == [[second.job.key]]
    assert state_of(world, first) is State.CANCELLED


def test_who_cancels_a_job_that_is_being_given_is_not_told_that_it_will_not_run(world: World):
    timer = collected(Collect(key="k", window=SECOND), due_at=NOON)
    put(world, timer)
    answers: list[bool] = []

    def answer(*_: object) -> Outcome:
        answers.append(world.canceller().cancel(job_id_of(timer.job)))
        return Failed("503")

    world.targets.answer = answer
    pass_time(world, until=NOON + 2 * MINUTE)

    assert answers == [False]
    assert len(world.calls) == 1
    assert state_of(world, timer) is State.CANCELLED


@pytest.mark.parametrize("is_keyed", [False, True])
def test_who_repeats_a_cancel_whose_answer_was_lost_while_a_job_is_being_given_is_not_told_either(
    world: World, *, is_keyed: bool
):
    terms = {"collect": Collect(key="k", window=SECOND), "due_at": NOON}
    timer = Timer.first_of(a_job(identity="k7", **terms)) if is_keyed else collected(**terms)
    put(world, timer)
    answers: list[bool] = []

    def answer(*_: object) -> Outcome:
        world.ledger.cancel(job_id_of(timer.job), owner="died before it looked", now=world.clock.now())
        answers.append(world.canceller().cancel(job_id_of(timer.job)))
        return Succeeded()

    world.targets.answer = answer
    pass_time(world, until=NOON + 2 * MINUTE)

    assert answers == [False]


def test_who_cancels_a_job_and_looks_when_its_release_is_over_is_not_told_that_it_will_not_run(world: World):
    timer = collected(Collect(key="k", window=SECOND), due_at=NOON)
    put(world, timer)
    job_id, released = job_id_of(timer.job), iter([NOON + MINUTE])

    def answer(*_: object) -> Outcome:
        world.ledger.cancel(job_id, owner="me", now=world.clock.now())
        return Succeeded()

    def stand_still(name: str) -> None:
        # Its tombstone is there, written during the call; the release ends before it goes on.
        if name == "ledger.cancel":
            pass_time(world, until=next(released))

    world.targets.answer = answer
    ledger = Watched(world.ledger, "ledger", before=stand_still, after=lambda _: None)

    assert not replace(world.canceller(), ledger=ledger, token=lambda: "me").cancel(job_id)
    assert (len(world.calls), state_of(world, timer)) == (1, State.CANCELLED)


def test_a_job_that_waits_for_its_next_attempt_is_cancelled_for_good(world: World):
    timer = collected(Collect(key="k", window=SECOND), due_at=NOON, retry=LATER)
    put(world, timer)
    answering(world, failed=[timer.job.key])
    pass_time(world, until=NOON + MINUTE)

    assert world.canceller().cancel(job_id_of(timer.job))


@pytest.mark.parametrize("outcome", [Succeeded(), Failed("503"), Failed("503", is_permanent=True)])
def test_who_is_cancelled_while_it_is_being_given_is_told_of_by_its_release(world: World, outcome: Outcome):
    told = Callbacks(on_end="https://example.com/told")
    timer = collected(Collect(key="k", window=SECOND), due_at=NOON, callbacks=told)
    put(world, timer)

    def answer(*given: Any) -> Outcome:
        if release_in_id(given[-1].job_id):
            assert not world.canceller().cancel(job_id_of(timer.job))
            return outcome
        return Succeeded()

    world.targets.answer = answer
    pass_time(world, until=NOON + 2 * MINUTE)

    calls = [json.loads(payload or "") for _, target, payload, _ in world.targets.effects if target == told.on_end]
    assert [(call["job"]["id"], call["job"]["state"]) for call in calls] == [(str(job_id_of(timer.job)), "cancelled")]


def release_in_id(job_id: str) -> bool:
    return release_named("acme", parse_job_id(job_id).identity) is not None


def test_what_of_a_paused_tenant_waits_goes_out_after_the_pause(world: World):
    timers = [collected() for _ in range(3)]
    put(world, *timers)
    world.plans.plans["acme"] = TenantPlan(status=TenantStatus.PAUSED)
    put(world, collected())

    pass_time(world, until=NOON + 5 * HOUR)
    assert world.calls == []
    world.plans.plans["acme"] = TenantPlan()
    pass_time(world, until=NOON + 7 * HOUR)

    assert [len(jobs) for jobs in sent(world)] == [4]


def test_a_pause_gathers_no_releases(world: World):
    put(world, collected())
    world.plans.plans["acme"] = TenantPlan(status=TenantStatus.PAUSED)
    for minute in range(0, 600, 5):
        pass_time(world, until=NOON + minute * MINUTE)
        put(world, collected(due_at=world.clock.now()))
        world.open_collections()

    pass_time(world, until=NOON + 11 * HOUR)

    on_their_way = [timer for timer in world.ready.sent if release_in(timer.job) and timer.due_at >= NOON + 10 * HOUR]
    assert len(on_their_way) < 30


def test_an_operation_on_all_jobs_of_a_tenant_does_not_select_the_releases_of_its_collections():
    release = release_of(collected().job, 1, due_at=NOON + HOUR, wheel=LOCAL_WHEEL)
    operation = an_operation(wanted=a_filter(tenant="acme"), created_at=NOON)

    assert is_selected(operation, a_timer(due_at=NOON + HOUR), written_at=None, now=NOON)
    assert not is_selected(operation, release, written_at=None, now=NOON)


def test_nothing_is_left_of_a_tenant_that_is_deleted(world: World):
    put(world, collected(), collected(tenant="other"))
    world.plans.plans["acme"] = TenantPlan(status=TenantStatus.DELETED)

    pass_time(world, until=NOON + 62 * MINUTE)
    world.open_collections()
    world.open_collections()

    assert [call.tenant for call in world.calls] == ["other"]
    assert not any(rows for each, rows in world.collections.kept.items() if each.tenant == "acme")


def test_a_release_whose_message_was_lost_is_placed_anew_by_the_sweep(world: World):
    put(world, collected(Collect(key="k", window=MINUTE)))
    world.ready.messages.clear()
    pass_time(world, until=NOON + 10 * MINUTE)
    assert world.calls == []

    assert sum(world.open_collections() for _ in range(3)) == 1
    pass_time(world, until=NOON + 12 * MINUTE)

    assert len(world.calls) == 1


def test_jobs_whose_release_nobody_has_placed_get_one_from_the_sweep(world: World):
    timer = collected(Collect(key="k", window=MINUTE))
    world.collections.put(collection_of(timer.job), [timer])

    assert sum(world.open_collections() for _ in range(3)) == 1
    pass_time(world, until=NOON + 2 * MINUTE)

    assert len(world.calls) == 1


def test_a_job_that_comes_while_a_release_runs_is_of_the_next(world: World):
    collect = Collect(key="k", window=MINUTE)
    late = collected(collect, due_at=NOON + MINUTE)
    put(world, collected(collect))

    def answer(*_: object) -> Outcome:
        if len(world.calls) == 1:
            put(world, late)
        return Succeeded()

    world.targets.answer = answer
    pass_time(world, until=NOON + 5 * MINUTE)

    assert [len(jobs) for jobs in sent(world)] == [1, 1]
    assert state_of(world, late) is State.SUCCEEDED


def test_a_job_that_is_put_twice_is_given_once(world: World):
    timer = collected(Collect(key="k", window=MINUTE))
    put(world, timer)
    put(world, timer, collected(Collect(key="k", window=MINUTE)))
    pass_time(world, until=NOON + 2 * MINUTE)
    put(world, timer)

    pass_time(world, until=NOON + 5 * MINUTE)

    given = Counter(job["key"] for jobs in sent(world) for job in jobs)
    assert (given[timer.job.key], set(given.values())) == (1, {1})


def test_a_release_whose_workers_die_is_a_failed_attempt_of_each_of_its_jobs(world: World):
    timer = collected(
        Collect(key="k", window=SECOND), retry=RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=SECOND)
    )
    put(world, timer)
    deaths: list[int] = []

    def answer(*_: object) -> Outcome:
        if len(deaths) < 4:
            deaths.append(1)
            raise DeathError
        return Succeeded()

    world.targets.answer = answer
    run_with_faults(world, NOON + 30 * MINUTE)

    assert [job["attempt"] for jobs in sent(world) for job in jobs] == [1, 1, 1, 1, 2]
    assert state_of(world, timer) is State.SUCCEEDED


def test_ends_that_the_ledger_refuses_for_seconds_are_written_without_another_call(world: World):
    timers = [collected(Collect(key="k", window=SECOND)) for _ in range(4)]
    put(world, *timers)
    refused_until = NOON + 6 * SECOND

    def refuse(name: str) -> None:
        if name == "ledger.end_collected" and world.clock.now() < refused_until:
            raise CrashError

    watched: Any = Watched(world.ledger, "ledger", before=refuse, after=lambda _: None)
    world.ledger = watched
    pass_time(world, until=NOON + MINUTE)

    assert len(world.calls) == 1
    assert {state_of(world, timer) for timer in timers} == {State.SUCCEEDED}


def test_a_release_is_given_up_while_its_lease_still_holds_where_the_ledger_refuses_for_minutes(world: World):
    timers = [collected(Collect(key="k", window=SECOND)) for _ in range(4)]
    put(world, *timers)
    refused: list[datetime] = []

    def refuse(name: str) -> None:
        if name == "ledger.end_collected" and world.clock.now() < NOON + 2 * MINUTE:
            refused.append(world.clock.now())
            raise CrashError

    watched: Any = Watched(world.ledger, "ledger", before=refuse, after=lambda _: None)
    world.ledger = watched
    run_with_faults(world, NOON + 20 * MINUTE)

    first, second = world.calls[:2]
    assert first.fence < second.fence
    assert {state_of(world, timer) for timer in timers} == {State.SUCCEEDED}
    # Within the lease of the first worker's call: its batch may have no more time.
    last = max(at for at in refused if at < NOON + MINUTE)
    assert refused[0] + 3 * SECOND < last < first.deadline + LEASE_MARGIN


def test_a_release_is_made_again_with_the_same_jobs_and_the_same_key(world: World):
    collect = Collect(key="k", window=SECOND)
    put(world, collected(collect), collected(collect))
    deaths: list[int] = []

    def answer(*_: object) -> Outcome:
        if not deaths:
            deaths.append(1)
            put(world, collected(collect, due_at=NOON))
            raise DeathError
        return Succeeded()

    world.targets.answer = answer
    run_with_faults(world, NOON + 10 * MINUTE)

    first, second, third = sent(world)
    calls: list[Invocation] = world.calls
    assert first == second
    assert len(third) == 1
    assert calls[0].idempotency_key == calls[1].idempotency_key != calls[2].idempotency_key
    assert calls[0].fence < calls[1].fence


_STORE_CALLS = [
    "collections.put",
    "collections.state",
    "collections.note_opening",
    "collections.places",
    "collections.waiting",
    "collections.open",
    "collections.opened",
    "collections.remove",
    "collections.advance",
    "ledger.claim",
    "ledger.get",
    "ledger.extend",
    "ledger.end_collected",
    "ledger.settle",
    "ledger.bury",
    "ready.send",
]


@pytest.mark.parametrize(
    ("error", "call", "after", "nth"),
    one_in(5, itertools.product([CrashError, DeathError], _STORE_CALLS, [True, False], [1, 2, 3])),
)
def test_a_fault_anywhere_loses_nothing_and_ends_nothing_twice(
    world: World, call: str, error: type[BaseException], after: bool, nth: int
):
    collect = Collect(key="k", window=MINUTE, most=4)
    retry = RetryPolicy(strategy=Strategy.FIXED, attempts=2, base=10 * SECOND)
    timers = [collected(collect, retry=retry) for _ in range(6)]
    doomed, flaky = timers[0], timers[1]

    def answer(_: str, __: Invocation) -> Outcome:
        failed: list[Any] = [{"key": doomed.job.key, "error": "no", "retry": False}]
        attempts = {job["key"]: job["attempt"] for job in sent(world)[-1]}
        failed += [{"key": flaky.job.key}] if attempts.get(flaky.job.key) == 1 else []
        text = json.dumps({"failed": failed})
        return Succeeded(text, text)

    world.targets.answer = answer
    _fail_once(world, call, error, after=after, nth=nth)
    for timer in timers:
        _accepted_in_the_end(world, timer)
    run_with_faults(world, NOON + 20 * MINUTE)

    assert {state_of(world, timer) for timer in timers[1:]} == {State.SUCCEEDED}
    assert state_of(world, doomed) is State.FAILED
    assert [letter.identity for letter in world.buried] == [doomed.job.identity]
    ended = Counter(
        (keys["job_id"], keys["outcome"]) for keys in world.events("job_settled") if keys["outcome"] != "retried"
    )
    assert set(ended.values()) <= {1}
    assert not any(world.collections.kept.values())
    given = Counter((job["key"], job["attempt"]) for jobs in sent(world) for job in jobs)
    # What was called right before a death is called again, as any job is.
    assert max(given.values()) <= 2


def _accepted_in_the_end(world: World, timer: Timer) -> None:
    """As a client does, which repeats what it has got no answer to."""
    for _ in range(3):
        try:
            if world.placer.place([timer])[0].ring is not None:
                return
        except DeathError:
            continue
    raise AssertionError("it was never accepted")


def run_with_faults(world: World, until: datetime) -> None:
    """Scanners, workers and sweeps, each of which comes again after it has died."""
    while world.clock.now() < until:
        try:
            world.open_collections()
            pass_time(world, until=min(until, world.clock.now() + MINUTE))
        except (CrashError, DeathError):
            world.clock.tick(timedelta(milliseconds=1))


def _fail_once(world: World, call: str, error: type[BaseException], *, after: bool, nth: int = 1) -> None:
    calls: list[str] = []

    def strike(name: str) -> None:
        if name == call:
            calls.append(name)
            if len(calls) == nth:
                raise error

    hooks: Any = {"before": (lambda _: None) if after else strike, "after": strike if after else (lambda _: None)}
    for name in ("collections", "ledger", "ready"):
        setattr(world, name, Watched(getattr(world, name), name, **hooks))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"key": "", "window": HOUR}, "key"),
        ({"key": "a/b", "window": HOUR}, "key"),
        ({"key": "k" * 65, "window": HOUR}, "key"),
        ({"key": "k"}, "key"),
        ({"key": "k", "window": HOUR, "most": 0}, "max"),
        ({"key": "k", "window": HOUR, "most": 501}, "max"),
        ({"key": "k", "window": timedelta(milliseconds=999)}, "for"),
        ({"key": "k", "window": 32 * DAY}, "for"),
        ({"key": "k", "at": "nonsense"}, "at"),
        ({"key": "k", "at": "0 0 31 2 *"}, "at"),
        ({"key": "k", "at": "0 7 * * *", "timezone": "Mars/Base"}, "timezone"),
        ({"key": "k", "window": HOUR, "timezone": "Europe/Berlin"}, "timezone"),
    ],
)
def test_terms_that_cannot_be_kept_are_refused_by_field(given: dict[str, Any], field: str):
    with pytest.raises(InvalidJob) as refused:
        check_times(Collect(**given))

    assert refused.value.field == field


@pytest.mark.parametrize(
    "collect",
    [
        HOURLY,
        Collect(key="k", window=timedelta(seconds=1.5), most=500),
        Collect(key="k", at="0 7 * * *", timezone="Europe/Berlin"),
    ],
)
def test_terms_are_read_as_they_were_written(collect: Collect):
    timer = a_timer(collect=collect)

    assert read_collect(write_collect(collect)) == collect
    assert decode_timer(encode_timer(timer), tenant="acme") == timer


def test_a_release_is_told_from_every_other_job():
    timer = collected()
    release = release_of(timer.job, 12, due_at=NOON, wheel=LOCAL_WHEEL)

    assert release_in(release.job) == (collection_of(timer.job), 12)
    assert release_in(timer.job) is None
    assert [
        release_in(a_job(identity=f"b-{digest_of(timer.job)}{rest}")) for rest in ("", "-", "-0", "-1:2", "-x")
    ] == [None] * 5


def test_jobs_that_are_due_in_the_same_moment_share_rows():
    timers = [collected() for _ in range(30)] + [collected(due_at=NOON + MINUTE)]

    rows = list(in_rows(timers, sizes=[100] * 31, most_bytes=65_536))

    assert [len(row) for row in rows] == [14, 14, 2, 1]
    assert all(len(place_of(row).encode()) <= 1_010 for row in rows)
    assert count_of(place_of(row) for row in rows) == 31
    assert [members_of(place_of(row)) for row in rows] == [[timer.job.identity for timer in row] for row in rows]


def test_rows_are_no_larger_than_a_table_takes():
    timers = [collected() for _ in range(10)]

    assert [len(row) for row in in_rows(timers, sizes=[30_000] * 10, most_bytes=65_536)] == [2] * 5
