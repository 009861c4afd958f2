"""How a job is called, from what was asked for to what its target sees."""

import io
import json
import sys
from datetime import timedelta
from typing import Any

import pytest

from functions.domain.instants import MINUTE, parse_instant
from tests.http_sink import HttpSink, answering
from tests.integration.stage import Stage

HTTP = {"method": "PUT", "headers": {"X-Key": "hush", "X-Team": "billing"}, "success": [409], "retry_on": [404]}


@pytest.mark.parametrize("delay", [0, 200])
def test_a_job_is_called_as_it_asks_to_be_from_either_ring(stage: Stage, sink: HttpSink, delay: int):
    sink.respond = answering(409)
    job_id = stage.submit(target=sink.url, payload={"n": 1}, http=HTTP, tags=["eu"], **later(delay))["id"]

    run(stage, delay)

    [request] = sink.requests
    assert (request.method, request.body) == ("PUT", '{"n":1}')
    assert (request.headers["x-key"], request.headers["x-team"]) == ("hush", "billing")
    assert stage.get(job_id)["state"] == "succeeded"


@pytest.mark.parametrize(("status", "state"), [(404, "retrying"), (200, "failed"), (410, "failed")])
def test_what_an_answer_means_is_what_its_job_says(stage: Stage, sink: HttpSink, status: int, state: str):
    sink.respond = answering(status)
    job_id = stage.submit(target=sink.url, http=HTTP)["id"]

    stage.work()

    assert stage.get(job_id)["state"] == state


def test_a_retry_that_would_come_after_the_age_of_its_policy_does_not_come(stage: Stage, sink: HttpSink):
    sink.respond = answering(500)
    retry = {"strategy": "fixed", "base": 60, "attempts": 5, "max_age": 30}
    job_id = stage.submit(target=sink.url, retry=retry)["id"]

    stage.work()

    found = stage.get(job_id)
    assert (found["state"], found["attempt"]) == ("failed", 1)


def test_a_job_is_tried_again_at_its_intervals_of_which_the_last_is_repeated(stage: Stage, sink: HttpSink):
    sink.respond = answering(500)
    job_id = stage.submit(target=sink.url, retry={"intervals": [600, "PT15M"], "attempts": 4})["id"]

    waits = []
    for _ in range(4):
        stage.work(within_seconds=1)
        found = stage.get(job_id)
        waits.append((found["state"], parse_instant(found["due_at"]) - stage.now()))
        stage.travel(waits[-1][1])
        stage.scan()

    assert [state for state, _ in waits] == ["retrying", "retrying", "retrying", "failed"]
    # A wait is counted from when the attempt ended, which was a moment before it was looked at.
    for (_, wait), whole in zip(waits, (600, 900, 900), strict=False):
        assert timedelta(seconds=whole) - MINUTE < wait <= timedelta(seconds=whole)


def test_a_repeated_key_is_another_job_when_its_intervals_differ(stage: Stage):
    job = {"target": "https://example.com", "delay": 3_600, "idempotency_key": "order-8"}
    stage.submit(**job, retry={"intervals": [60, 300]})

    assert stage.submit(**job, retry={"intervals": [60, "PT5M"]})["replayed"]
    for retry in ({"intervals": [60, 301]}, {"intervals": [60, 300], "jitter": "full"}):
        status, problem = stage.call("POST", "/v1/jobs", {"tenant": "acme", **job, "retry": retry})
        assert (status, problem["code"]) == (409, "key_reused")


def test_a_repeated_key_is_another_job_when_a_header_differs(stage: Stage):
    job = {"target": "https://example.com", "delay": 3_600, "idempotency_key": "order-7", "http": HTTP}
    first = stage.submit(**job)
    assert stage.submit(**{**job, "http": {**HTTP, "headers": dict(reversed(HTTP["headers"].items()))}})["replayed"]

    other = {"tenant": "acme", **job, "http": {**HTTP, "headers": {"X-Key": "other"}}}
    status, problem = stage.call("POST", "/v1/jobs", other)

    assert (status, problem["code"], problem["id"]) == (409, "key_reused", first["id"])


def test_a_fire_of_a_schedule_is_called_as_its_job_asks_to_be(stage: Stage, sink: HttpSink):
    sink.respond = answering(409)
    put(stage, sink, tags=["eu"])
    stage.travel(timedelta(hours=1))
    stage.scan()
    stage.work(within_seconds=1)

    [request] = sink.requests
    assert (request.method, request.headers["x-key"]) == ("PUT", "hush")
    assert schedule_of(stage)["last_outcome"] == "succeeded"


def test_what_learns_of_a_schedule_is_the_same_when_it_is_put_again(stage: Stage, sink: HttpSink):
    put(stage, sink, tags=["eu", "billing"], retry={"max_age": 3_600})
    found = schedule_of(stage)
    assert found["job"]["http"] == HTTP
    assert (found["job"]["tags"], found["job"]["retry"]) == (["eu", "billing"], {"max_age": "PT1H"})

    definition = {name: found[name] for name in ("every", "job")}
    status, again = stage.call("PUT", "/v1/schedules/nightly", definition, query={"tenant": "acme"})

    assert (status, again) == (200, found)


def test_what_headers_hold_is_in_no_line_of_the_log(
    stage: Stage, sink: HttpSink, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    sink.respond = answering(410)
    stage.submit(target=sink.url, http=HTTP)
    stage.submit(target=sink.url, http={**HTTP, "headers": {"X-Key": "hush", "User-Agent": "hush"}}, delay=1)
    stage.call("POST", "/v1/jobs", {"tenant": "acme", "target": sink.url, "http": {"headers": {"Host": "hush"}}})
    stage.work(within_seconds=2)

    logged = "".join(capsys.readouterr()) + caplog.text
    assert "dead_lettered" in logged
    assert "hush" not in logged


def test_a_cold_start_logs_to_where_its_own_process_does(
    stage: Stage, sink: HttpSink, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        # As of a test before: its output is closed when it has ended.
        before = io.StringIO()
        patch.setattr(sys, "stdout", before)
        stage.submit(target=sink.url)
        before.close()

    stage.forget_modules()
    sink.respond = answering(410)
    stage.submit(target=sink.url, http=HTTP)
    stage.work()

    captured = capsys.readouterr()
    assert "dead_lettered" in captured.out
    assert captured.err == ""


def later(delay: int) -> dict[str, Any]:
    return {"delay": delay} if delay else {}


def run(stage: Stage, delay: int) -> None:
    if delay:
        stage.travel(timedelta(seconds=delay + 1))
        stage.scan()
    stage.work()


def put(stage: Stage, sink: HttpSink, **job: Any) -> None:
    phase = int((stage.now() + timedelta(minutes=30)).timestamp()) % 3_600
    definition = {"every": {"interval": 3_600, "phase": phase}, "job": {"target": sink.url, "http": HTTP, **job}}
    status, answer = stage.call("PUT", "/v1/schedules/nightly", definition, query={"tenant": "acme"})
    assert status == 201, json.dumps(answer)


def schedule_of(stage: Stage) -> dict[str, Any]:
    return stage.call("GET", "/v1/schedules/nightly", query={"tenant": "acme"})[1]
