"""Jobs of the next seconds: API, ready queue, worker, target."""

import random
import string
from datetime import UTC, datetime, timedelta

import pytest

from functions.domain.jobs.job_id import parse_job_id
from testkit.deployment import Deployment
from testkit.polling import eventually
from tests.e2e.sink import Sink
from tests.e2e.waiting import reaches, send
from tickwheel.client import Client
from tickwheel.client.jobs import NewJob, Refused, Submitted
from tickwheel.errors import ApiProblem

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]


def test_a_near_job_arrives_once_and_not_early_and_says_what_it_is(client: Client, sink: Sink) -> None:
    sent = send(client, sink.target(), seconds=2, tenant="globex", payload={"päckchen": [1, None, "zwei"]})
    assert (sent.job.state, sent.job.ring) == ("scheduled", "near")

    [arrival] = sent.target.wait()

    assert arrival.at >= sent.job.due_at
    assert arrival.json == {"päckchen": [1, None, "zwei"]}
    headers = {name: value for name, value in arrival.headers.items() if name.startswith("tickwheel-")}
    assert headers == {
        "tickwheel-job-id": sent.job.id,
        "tickwheel-tenant": "globex",
        "tickwheel-attempt": "1",
        "tickwheel-fence": "1",
        "tickwheel-key-ids": "k1",
        "tickwheel-scheduled-at": headers["tickwheel-scheduled-at"],
    }
    assert arrival.scheduled_at == sent.job.due_at
    assert arrival.headers["idempotency-key"] == parse_job_id(sent.job.id).key
    assert arrival.headers["content-type"] == "application/json"
    job = reaches(client, sent.job.id, "succeeded")
    assert (job.attempt, job.fence, job.result) == (1, 1, {"status": 200})


def test_an_exact_job_is_held_until_its_instant(client: Client, sink: Sink) -> None:
    sent = send(client, sink.target(), seconds=2.5, precision="exact")

    [arrival] = sent.target.wait()

    assert arrival.at >= sent.job.due_at


def test_a_bad_job_of_a_batch_does_not_hold_up_the_others(client: Client, sink: Sink) -> None:
    good = [sink.target(), sink.target()]
    jobs = [NewJob(good[0].url, tenant="acme"), NewJob("ftp://x", tenant="a#b"), NewJob(good[1].url, tenant="acme")]

    first, bad, second = client.submit_many(jobs)

    assert isinstance(bad, Refused)
    assert bad.problem.status == 422
    assert {error.field for error in bad.problem.errors} == {"tenant", "target"}
    for answer, target in zip((first, second), good, strict=True):
        assert isinstance(answer, Submitted)
        target.wait()
        reaches(client, answer.id, "succeeded")


def test_the_result_of_a_handler_is_visible(client: Client) -> None:
    job = client.submit("handler:echo", tenant="acme", payload={"hello": "wörld"})

    assert reaches(client, job.id, "succeeded").result == {"payload": {"hello": "wörld"}, "attempt": 1}


def test_a_job_that_is_past_its_expiry_settles_without_a_call(client: Client, sink: Sink) -> None:
    sent = send(client, sink.target(), seconds=-20, expires_after=timedelta(seconds=10))

    job = reaches(client, sent.job.id, "expired")

    assert job.result is None
    assert sent.target.arrivals == []


def test_an_at_most_once_job_is_attempted_once_and_not_tried_again(client: Client, sink: Sink) -> None:
    sent = send(client, sink.target(fails=1), delivery="at_most_once")

    [arrival] = sent.target.wait()

    assert arrival.status == 503
    reaches(client, sent.job.id, "attempted")


def test_a_repeated_key_answers_with_the_first_job_and_runs_once(
    deployment: Deployment, client: Client, sink: Sink
) -> None:
    first = send(client, sink.target(), seconds=6, idempotency_key="invoice-7")
    again = send(client, first.target, seconds=45, idempotency_key="invoice-7")

    assert (again.job.id, again.job.due_at, again.job.replayed) == (first.job.id, first.job.due_at, True)
    [arrival] = first.target.wait()
    assert arrival.at >= first.job.due_at
    reaches(client, first.job.id, "succeeded")
    # The second submission placed the job again, in case the first had died half-way. The ledger drops its message.
    assert deployment.wait_until_dropped(first.job.id)["reason"] == "settled as succeeded"
    assert len(first.target.arrivals) == 1
    late = send(client, first.target, seconds=1, idempotency_key="invoice-7")
    assert (late.job.id, late.job.state, late.job.ring, late.job.replayed) == (first.job.id, "succeeded", None, True)


def test_a_used_key_with_another_body_is_refused_with_the_id_of_the_job_that_has_it(client: Client, sink: Sink) -> None:
    first = send(client, sink.target(), seconds=2, idempotency_key="invoice-8", payload={"cents": 100})

    with pytest.raises(ApiProblem) as problem:
        send(client, first.target, seconds=2, idempotency_key="invoice-8", payload={"cents": 999})

    assert (problem.value.status, problem.value.code) == (409, "key_reused")
    assert first.job.id in str(problem.value)
    [arrival] = first.target.wait()
    assert arrival.json == {"cents": 100}


def test_a_key_of_another_tenant_is_another_job(client: Client, sink: Sink) -> None:
    ours = send(client, sink.target(), seconds=0, idempotency_key="same", tenant="acme")
    theirs = send(client, sink.target(), seconds=0, idempotency_key="same", tenant="globex")

    assert ours.job.id != theirs.job.id
    ours.target.wait()
    theirs.target.wait()


def test_a_large_payload_waits_in_the_bucket_and_arrives_intact_and_is_gone_afterwards(
    deployment: Deployment, client: Client, sink: Sink
) -> None:
    letters = random.Random(7).choices(string.ascii_letters + string.digits + '"\\é€', k=60_000)
    payload = {"incompressible": "".join(letters)}
    sent = send(client, sink.target(), seconds=20, payload=payload, tenant="hooli")
    identity = parse_job_id(sent.job.id).identity
    assert deployment.payload_keys("hooli") == [f"jobs/hooli/{identity}"]

    [arrival] = sent.target.wait()

    assert arrival.json == payload
    reaches(client, sent.job.id, "succeeded")
    eventually(lambda: deployment.payload_keys("hooli"), lambda keys: keys == [], what="the payload is deleted")


def test_a_time_in_the_past_is_due_at_once(client: Client, sink: Sink) -> None:
    sent = send(client, sink.target(), seconds=-30)

    [arrival] = sent.target.wait()

    assert arrival.scheduled_at == sent.job.due_at < datetime.now(UTC)
