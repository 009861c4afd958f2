"""A job can be followed through the log by its id, from its submission to its end."""

from datetime import timedelta

import pytest

from functions.domain.instants import HOUR
from functions.domain.jobs.job import Payload
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.retry import RetryPolicy
from functions.ports.ready_queue import Rejected
from functions.ports.targets import Failed
from testkit.builders import NOON, a_schedule, a_submission, a_timer, every
from testkit.scheduler import World
from tests.unit.test_materialiser import begun, revive

SECRETS = Payload(text='{"card":"4111"}')


@pytest.fixture
def world() -> World:
    return World()


def test_a_submission_leaves_one_line_with_the_ids_of_all_its_jobs(world: World):
    answers = world.submitter().submit([a_submission(), a_submission(due_at=NOON + HOUR), a_submission()])

    near, far, also_near = [answer.job_id for answer in answers if hasattr(answer, "job_id")]  # pyright: ignore[reportAttributeAccessIssue]
    assert world.events("jobs_accepted") == [{"near": [near, also_near], "far": [far]}]


def test_a_submission_that_is_repeated_or_refused_leaves_none(world: World):
    world.submitter().submit([a_submission(idempotency_key="k")])
    world.submitter().submit([a_submission(idempotency_key="k")])
    world.submitter().submit([])

    assert len(world.events("jobs_accepted")) == 1


def test_a_page_that_is_promoted_leaves_one_line(world: World):
    timers = [a_timer(due_at=NOON + HOUR, identity=f"x{number}") for number in range(6)]
    world.placer.place(timers)
    world.clock.tick(HOUR)

    world.scan(timers[0].job.shard)

    (line,) = world.events("promoted")
    assert line == {"shard": timers[0].job.shard, "job_ids": [str(job_id_of(timer.job)) for timer in timers]}


def test_what_could_not_be_sent_is_not_called_promoted(world: World):
    sent, refused = (a_timer(due_at=NOON + HOUR, identity=name) for name in ("x1", "x2"))
    world.placer.place([sent, refused])
    world.clock.tick(HOUR)
    world.ready.refuses = lambda timer: Rejected(timer, "busy", is_permanent=False) if timer == refused else None

    world.scan(sent.job.shard)

    assert [line["job_ids"] for line in world.events("promoted")] == [[str(job_id_of(sent.job))]]


def test_what_can_never_be_sent_is_followed_to_its_dead_letter(world: World):
    timer = a_timer(due_at=NOON + HOUR)
    world.placer.place([timer])
    world.clock.tick(HOUR)
    world.ready.refuses = lambda timer: Rejected(timer, "too long", is_permanent=True)

    world.scan(timer.job.shard)

    job_id = str(job_id_of(timer.job))
    assert world.events("dead_lettered") == [{"job_id": job_id, "tenant": "acme", "error": "not_promoted"}]
    assert world.events("promoted") == []


def test_fires_that_are_placed_leave_the_ids_of_their_jobs(world: World):
    schedule = a_schedule(rule=every(minutes=1))
    begun(world, schedule)

    revive(world, schedule)

    (line,) = world.events("fires_placed")
    assert line["job_ids"] == [str(job_id_of(timer.job)) for timer in world.ready.sent]


def test_a_job_that_fails_for_good_is_followed_to_its_dead_letter(world: World):
    world.targets.answer = lambda *_: Failed("card 4111 was refused", "http_402", is_permanent=True)
    (accepted,) = world.submitter().submit([a_submission(payload=SECRETS.text)])
    world.clock.tick(timedelta(seconds=1))

    world.receive_and_work()

    job_id = accepted.job_id  # pyright: ignore[reportAttributeAccessIssue]
    names = [name for name, keys in world.journal.events if job_id in str(keys)]
    assert names == ["jobs_accepted", "dead_lettered", "job_settled"]
    assert world.events("dead_lettered") == [{"job_id": job_id, "tenant": "acme", "error": "http_402"}]
    assert "4111" not in str(world.journal.events)


def test_each_attempt_is_reported_by_its_number(world: World):
    world.targets.answer = lambda *_: Failed("no", "http_500")
    world.submitter().submit([a_submission(retry=RetryPolicy(attempts=2))])

    for _ in range(2):
        world.clock.tick(timedelta(minutes=1))
        world.receive_and_work()

    assert [(line["attempt"], line["outcome"]) for line in world.events("job_settled")] == [
        (1, "retried"),
        (2, "failed"),
    ]
