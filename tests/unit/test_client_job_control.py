"""The client's calls about jobs that were submitted, against a real server: what it sends, and what it makes of answers."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.api_server import LOST, Answer, ApiServer
from tests.unit.test_client import DOWN, Waits, a_client
from tickwheel.client import Client
from tickwheel.client.calls.jobs import Ended, Explanation, Heartbeat, Waiting
from tickwheel.client.words import JobState, Reason
from tickwheel.errors import ApiProblem, InvalidJob, Unreachable

JOB = "j1~acme~x:y"
PATH = "/v1/jobs/j1~acme~x:y"
AT = datetime(2030, 1, 31, 9, tzinfo=UTC)
WAITING = {"id": "j1~new", "tenant": "acme", "state": "scheduled", "due_at": "2030-01-31T09:00:00Z"}
EXPLANATION = {
    "id": JOB,
    "state": "scheduled",
    "reason": "waiting",
    "at": "2030-01-31T09:00:00Z",
    "detail": "It waits.",
    "remedy": "Nothing.",
    "would_change_it": "Nothing.",
}
BEAT = {"id": JOB, "state": "running", "lease_until": "2030-01-31T09:00:00Z", "cancelled": True}
ENDED = {"id": JOB, "state": "succeeded"}
NOT_YET = Answer(409, {"status": 409, "code": "not_held", "title": "Not yet"}, (("Retry-After", "1"),))

CALLS: list[tuple[Callable[[Client], Any], str, str, Any, Any]] = [
    (lambda client: client.run_now(JOB), "POST", f"{PATH}:run-now", None, WAITING),
    (lambda client: client.reschedule(JOB, delay=timedelta(hours=2)), "PATCH", PATH, {"delay": 7_200}, WAITING),
    (
        lambda client: client.reschedule(JOB, run_at=AT.astimezone(timezone(timedelta(hours=1)))),
        "PATCH",
        PATH,
        {"run_at": "2030-01-31T09:00:00Z"},
        WAITING,
    ),
    (lambda client: client.edit(JOB, {"payload": None}), "PATCH", PATH, {"payload": None}, WAITING),
    (lambda client: client.explain(JOB), "GET", f"{PATH}/explain", None, EXPLANATION),
    (lambda client: client.payload(JOB), "GET", f"{PATH}/payload", None, {"id": JOB, "payload": {"n": 1}}),
    (lambda client: client.heartbeat(JOB, fence=3), "POST", f"{PATH}/heartbeat", {"fence": 3}, BEAT),
    (
        lambda client: client.heartbeat(JOB, fence=3, lease=timedelta(minutes=5)),
        "POST",
        f"{PATH}/heartbeat",
        {"fence": 3, "lease": 300},
        BEAT,
    ),
    (lambda client: client.complete(JOB, fence=3), "POST", f"{PATH}/complete", {"fence": 3}, ENDED),
    (
        lambda client: client.complete(JOB, fence=3, result=[1]),
        "POST",
        f"{PATH}/complete",
        {"fence": 3, "result": [1]},
        ENDED,
    ),
    (
        lambda client: client.fail(JOB, fence=3, error="no stock"),
        "POST",
        f"{PATH}/fail",
        {"fence": 3, "error": "no stock"},
        ENDED,
    ),
    (
        lambda client: client.fail(JOB, fence=3, error="no stock", permanent=True, retry_after=timedelta(seconds=90)),
        "POST",
        f"{PATH}/fail",
        {"fence": 3, "error": "no stock", "permanent": True, "retry_after": 90},
        ENDED,
    ),
]


@pytest.mark.parametrize(("call", "method", "path", "body", "answer"), CALLS)
def test_a_call_sends_what_was_said(
    call: Callable[[Client], Any], method: str, path: str, body: Any, answer: dict[str, Any]
) -> None:
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client:
        call(client)

    (request,) = server.requests
    assert (request.method, request.path) == (method, path)
    assert (request.json if request.body else None) == body


@pytest.mark.parametrize(("call", "answer"), [(call, answer) for call, _, _, _, answer in CALLS])
@pytest.mark.parametrize("first", [LOST, DOWN])
def test_a_call_whose_answer_was_lost_is_made_once_more(
    call: Callable[[Client], Any], answer: dict[str, Any], first: Answer
) -> None:
    with ApiServer(first, Answer(200, answer)) as server, a_client(server) as client:
        call(client)

    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("call", "answer", "read"),
    [
        (
            lambda client: client.run_now(JOB),
            {**WAITING, "moved_from": JOB},
            Waiting(id="j1~new", tenant="acme", state=JobState.SCHEDULED, due_at=AT, moved_from=JOB),
        ),
        (
            lambda client: client.explain(JOB),
            {**EXPLANATION, "at": None},
            Explanation(
                id=JOB, state=JobState.SCHEDULED, reason=Reason.WAITING, at=None, detail="It waits.", remedy="Nothing."
            ),
        ),
        (
            lambda client: client.heartbeat(JOB, fence=1),
            BEAT,
            Heartbeat(id=JOB, state=JobState.RUNNING, lease_until=AT, cancelled=True),
        ),
        (lambda client: client.complete(JOB, fence=1), ENDED, Ended(id=JOB, state=JobState.SUCCEEDED)),
    ],
)
def test_an_answer_is_read(call: Callable[[Client], Any], answer: dict[str, Any], read: Any) -> None:
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client:
        assert call(client) == read


@pytest.mark.parametrize(("call", "answer"), [(call, answer) for call, _, _, _, answer in CALLS])
def test_an_answer_that_is_not_understood_is_reported(call: Callable[[Client], Any], answer: dict[str, Any]) -> None:
    with (
        ApiServer(Answer(200, {"id": answer["id"]})) as server,
        a_client(server) as client,
        pytest.raises(Unreachable, match="not understood"),
    ):
        call(client)


def test_what_is_to_be_reported_again_soon_is_reported_again_after_the_time_that_is_named() -> None:
    waits = Waits()
    with ApiServer(NOT_YET, Answer(200, ENDED)) as server, a_client(server, waits) as client:
        assert client.fail(JOB, fence=1, error="no stock").state == "succeeded"

    assert [int(wait) for wait in waits] == [1]


def test_any_other_conflict_is_reported_at_once() -> None:
    stale = Answer(409, {"status": 409, "code": "stale_fence", "title": "The attempt is over"})
    with ApiServer(stale) as server, a_client(server) as client, pytest.raises(ApiProblem) as problem:
        client.heartbeat(JOB, fence=1)

    assert problem.value.code == "stale_fence"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({}, "give run_at or delay"),
        ({"run_at": AT, "delay": timedelta(hours=1)}, "give run_at or delay"),
        ({"run_at": AT.replace(tzinfo=None)}, "no time zone"),
        ({"delay": timedelta(seconds=-1)}, "is not negative"),
    ],
)
def test_a_time_that_cannot_be_sent_is_refused_before_anything_is(times: dict[str, Any], said: str) -> None:
    with ApiServer() as server, a_client(server) as client, pytest.raises(InvalidJob, match=said):
        client.reschedule(JOB, **times)

    assert server.requests == []


def test_the_remedy_of_a_scheduler_that_calls_it_otherwise_is_read() -> None:
    before = {name: value for name, value in EXPLANATION.items() if name != "remedy"}

    with ApiServer(Answer(200, before)) as server, a_client(server) as client:
        assert client.explain(JOB).remedy == "Nothing."
