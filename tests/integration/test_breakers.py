"""A failing destination through the real handlers, over tables and queues."""

from collections.abc import Iterator
from typing import Any

import pytest

from functions.domain.targets.breaker import OPEN_FOR
from tests.http_sink import HttpSink, answering, http_sink
from tests.integration.stage import Stage


@pytest.fixture
def sink() -> Iterator[HttpSink]:
    with http_sink() as sink:
        sink.respond = answering(503)
        yield sink


def test_jobs_of_a_failing_destination_wait_untouched_until_a_probe_goes_well(stage: Stage, sink: HttpSink):
    fail(stage, sink)
    sink.respond = answering(200)

    waiting = run(stage, sink)
    assert (stage.get(waiting["id"])["state"], len(sink.requests)) == ("scheduled", 5)
    (breaker,) = breakers(stage)
    assert (breaker["state"], breaker["destination"], breaker["error_class"]) == ("open", sink.url, "http_503")

    stage.travel(OPEN_FOR)
    probe = run(stage, sink)

    assert stage.get(probe["id"])["state"] == "succeeded"
    assert breakers(stage) == []
    assert stage.get(run(stage, sink)["id"])["state"] == "succeeded"


def test_a_reset_lets_jobs_run_at_once(stage: Stage, sink: HttpSink):
    fail(stage, sink)
    sink.respond = answering(200)

    status, answer = stage.call("POST", "/v1/breakers:reset", {"tenant": "acme", "destination": f"{sink.url}/hook"})
    stage.forget_modules()  # another worker, which has not seen it fail

    assert (status, answer["was_closed"], answer["destination"]) == (200, False, sink.url)
    assert breakers(stage) == []
    assert stage.get(run(stage, sink)["id"])["state"] == "succeeded"


def test_while_all_is_well_there_is_no_row(stage: Stage, sink: HttpSink):
    sink.respond = answering(200)
    run(stage, sink)

    assert [row for row in stage.rows("tenants") if row["i"]["S"].startswith("breaker#")] == []


def fail(stage: Stage, sink: HttpSink) -> None:
    for _ in range(5):
        run(stage, sink)
    assert len(sink.requests) == 5


def run(stage: Stage, sink: HttpSink) -> dict[str, Any]:
    """A job that is tried once, now."""
    job = stage.submit(target=sink.url, retry={"attempts": 1})
    stage.work()
    return job


def breakers(stage: Stage) -> list[dict[str, Any]]:
    status, answer = stage.call("GET", "/v1/breakers", query={"tenant": "acme"})
    assert status == 200, answer
    return answer["breakers"]
