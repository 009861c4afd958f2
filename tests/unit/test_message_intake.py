"""What comes of the jobs of messages: none is lost, none is doubled, and who sent a bad one finds out why."""

import json
from datetime import timedelta
from typing import Any

import pytest

from functions.api.http.problems import Refusals
from functions.api.http.requests import Rules
from functions.api.jobs.message_intake import MOST_PROBLEMS, MessageIntake
from functions.domain.far_ring.timer_record import decode_envelope
from functions.domain.instants import SECOND, format_instant
from functions.domain.jobs.job import Job, Priority
from functions.domain.jobs.submission_queues import GIVE_UP_AFTER, LIFE, MOST_RECEIVES, wait_before_next
from functions.domain.stage.conditions import Conditions
from functions.domain.tenants.plan import TenantPlan, TenantStatus
from testkit.builders import NOON
from testkit.fakes.submission_queues import InMemorySubmissionQueues
from testkit.scheduler import World

ECHO = {"target": "handler:echo"}
ONE_A_MINUTE = {"acme": TenantPlan(submission_rate=1 / 60, submission_burst=1)}


class Sending:
    """A tenant's queue, and what takes in what is in it."""

    def __init__(self) -> None:
        self.world = World()
        self.queues = InMemorySubmissionQueues(self.world.clock)

    def intake(self) -> MessageIntake:
        special = {
            "queues": self.queues,
            "refusals": self.world.build(Refusals),
            "rules": lambda: Rules(
                now=self.world.clock.now(), allow_plain_http=False, max_timeout=timedelta(seconds=50)
            ),
        }
        return self.world.build(MessageIntake, special=special)

    def send(self, body: Any, **attributes: str) -> str:
        return self.queues.send(body if isinstance(body, str) else json.dumps(body), **attributes)

    def take(self) -> int:
        """What an event source mapping does; how many messages were done."""
        done = list(self.intake().take(self.queues.receive()))
        for message_id in done:
            self.queues.delete(message_id)
        return len(done)

    def take_until_empty(self, *, most: int = 2_000) -> int:
        """Each message when it is visible; how many receives that took."""
        for receives in range(most):
            if not self.queues.messages:
                return receives
            self.world.clock.instant = max(self.world.clock.instant, min(self.queues.visible_at.values()))
            self.take()
        raise AssertionError(f"{len(self.queues.messages)} messages after {most} receives")

    def jobs(self) -> list[str]:
        """The identities of jobs that are in a ring: of one that is in it twice, once."""
        return sorted({job.identity for job in self.placed()})

    def placed(self) -> list[Job]:
        """What was put into a ring, each time that it was."""
        near = [timer for message in self.world.ready.messages.values() for timer in decode_envelope(message.body)]
        far = [timer for put in self.world.timers.puts for timer in put]
        return [timer.job for timer in (*near, *far)]

    def problems(self) -> list[list[str]]:
        """The codes of each message in the queue of the refused."""
        found = [json.loads(message.attributes["problems"]) for message in self.queues.refused]
        return [[each["problem"]["code"] for each in problems] for problems in found]


@pytest.fixture
def sending() -> Sending:
    return Sending()


def test_a_job_and_a_batch_come_in_for_the_tenant_of_the_queue(sending: Sending) -> None:
    sending.send(ECHO)
    sending.send({"jobs": [ECHO, {**ECHO, "tenant": "acme"}]})

    assert sending.take() == 2

    assert [job.tenant for job in sending.placed()] == ["acme"] * 3
    assert len(sending.jobs()) == 3
    assert (sending.queues.messages, sending.queues.refused) == ({}, [])


def test_a_job_for_another_tenant_is_refused_whatever_its_sender_may_do_elsewhere(sending: Sending) -> None:
    sending.send({**ECHO, "tenant": "globex"})
    sending.send({"jobs": [{**ECHO, "tenant": "globex"}, ECHO]})

    assert sending.take() == 2

    assert [job.tenant for job in sending.placed()] == ["acme"]
    assert sending.problems() == [["forbidden"], ["forbidden"]]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("hello", "invalid_input"),
        ("[1]", "invalid_input"),
        ("[" * 100_000, "invalid_input"),
        ('{"jobs": []}', "invalid_input"),
        ('{"jobs": [7]}', "invalid_input"),
        ('{"jobs": 7}', "invalid_input"),
        ({"jobs": [ECHO] * 501}, "invalid_input"),
        ({"jobs": [ECHO], "more": 1}, "invalid_input"),
        ({}, "invalid_job"),
        ({**ECHO, "delay": -1}, "invalid_job"),
        ({**ECHO, "tenant": None}, "invalid_job"),
        ({**ECHO, "tenant": ["acme"]}, "invalid_job"),
        ({**ECHO, "run_at": format_instant(NOON - timedelta(hours=1))}, "invalid_job"),
        ({**ECHO, "payload": "\ud800"}, "invalid_job"),
    ],
)
def test_what_cannot_be_a_job_is_refused_as_it_was_sent_with_the_problem_of_the_api(
    sending: Sending, body: Any, code: str
) -> None:
    sending.send(body)
    sending.send(ECHO)

    assert sending.take() == 2

    (refused,) = sending.queues.refused
    assert refused.body == (body if isinstance(body, str) else json.dumps(body))
    assert refused.attributes["code"] == code
    (problem,) = json.loads(refused.attributes["problems"])
    assert problem["problem"]["type"] == f"urn:tickwheel:problem:{code}"
    assert problem["problem"]["detail"]
    assert len(sending.jobs()) == 1


def test_a_message_that_is_delivered_again_makes_no_second_job(sending: Sending) -> None:
    sending.send(ECHO)
    sending.send({"jobs": [ECHO, {**ECHO, "payload": 1}]})
    messages = sending.queues.receive()

    for _ in range(3):
        assert len(list(sending.intake().take(messages))) == 2

    assert len(sending.jobs()) == 3
    assert sending.queues.refused == []


def test_a_message_that_is_sent_again_under_its_key_makes_no_second_job(sending: Sending) -> None:
    for _ in range(2):
        sending.send(ECHO, idempotency_key="order-7")
    for _ in range(2):
        sending.send({"jobs": [ECHO, ECHO]}, idempotency_key="orders")

    assert sending.take() == 4

    assert len(sending.jobs()) == 3


def test_a_key_of_another_job_is_refused_and_so_is_one_that_is_no_key(sending: Sending) -> None:
    sending.send(ECHO, idempotency_key="order-7")
    sending.send({**ECHO, "payload": 2}, idempotency_key="order-7")
    sending.send(ECHO, idempotency_key="x" * 251)
    sending.send(ECHO, idempotency_key="\n")

    assert sending.take() == 4

    assert sending.problems() == [["key_reused"], ["invalid_input"], ["invalid_input"]]


def test_refused_jobs_of_a_batch_leave_it_with_their_keys_and_sent_again_twice_they_are_one_each(
    sending: Sending,
) -> None:
    sending.world.plans.plans = {"acme": TenantPlan(top_priority=Priority.NORMAL)}
    urgent = {**ECHO, "priority": "high"}
    sending.send({"jobs": [ECHO, urgent, ECHO, {**urgent, "idempotency_key": "own"}]})
    assert sending.take() == 1
    (refused,) = sending.queues.refused
    assert sending.problems() == [["priority_not_allowed"] * 2]
    assert [job["idempotency_key"] for job in json.loads(refused.body)["jobs"]] == ["sqs:m1:1", "own"]

    sending.world.plans.plans = {}
    for _ in range(2):
        sending.send(refused.body)
    assert sending.take() == 2

    assert len(sending.jobs()) == 4


def test_a_single_refused_job_that_is_sent_again_twice_is_one(sending: Sending) -> None:
    sending.world.plans.plans = {"acme": TenantPlan(status=TenantStatus.DRAINING)}
    sending.send(ECHO)
    assert sending.take() == 1
    (refused,) = sending.queues.refused
    assert sending.problems() == [["tenant_closed"]]

    sending.world.plans.plans = {}
    for _ in range(2):
        sending.send(refused.body, **refused.attributes)
    assert sending.take() == 2

    assert len(sending.jobs()) == 1


def test_what_comes_too_fast_waits_in_the_queue_until_it_may_come_in(sending: Sending) -> None:
    sending.world.plans.plans = ONE_A_MINUTE
    for _ in range(5):
        sending.send(ECHO)

    assert sending.take() == 1
    sending.take_until_empty()

    assert len(sending.jobs()) == 5
    assert sending.queues.refused == []
    # The first came in at once, each other a minute later or more: not one of them too early.
    assert sending.world.clock.instant >= NOON + timedelta(minutes=4)


def test_of_a_batch_that_is_too_fast_the_rest_goes_on_by_itself_so_that_every_job_has_its_turn(
    sending: Sending,
) -> None:
    sending.world.plans.plans = ONE_A_MINUTE
    sending.send({"jobs": [{**ECHO, "payload": number} for number in range(6)]})

    receives = sending.take_until_empty()

    assert len(sending.jobs()) == 6
    assert {job.payload.text for job in sending.placed()} == {str(number) for number in range(6)}
    assert sending.queues.refused == []
    assert receives < 6 * 8


def test_the_delay_of_a_job_counts_from_when_it_was_sent_however_long_it_waited(sending: Sending) -> None:
    sending.world.plans.plans = ONE_A_MINUTE
    sending.send({"jobs": [{**ECHO, "delay": 7_200}, {**ECHO, "delay": 7_200}, {**ECHO, "delay": 7_200}]})

    sending.take_until_empty()

    assert {job.scheduled_at for job in sending.placed()} == {NOON + timedelta(hours=2)}


def test_a_job_that_came_due_while_it_waited_is_due_when_it_comes_in(sending: Sending) -> None:
    sending.send({**ECHO, "run_at": format_instant(NOON + timedelta(minutes=5))})
    sending.send({**ECHO, "delay": 1})
    sending.world.clock.tick(timedelta(hours=3))

    assert sending.take() == 2

    assert {job.scheduled_at for job in sending.placed()} == {NOON + timedelta(hours=3)}


def test_what_the_stage_sheds_waits(sending: Sending) -> None:
    sending.world.shards.publish(Conditions(published_at=NOON, shed=frozenset({Priority.NORMAL})))
    sending.send(ECHO)
    assert sending.take() == 0
    assert sending.queues.visible_at == {"m1": NOON + timedelta(minutes=1)}

    sending.world.clock.tick(timedelta(minutes=10))
    assert sending.take() == 1


def test_jobs_that_may_not_come_in_for_a_week_are_refused_with_the_reason_before_sqs_forgets_them(
    sending: Sending,
) -> None:
    sending.world.plans.plans = {"acme": TenantPlan(max_pending=1)}
    sending.send({**ECHO, "delay": 30 * 86_400})
    sending.send({"jobs": [ECHO, ECHO]})

    receives = sending.take_until_empty()

    assert len(sending.jobs()) == 1
    assert sending.problems() == [["quota_exceeded"] * 2]
    assert GIVE_UP_AFTER <= sending.world.clock.instant - NOON < LIFE
    assert receives < MOST_RECEIVES


def test_a_store_that_fails_sends_its_message_back_and_no_other(
    sending: Sending, monkeypatch: pytest.MonkeyPatch
) -> None:
    register = sending.world.ledger.register

    def failing(job: Any, **given: Any) -> Any:
        if job.payload.text == '"bad"':
            raise ConnectionError("no answer")
        return register(job, **given)

    monkeypatch.setattr(sending.world.ledger, "register", failing)
    sending.send({**ECHO, "payload": "bad"})
    sending.send(ECHO)

    assert sending.take() == 1

    assert list(sending.queues.messages) == ["m1"]
    monkeypatch.undo()
    sending.take_until_empty()
    assert len(sending.jobs()) == 2


@pytest.mark.parametrize("times", [1, 2])
def test_a_process_that_dies_while_it_sends_on_or_refuses_loses_nothing_and_doubles_nothing(
    sending: Sending, times: int
) -> None:
    sending.world.plans.plans = ONE_A_MINUTE
    sending.send({"jobs": [ECHO, {**ECHO, "payload": 2}, {"delay": 1}]})
    left = iter(range(times))

    def fails() -> None:
        if next(left, None) is not None:
            raise ConnectionError("no answer")

    sending.queues.fails = fails

    sending.take_until_empty()

    assert len(sending.jobs()) == 2
    refused = [job for message in sending.queues.refused for job in json.loads(message.body)["jobs"]]
    assert refused
    assert {job["idempotency_key"] for job in refused} == {"sqs:m1:2"}


def test_jobs_that_were_taken_before_the_process_died_are_not_taken_again(sending: Sending) -> None:
    for _ in range(2):
        sending.send({"jobs": [ECHO] * 300})
    messages = sending.queues.receive()

    # It dies behind the first group: the second message has not been looked at.
    assert next(sending.intake().take(messages)) == "m1"
    assert len(sending.jobs()) == 300

    assert list(sending.intake().take(messages)) == ["m1", "m2"]
    assert len(sending.jobs()) == 600


def test_a_rest_that_is_longer_than_a_message_may_be_goes_on_whole_under_the_same_keys(sending: Sending) -> None:
    sending.world.plans.plans = {"acme": TenantPlan(top_priority=Priority.NORMAL)}
    numbers = ",".join(["1e5"] * 1_000)  # which JSON writes as 100000.0
    body = f'{{"jobs": [{json.dumps(ECHO)}, {{"target": "handler:echo", "priority": "high", "payload": [{numbers}]}}]}}'
    sending.queues.most_bytes = len(body)
    sending.send(body)

    assert sending.take() == 1

    (refused,) = sending.queues.refused
    assert refused.body == body
    sending.world.plans.plans = {}
    sending.send(refused.body, **refused.attributes)
    assert sending.take() == 1
    assert len(sending.jobs()) == 2


def test_a_thousand_problems_are_told_in_little(sending: Sending) -> None:
    sending.send({"jobs": [{"target": "x" * 1_000, "delay": "y" * 1_000}] * 500})

    assert sending.take() == 1

    (refused,) = sending.queues.refused
    assert len(json.loads(refused.attributes["problems"])) == MOST_PROBLEMS
    assert len(refused.attributes["problems"]) < 60_000
    (line,) = sending.world.events("message_refused")
    assert line["refused"] == {"invalid_job": 500}


def test_the_trace_of_the_sender_goes_on_and_one_that_is_none_is_ignored(sending: Sending) -> None:
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    sending.send(ECHO, traceparent=parent)
    sending.send(ECHO, traceparent="nonsense")

    assert sending.take() == 2

    assert [job.trace is not None for job in sending.placed()] == [True, False]


def test_when_it_was_sent_first_is_believed_only_where_it_can_be_true(sending: Sending) -> None:
    for told in ("", "x", "99999999999999999999", "0", str(int((NOON + timedelta(days=3)).timestamp() * 1_000))):
        sending.send({**ECHO, "delay": 7_200}, sent_at=told)

    assert sending.take() == 5

    assert {job.scheduled_at for job in sending.placed()} == {NOON + timedelta(hours=2)}


def test_the_wait_of_a_message_doubles_and_has_an_end() -> None:
    waits = [wait_before_next(count, timedelta(0)) for count in (1, 2, 5, 10, 900)]
    assert waits == [2 * SECOND, 4 * SECOND, 32 * SECOND, 900 * SECOND, 900 * SECOND]
    assert wait_before_next(1, timedelta(minutes=1)) == timedelta(minutes=1)
    assert wait_before_next(1, timedelta(days=1)) == timedelta(minutes=15)
    assert GIVE_UP_AFTER / timedelta(minutes=15) + 10 < MOST_RECEIVES
