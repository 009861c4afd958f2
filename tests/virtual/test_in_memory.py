"""The scheduler that users test with: what their client asks of it, and what time brings."""

from datetime import UTC, datetime, timedelta

import pytest

from testkit.in_memory import Answer, Call, Scheduler
from tickwheel.client import Collect, DeadLetterFilter, Flow, NewJob, NewSchedule, RetryPolicy
from tickwheel.client.api import Client
from tickwheel.client.jobs import Submitted
from tickwheel.errors import ApiProblem

HOOK = "https://shop.example/hook"
START = datetime(2027, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def scheduler():
    with Scheduler(now=START) as made:
        yield made


def state_of(scheduler: Scheduler, job_id: str) -> str:
    return scheduler.client.get(job_id).state


def test_a_job_runs_when_it_is_due_and_once(scheduler: Scheduler):
    job = scheduler.client.submit(HOOK, tenant="acme", payload={"invoice": 7}, delay=timedelta(days=30))

    assert scheduler.advance(days=29, hours=23) == []
    (call,) = scheduler.advance(days=60)

    assert (call.target, call.payload, call.tenant, call.job_id, call.attempt) == (
        HOOK,
        {"invoice": 7},
        "acme",
        job.id,
        1,
    )
    assert call.at == call.scheduled_at == START + timedelta(days=30)
    assert state_of(scheduler, job.id) == "succeeded"


def test_what_waits_is_listed_until_it_has_run(scheduler: Scheduler):
    far = scheduler.client.submit(HOOK, tenant="acme", delay=timedelta(days=2))
    near = scheduler.client.submit(HOOK, tenant="globex", delay=timedelta(minutes=1))

    assert [each.job_id for each in scheduler.waiting()] == [near.id, far.id]
    assert [each.due_at for each in scheduler.waiting(tenant="acme")] == [START + timedelta(days=2)]
    scheduler.advance(hours=1)
    assert [each.job_id for each in scheduler.waiting()] == [far.id]
    scheduler.advance(days=2)
    assert scheduler.waiting() == []


def test_a_cancelled_job_neither_waits_nor_runs(scheduler: Scheduler):
    job = scheduler.client.submit(HOOK, tenant="acme", delay=timedelta(days=2))

    assert scheduler.client.cancel(job.id).state == "cancelled"

    assert scheduler.waiting() == []
    assert scheduler.advance(days=3) == []


def test_an_idempotency_key_is_one_job(scheduler: Scheduler):
    first, second = (
        scheduler.client.submit(HOOK, tenant="acme", idempotency_key="remind-7", delay=timedelta(hours=1))
        for _ in range(2)
    )

    assert (second.id, second.replayed) == (first.id, True)
    assert len(scheduler.advance(hours=2)) == 1


def test_a_target_that_fails_is_tried_again_as_its_job_says(scheduler: Scheduler):
    scheduler.answer(HOOK, lambda call: Answer(503) if call.attempt < 3 else {"ok": True})
    retry = RetryPolicy(strategy="fixed", attempts=5, base=timedelta(minutes=10), cap=timedelta(minutes=10))
    job = scheduler.client.submit(HOOK, tenant="acme", retry=retry)

    calls = scheduler.advance(hours=1)

    assert [call.at - START for call in calls] == [timedelta(minutes=10 * number) for number in range(3)]
    assert len({call.idempotency_key for call in calls}) == 1
    assert [call.fence for call in calls] == sorted({call.fence for call in calls})
    assert scheduler.client.get(job.id).result == {"status": 200, "body": {"ok": True}}


def test_a_job_that_fails_for_good_is_a_dead_letter_and_can_be_replayed(scheduler: Scheduler):
    scheduler.answer(HOOK, Answer(404))
    job = scheduler.client.submit(HOOK, tenant="acme")
    scheduler.advance(hours=1)
    assert state_of(scheduler, job.id) == "failed"
    (letter,) = scheduler.client.dead_letters.list(DeadLetterFilter(tenant="acme"))

    scheduler.answer(HOOK, Answer(200))
    scheduler.client.dead_letters.replay(letter.id)

    assert len(scheduler.advance(hours=1)) == 1


def test_a_function_that_raises_fails_the_attempt_and_an_assertion_in_it_fails_the_test(scheduler: Scheduler):
    def refuse(_: Call) -> None:
        raise RuntimeError("closed on Sundays")

    scheduler.answer(HOOK, refuse)
    job = scheduler.client.submit(HOOK, tenant="acme", retry=RetryPolicy(attempts=1))
    scheduler.advance(minutes=5)
    assert "closed on Sundays" in (scheduler.client.get(job.id).error or "")

    def check(call: Call) -> None:
        assert call.payload == "expected"

    scheduler.answer(HOOK, check)
    scheduler.client.submit(HOOK, tenant="acme", payload="else")
    with pytest.raises(AssertionError, match="expected"):
        scheduler.advance(minutes=5)


def test_a_handler_of_the_users_runs_as_in_a_worker(scheduler: Scheduler):
    @scheduler.handler("invoice")
    def invoice(payload, invocation):
        return {"sent": payload["number"], "attempt": invocation.attempt}

    job = scheduler.client.submit("handler:invoice", tenant="acme", payload={"number": 7})
    scheduler.advance(seconds=5)

    assert scheduler.client.get(job.id).result == {"sent": 7, "attempt": 1}


def test_a_schedule_fires_as_its_definition_says_over_a_clock_change(scheduler: Scheduler):
    scheduler.client.schedules.put(
        NewSchedule("nightly", tenant="acme", cron="30 2 * * *", timezone="Europe/Berlin", target=HOOK)
    )

    calls = scheduler.advance(days=31)

    assert len(calls) == 31
    assert {call.scheduled_at.hour for call in calls} == {0, 1}  # UTC: summer begins on the 28th of March
    found = scheduler.client.schedules.get("nightly", tenant="acme")
    assert found.fires == 31
    assert found.next_fire is not None
    assert found.next_fire > scheduler.now


def test_a_paused_schedule_does_not_fire(scheduler: Scheduler):
    scheduler.client.schedules.put(NewSchedule("often", tenant="acme", every=timedelta(hours=1), target=HOOK))
    scheduler.advance(hours=3)
    scheduler.client.schedules.pause("often", tenant="acme")

    scheduler.advance(minutes=1)
    assert scheduler.advance(days=1) == []


def test_collections_and_flows_are_those_of_a_deployment(scheduler: Scheduler):
    client = scheduler.client
    for number in range(3):
        client.submit(
            f"{HOOK}/many", tenant="acme", payload=number, collect=Collect("export", window=timedelta(minutes=10))
        )
    for _ in range(3):
        client.submit(f"{HOOK}/slowly", tenant="acme", flow=[Flow("api", rate="1/min", burst=1)])

    scheduler.advance(hours=1)

    (release,) = scheduler.calls_of(f"{HOOK}/many")
    assert [member["payload"] for member in release.payload] == [0, 1, 2]
    slowly = [call.at for call in scheduler.calls_of(f"{HOOK}/slowly")]
    assert len(slowly) == 3
    assert slowly[-1] - slowly[0] >= timedelta(minutes=2)


def test_a_mistake_is_the_problem_that_a_deployment_answers(scheduler: Scheduler):
    with pytest.raises(ApiProblem) as refused:
        scheduler.client.get("j1~acme~nobody")

    assert refused.value.status in (404, 422)


def test_a_tenant_is_paused_and_limited_as_by_a_deployment():
    with Scheduler(now=START, plans={"default": {"max_pending": 1}}) as scheduler:
        scheduler.client.submit(HOOK, tenant="acme", delay=timedelta(days=1))
        scheduler.advance(minutes=2)

        with pytest.raises(ApiProblem) as refused:
            scheduler.client.submit(HOOK, tenant="acme", delay=timedelta(days=1))

        assert refused.value.status == 429


def test_many_jobs_go_in_at_once(scheduler: Scheduler):
    answers = scheduler.client.submit_many([NewJob(HOOK, tenant="acme", payload=number) for number in range(250)])

    assert {type(answer) for answer in answers} == {Submitted}
    assert sorted(call.payload for call in scheduler.advance(minutes=1)) == list(range(250))


def test_time_does_not_go_back(scheduler: Scheduler):
    with pytest.raises(ValueError, match="time does not go back"):
        scheduler.advance_to(START - timedelta(seconds=1))


def test_two_of_them_know_nothing_of_each_other(scheduler: Scheduler):
    job = scheduler.client.submit(HOOK, tenant="acme", idempotency_key="x")

    with Scheduler(now=START) as other, pytest.raises(ApiProblem) as refused:
        other.client.get(job.id)

    assert refused.value.status == 404


def test_what_the_scheduler_itself_fails_with_reaches_the_test(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(scheduler._ready, "send", fail)

    with pytest.raises(ZeroDivisionError):
        scheduler.client.submit(HOOK, tenant="acme")


def test_it_is_what_users_import_and_begins_at_present():
    from tickwheel import testing

    assert testing.Scheduler is Scheduler
    with testing.Scheduler() as scheduler:
        assert abs(scheduler.now - datetime.now(UTC)) < timedelta(minutes=1)
        assert isinstance(scheduler.client, Client)
