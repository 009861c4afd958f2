"""The trace that a submission brings, in the client and on the command line."""

import json
from pathlib import Path

import pytest

from tests.api_server import ApiServer
from tests.command_line import run
from tests.unit.test_cli import a_file, a_line
from tests.unit.test_client import a_client, a_job
from tickwheel.errors import InvalidJob

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_submission_brings_the_trace_that_it_was_given() -> None:
    with ApiServer() as server, a_client(server) as client:
        client.submit("handler:echo", tenant="acme", traceparent=TRACEPARENT)
        client.submit_job(a_job(), traceparent=TRACEPARENT)

    assert [request.headers["traceparent"] for request in server.requests] == [TRACEPARENT, TRACEPARENT]
    assert "traceparent" not in server.requests[0].json


def test_no_trace_is_looked_for_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", TRACEPARENT)
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736")
    with ApiServer() as server, a_client(server) as client:
        client.submit("handler:echo", tenant="acme")

    assert [name for name in server.requests[0].headers if "trace" in name.lower()] == []


def test_all_requests_of_many_jobs_bring_the_same_trace() -> None:
    with ApiServer() as server, a_client(server) as client:
        client.submit_many([a_job() for _ in range(3)], batch_size=2, traceparent=TRACEPARENT)

    assert [request.headers["traceparent"] for request in server.requests] == [TRACEPARENT, TRACEPARENT]


@pytest.mark.parametrize(
    "given",
    [
        "",
        "hello",
        TRACEPARENT.upper(),
        TRACEPARENT + "\n",
        f"ff{TRACEPARENT[2:]}",
        f"00-{'0' * 32}-00f067aa0ba902b7-01",
    ],
)
def test_what_the_scheduler_would_ignore_is_refused_before_it_is_sent(given: str) -> None:
    with ApiServer() as server, a_client(server) as client, pytest.raises(InvalidJob, match="traceparent"):
        client.submit("handler:echo", tenant="acme", traceparent=given)

    assert server.requests == []


def test_the_command_line_passes_a_trace_on(tmp_path: Path) -> None:
    file = a_file(tmp_path, a_line(), a_line())
    with ApiServer() as server:
        one = run("submit", "handler:echo", "--tenant", "acme", "--traceparent", TRACEPARENT, server=server)
    with ApiServer() as batches:
        many = run("submit", "--file", str(file), "--json", "--traceparent", TRACEPARENT, server=batches)

    assert (one.exit_code, many.exit_code) == (0, 0)
    assert json.loads(many.stdout)["accepted"] == 2
    assert [request.headers["traceparent"] for request in (*server.requests, *batches.requests)] == [TRACEPARENT] * 2


def test_the_command_line_says_what_is_wrong_with_a_trace() -> None:
    with ApiServer() as server:
        result = run("submit", "handler:echo", "--tenant", "acme", "--traceparent", "hello", server=server)

    assert result.exit_code == 1
    assert "traceparent" in result.stderr
    assert server.requests == []
