"""Jobs that are given to their target together, over real functions and a real target."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.e2e.sink import Arrival, Sink, Target
from tests.e2e.waiting import reaches
from tickwheel.client import Client
from tickwheel.client.collect import Collect
from tickwheel.client.jobs import NewJob, RetryPolicy, Submitted

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

SOON = RetryPolicy(strategy="fixed", attempts=3, base=timedelta(seconds=1), cap=timedelta(seconds=1))
LONG = timedelta(hours=1)


def gather(client: Client, target: Target, collect: Collect, count: int, **fields: Any) -> list[Submitted]:
    """So many jobs of a collection, whose payloads are their numbers, in one request."""
    asked = [
        NewJob(target.url, tenant="acme", payload=number, collect=collect, retry=SOON, **fields)
        for number in range(count)
    ]
    answers = client.submit_many(asked)
    assert all(isinstance(answer, Submitted) for answer in answers), answers
    return [answer for answer in answers if isinstance(answer, Submitted)]


def given(arrivals: Sequence[Arrival]) -> list[list[tuple[str, int, int]]]:
    """Id, payload and attempt of each job, by calls."""
    return [sorted((job["id"], job["payload"], job["attempt"]) for job in arrival.json) for arrival in arrivals]


def by_id(jobs: Sequence[Submitted], *numbers: int, attempt: int = 1) -> list[tuple[str, int, int]]:
    return sorted((jobs[number].id, number, attempt) for number in numbers)


def test_jobs_are_given_together_as_soon_as_as_many_wait_as_one_call_takes(client: Client, sink: Sink) -> None:
    target = sink.target()

    jobs = gather(client, target, Collect("full", window=LONG, most=3), 3)

    target.wait()
    found = [reaches(client, job.id, "succeeded") for job in jobs]
    assert given(target.arrivals) == [by_id(jobs, 0, 1, 2)]
    assert len({json.dumps(each.result) for each in found}) == 1


def test_jobs_are_given_together_when_their_window_closes(client: Client, sink: Sink) -> None:
    target, window = sink.target(), timedelta(seconds=6)

    jobs = gather(client, target, Collect("window", window=window), 2)
    jobs.append(
        client.submit(target.url, tenant="acme", payload=2, collect=Collect("window", window=window), retry=SOON)
    )

    target.wait()
    for job in jobs:
        reaches(client, job.id, "succeeded")
    (arrival,) = target.arrivals
    assert given([arrival]) == [by_id(jobs, 0, 1, 2)]
    assert arrival.at >= jobs[0].due_at + window


def test_a_job_that_its_target_names_comes_again_in_the_next_call(client: Client, sink: Sink) -> None:
    def names_the_second(body: bytes) -> bytes:
        failed = [
            {"id": job["id"], "error": "not yet"}
            for job in json.loads(body)
            if (job["payload"], job["attempt"]) == (1, 1)
        ]
        return json.dumps({"failed": failed}).encode()

    target = sink.target(says=names_the_second)
    jobs = gather(client, target, Collect("named", window=timedelta(seconds=2)), 3)

    target.wait(2)
    found = [reaches(client, job.id, "succeeded") for job in jobs]
    assert given(target.arrivals) == [by_id(jobs, 0, 1, 2), by_id(jobs, 1, attempt=2)]
    assert [job.attempt for job in found] == [1, 2, 1]
    first, second = (arrival.headers["idempotency-key"] for arrival in target.arrivals)
    assert first != second


def test_a_job_that_is_cancelled_while_it_waits_is_not_given(client: Client, sink: Sink) -> None:
    target = sink.target()
    jobs = gather(client, target, Collect("cancelled", window=timedelta(seconds=15)), 2)

    assert client.explain(jobs[0].id).reason == "collected"
    assert client.cancel(jobs[0].id).state == "cancelled"

    target.wait()
    reaches(client, jobs[1].id, "succeeded")
    assert given(target.arrivals) == [by_id(jobs, 1)]
    assert client.get(jobs[0].id).state == "cancelled"


def test_a_target_that_takes_too_long_has_failed_an_attempt_of_each_job(client: Client, sink: Sink) -> None:
    target, timeout = sink.target(holds=True), timedelta(seconds=2)
    jobs = gather(client, target, Collect("slow", window=timedelta(seconds=1)), 2, timeout=timeout)

    target.wait()
    time.sleep(timeout.total_seconds() + 1)
    target.released.set()

    found = [reaches(client, job.id, "succeeded") for job in jobs]
    assert given(target.arrivals) == [by_id(jobs, 0, 1), by_id(jobs, 0, 1, attempt=2)]
    assert [job.attempt for job in found] == [2, 2]
