"""Targets that fail, and messages that nobody can read."""

from datetime import timedelta
from itertools import pairwise

import pytest

from functions.domain.jobs.job_id import parse_job_id
from testkit.deployment import Deployment
from testkit.polling import eventually
from tests.e2e.sink import ALWAYS, Sink
from tests.e2e.waiting import reaches, send
from tickwheel.client import Client
from tickwheel.client.jobs import RetryPolicy
from tickwheel.errors import ApiProblem

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]


def every_second(*, attempts: int) -> RetryPolicy:
    return RetryPolicy(strategy="fixed", attempts=attempts, base=timedelta(seconds=1), cap=timedelta(seconds=1))


def test_a_target_that_fails_twice_is_called_a_third_time_with_growing_attempts_and_fences(
    client: Client, sink: Sink
) -> None:
    sent = send(client, sink.target(fails=2), seconds=0, retry=every_second(attempts=5))

    arrivals = sent.target.wait(3)

    assert [arrival.attempt for arrival in arrivals] == [1, 2, 3]
    assert arrivals[0].fence < arrivals[1].fence < arrivals[2].fence
    assert len({arrival.headers["idempotency-key"] for arrival in arrivals}) == 1
    assert {arrival.scheduled_at for arrival in arrivals} == {sent.job.due_at}
    assert all(later.at - earlier.at >= timedelta(seconds=1) for earlier, later in pairwise(arrivals))
    job = reaches(client, sent.job.id, "succeeded")
    assert (job.attempt, job.error) == (3, None)


def test_a_target_that_always_fails_leaves_a_dead_letter_with_its_last_error(
    deployment: Deployment, client: Client, sink: Sink
) -> None:
    sent = send(client, sink.target(fails=ALWAYS), seconds=0, tenant="doomed", retry=every_second(attempts=3))

    job = reaches(client, sent.job.id, "failed")

    assert (job.attempt, job.error) == (3, "the target answered 503")
    assert [arrival.attempt for arrival in sent.target.arrivals] == [1, 2, 3]
    [letter] = deployment.dead_letters("doomed")
    assert letter["s"]["S"].endswith(f"#{parse_job_id(sent.job.id).identity}")
    assert letter["e"]["S"] == "the target answered 503"
    assert (letter["a"]["N"], letter["i"]["S"]) == ("3", sent.job.id)


def test_a_handler_that_fails_for_good_is_a_dead_letter_at_once(deployment: Deployment, client: Client) -> None:
    job_id = client.submit("handler:trial", tenant="nobody", payload={"refuses": True}).id

    job = reaches(client, job_id, "failed")

    assert job.attempt == 1
    assert "fails for good" in str(job.error)
    assert len(deployment.dead_letters("nobody")) == 1


def test_a_handler_that_does_not_exist_is_refused_with_the_one_that_was_meant(client: Client) -> None:
    with pytest.raises(ApiProblem, match=r"did you mean handler:echo\?") as refused:
        client.submit("handler:ech", tenant="nobody")

    assert refused.value.code == "unknown_handler"


def test_a_foreign_message_of_a_dead_letter_queue_is_kept_for_nobodys_tenant(deployment: Deployment) -> None:
    sqs = deployment.client("sqs")
    message_id = sqs.send_message(QueueUrl=deployment.queue("NormalDead"), MessageBody='{"not":"ours"}')["MessageId"]

    [letter] = eventually(
        lambda: [each for each in deployment.dead_letters("?") if each["s"]["S"].endswith(f"#{message_id}")],
        bool,
        what="the foreign message is a dead letter",
    )

    assert letter["w"]["S"] == '{"not":"ours"}'
    assert letter["e"]["S"].startswith("undecodable: ")


def test_a_foreign_message_of_a_ready_queue_does_not_hold_up_the_jobs_behind_it(
    deployment: Deployment, client: Client, sink: Sink
) -> None:
    deployment.client("sqs").send_message(QueueUrl=deployment.queue("High"), MessageBody="not ours")
    sent = send(client, sink.target(), seconds=0, priority="high")

    sent.target.wait()

    eventually(lambda: deployment.events("Worker", "message_undecodable"), bool, what="the worker keeps the message")
