"""A trace on its whole way: from the request that brings it, through both rings, to the target."""

from datetime import timedelta
from typing import Any

import pytest

from functions.domain.trace import parse_traceparent
from tests.http_sink import HttpSink, answering
from tests.integration.stage import Stage

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN_ID = "00f067aa0ba902b7"
BROUGHT = {"traceparent": f"00-{TRACE_ID}-{SPAN_ID}-01"}


@pytest.mark.parametrize("delay", [0, 200])
def test_a_target_is_called_in_the_trace_of_the_submission(stage: Stage, sink: HttpSink, delay: int):
    job_id = submit(stage, sink, delay=delay)

    travel_and_work(stage, delay)

    assert stage.get(job_id)["state"] == "succeeded"
    trace = trace_sent_to(sink)
    assert (trace.trace_id, trace.flags) == (TRACE_ID, 1)
    assert trace.span_id != SPAN_ID


def test_every_job_of_a_batch_is_called_in_its_trace(stage: Stage, sink: HttpSink):
    jobs = [{"tenant": "acme", "target": sink.url, "run_at": stage.moment_ago()} for _ in range(2)]
    status, _ = stage.call("POST", "/v1/jobs:batch", {"jobs": jobs}, headers=BROUGHT)

    stage.work()

    assert status == 200
    assert [trace_sent_to(sink, number).trace_id for number in range(2)] == [TRACE_ID, TRACE_ID]


def test_a_promoted_message_carries_the_trace_for_xray(stage: Stage, sink: HttpSink):
    submit(stage, sink, delay=200)
    submit(stage, sink, delay=200, headers={"traceparent": "none"})
    stage.travel(timedelta(seconds=201))
    # The emulated queue forgets system attributes of a batch.
    entries = sent_by(stage.module("scanner").wiring.promoted)
    stage.scan()

    expected = f"Root=1-{TRACE_ID[:8]}-{TRACE_ID[8:]};Parent={SPAN_ID}"
    headers = [entry.get("MessageSystemAttributes", {}).get("AWSTraceHeader") for entry in entries]
    assert sorted(headers, key=bool) == [None, {"DataType": "String", "StringValue": expected}]


def test_what_lambda_sends_goes_on_in_the_trace_of_its_invocation(
    stage: Stage, sink: HttpSink, monkeypatch: pytest.MonkeyPatch
):
    # botocore does it by itself, for whatever runs in Lambda: nothing else takes a near job's trace to its worker.
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "api")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
    headers: list[Any] = []
    client = stage.module("api").wiring.ready._client
    client.meta.events.register(
        "before-send.sqs.SendMessageBatch", lambda request, **_: headers.append(request.headers["X-Amzn-Trace-Id"])
    )

    submit(stage, sink)

    assert headers == ["Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"]


@pytest.mark.parametrize("header", ["nonsense", f"ff-{TRACE_ID}-{SPAN_ID}-01", f"00-{'0' * 32}-{SPAN_ID}-01"])
def test_a_traceparent_that_is_not_valid_is_ignored(stage: Stage, sink: HttpSink, header: str):
    sink.respond = answering(500)
    retry = {"attempts": 2, "base": 1, "strategy": "fixed"}
    submit(stage, sink, headers={"traceparent": header}, retry=retry)

    stage.work()
    stage.work(within_seconds=5)

    first, second = trace_sent_to(sink, 0), trace_sent_to(sink, 1)
    # One of its own, which both attempts share.
    assert first.trace_id == second.trace_id not in (TRACE_ID, "0" * 32)
    assert first.span_id != second.span_id


def test_a_job_that_is_moved_stays_in_its_trace(stage: Stage, sink: HttpSink):
    job_id = submit(stage, sink, delay=3_600)
    status, _ = stage.call("PATCH", f"/v1/jobs/{job_id}", {"delay": 7_200, "tags": ["moved"]})

    travel_and_work(stage, 7_200)

    assert status == 200
    assert trace_sent_to(sink).trace_id == TRACE_ID


def submit(stage: Stage, sink: HttpSink, *, delay: int = 0, headers: dict[str, str] | None = None, **job: Any) -> str:
    when = {"delay": delay} if delay else {"run_at": stage.moment_ago()}
    body = {"tenant": "acme", "target": sink.url, **when, **job}
    status, accepted = stage.call("POST", "/v1/jobs", body, headers=headers or BROUGHT)
    assert status == 202, accepted
    return accepted["id"]


def sent_by(queue: Any) -> list[dict[str, Any]]:
    """The entries that a ready queue sends from now on."""
    entries: list[dict[str, Any]] = []
    event = "provide-client-params.sqs.SendMessageBatch"
    queue._client.meta.events.register(event, lambda params, **_: entries.extend(params["Entries"]))
    return entries


def travel_and_work(stage: Stage, seconds: int) -> None:
    if seconds:
        stage.travel(timedelta(seconds=seconds + 1))
        stage.scan()
    stage.work()


def trace_sent_to(sink: HttpSink, number: int = 0) -> Any:
    trace = parse_traceparent(sink.requests[number].headers["traceparent"])
    assert trace is not None
    return trace
