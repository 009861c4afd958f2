"""Callbacks, deadlines of runs, and the runs that schedules keep, over real functions and a real target."""

from __future__ import annotations

from datetime import timedelta

import pytest

from testkit.polling import eventually
from tests.e2e.sink import ALWAYS, Sink
from tests.e2e.waiting import reaches, send
from tickwheel.client import Client
from tickwheel.client.jobs import RetryPolicy
from tickwheel.client.schedules import NewSchedule, Schedule

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

TWICE = RetryPolicy(strategy="fixed", attempts=2, base=timedelta(seconds=1), cap=timedelta(seconds=1))


def test_a_success_and_a_failure_are_told_once_each_to_whom_they_concern(client: Client, sink: Sink) -> None:
    well, badly, over = sink.target(), sink.target(), sink.target()
    callbacks = {"on_success": well.url, "on_failure": badly.url, "on_end": over.url}

    good = send(client, sink.target(), seconds=0, **callbacks)
    bad = send(client, sink.target(fails=ALWAYS), seconds=0, retry=TWICE, **callbacks)
    over.wait(2)
    well.wait()
    badly.wait()

    for sent, state in ((good, "succeeded"), (bad, "failed")):
        reaches(client, sent.job.id, state)
        eventually(
            lambda sent=sent: client.get(sent.job.id).callbacks,
            lambda callbacks: [each.state for each in callbacks] == ["succeeded"] * 2,
            what=f"the callbacks of {sent.job.id} have succeeded",
        )
    told = {target: [arrival.json["job"] for arrival in target.arrivals] for target in (well, badly, over)}
    assert [(job["id"], job["state"]) for job in told[well]] == [(good.job.id, "succeeded")]
    assert [(job["id"], job["state"], job["error"]) for job in told[badly]] == [
        (bad.job.id, "failed", "the target answered 503")
    ]
    assert {(job["id"], job["state"]) for job in told[over]} == {
        (good.job.id, "succeeded"),
        (bad.job.id, "failed"),
    }
    assert len(told[over]) == 2


def test_a_run_that_takes_too_long_is_not_tried_again(client: Client, sink: Sink) -> None:
    often = RetryPolicy(strategy="fixed", attempts=20, base=timedelta(seconds=1), cap=timedelta(seconds=1))
    sent = send(client, sink.target(fails=ALWAYS), seconds=0, retry=often, run_deadline=timedelta(seconds=4))

    reaches(client, sent.job.id, "failed")

    arrivals = sent.target.arrivals
    assert 1 <= len(arrivals) < 6
    assert arrivals[-1].at - sent.job.due_at < timedelta(seconds=5)


def test_the_last_success_and_the_last_failure_are_kept_and_say_that_they_were_triggered(
    client: Client, sink: Sink
) -> None:
    kept: dict[str, Schedule] = {}
    for name, fails in (("keeps-successes", 0), ("keeps-failures", ALWAYS)):
        schedule = NewSchedule(
            name,
            tenant="acme",
            every=timedelta(days=300),
            success_history=1,
            failure_history=1,
            retry=RetryPolicy(strategy="fixed", attempts=1, base=timedelta(seconds=1), cap=timedelta(seconds=1)),
            target=sink.target(fails=fails).url,
        )
        client.schedules.put(schedule)
        job_id = client.schedules.trigger(name, tenant="acme")
        kept[name] = eventually(
            lambda name=name: client.schedules.get(name, tenant="acme"),
            lambda found: bool(found.last_successes or found.last_failures),
            what=f"a run that {name}",
        )
        client.schedules.delete(name, tenant="acme")
        assert [(run.job_id, run.origin) for run in kept[name].runs] == [(job_id, "triggered")]

    (success,), (failure,) = kept["keeps-successes"].last_successes, kept["keeps-failures"].last_failures
    assert (success.origin, success.state, success.attempt) == ("triggered", "succeeded", 1)
    assert (failure.origin, failure.state, failure.error) == ("triggered", "failed", "http_503")
    assert not kept["keeps-successes"].last_failures
    assert not kept["keeps-failures"].last_successes
