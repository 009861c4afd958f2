"""The client's calls about many jobs against a real server: what they send, and what they make of the answers."""

import gzip
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.credentials import Credentials

from tests.api_server import LOST, Answer, ApiServer
from tests.either_client import made_client
from tests.unit.test_client_schedules import a_client
from tickwheel.client.backoff import Backoff
from tickwheel.client.operations import Example, JobFilter, Operation
from tickwheel.client.words import Action, OperationState
from tickwheel.errors import ApiProblem, InvalidRequest, Unreachable

ID = "o" + "1" * 25
PATH = f"/v1/operations/acme/{ID}"
NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
EU = JobFilter(tenant="acme", tag="eu")


def operation_json(**changes: Any) -> dict[str, Any]:
    return {
        "id": ID,
        "tenant": "acme",
        "action": "cancel",
        "dry_run": False,
        "state": "done",
        "stop_requested": False,
        "caller": "arn:aws:iam::123456789012:user/ann",
        "created_at": "2027-03-01T12:00:00.000Z",
        "filter": {"due_from": "2027-03-01T11:00:00.000Z", "tag": "eu"},
        "share": 1.0,
        "examined": 5,
        "matched": 3,
        "done": 3,
        "refused": {},
        "examples": [],
        **changes,
    }


WAITING = operation_json(state="waiting", share=0.0, examined=0, matched=0, done=0)


def an_export(server: ApiServer, *paths: str) -> Answer:
    """An export that is done; its files are on the same server."""
    return Answer(200, operation_json(action="export", parts=[f"{server.url}{path}" for path in paths]))


def a_part(*lines: str) -> Answer:
    return Answer(200, gzip.compress("".join(f"{line}\n" for line in lines).encode()))


@pytest.mark.parametrize(
    ("ask", "sent"),
    [
        (lambda calls: calls.cancel(EU), {"action": "cancel"}),
        (lambda calls: calls.cancel(EU, dry_run=True), {"action": "cancel", "dry_run": True}),
        (lambda calls: calls.export(EU), {"action": "export"}),
        (lambda calls: calls.run_now(EU), {"action": "run_now"}),
        (lambda calls: calls.run_now(EU, rate=7.5), {"action": "run_now", "rate": 7.5}),
        (lambda calls: calls.reschedule(EU, by=timedelta(hours=-2)), {"action": "reschedule", "by": -7_200}),
        (lambda calls: calls.reschedule(EU, by=timedelta(0)), {"action": "reschedule", "by": 0}),
        (
            lambda calls: calls.reschedule(EU, to=NOON, spread=timedelta(minutes=5), dry_run=True),
            {"action": "reschedule", "to": "2027-03-01T12:00:00Z", "spread": 300, "dry_run": True},
        ),
    ],
)
def test_an_operation_is_asked_for_as_it_was_said(ask: Callable[[Any], Operation], sent: dict[str, Any]) -> None:
    with ApiServer(Answer(202, WAITING)) as server, a_client(server) as client:
        operation = ask(client.operations)

    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/operations")
    assert request.json == {"tenant": "acme", "tag": "eu", **sent}
    assert (operation.id, operation.state, operation.is_over) == (ID, "waiting", False)


def test_all_that_a_filter_can_say_is_sent() -> None:
    matching = JobFilter(
        tenant="acme",
        due_from=NOON,
        due_until=NOON + timedelta(days=1),
        target="https://example.com",
        schedule="nightly",
        tag="eu",
        all=True,
    )

    assert matching.as_json() == {
        "tenant": "acme",
        "due_from": "2027-03-01T12:00:00Z",
        "due_until": "2027-03-02T12:00:00Z",
        "target": "https://example.com",
        "schedule": "nightly",
        "tag": "eu",
        "all": True,
    }
    assert JobFilter(tenant="acme", all=True).as_json() == {"tenant": "acme", "all": True}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tenant": ""}, "tenant: is required"),
        ({"tenant": "acme", "due_from": datetime(2027, 3, 1)}, "due_from: has no time zone"),  # noqa: DTZ001
        ({"tenant": "acme", "due_until": "now"}, "due_until: is a datetime"),
        ({"tenant": "acme", "all": "yes"}, "all: is true or false"),
        ({"tenant": "acme"}, "all: must be true to mean all jobs of the tenant"),
    ],
)
def test_a_filter_is_valid_from_birth(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        JobFilter(**fields)


@pytest.mark.parametrize(
    ("shift", "said"),
    [
        ({}, "to: give by or to, and not both"),
        ({"by": timedelta(1), "to": NOON}, "to: give by or to, and not both"),
        ({"by": 60}, "by: is a timedelta"),
        ({"to": datetime(2027, 3, 1)}, "to: has no time zone"),  # noqa: DTZ001
        ({"to": NOON, "spread": timedelta(-1)}, "spread: is not negative"),
    ],
)
def test_a_shift_that_means_nothing_is_refused_before_anything_is_sent(shift: dict[str, Any], said: str) -> None:
    with ApiServer() as server, a_client(server) as client, pytest.raises(InvalidRequest, match=said):
        client.operations.reschedule(EU, **shift)

    assert server.requests == []


def test_a_repeat_after_a_lost_answer_has_the_same_key_and_another_call_has_another() -> None:
    answers = (LOST, Answer(202, WAITING), Answer(202, WAITING), Answer(202, WAITING))
    with ApiServer(*answers) as server, a_client(server) as client:
        client.operations.cancel(EU)
        client.operations.cancel(EU)
        client.operations.cancel(EU, idempotency_key="k")

    first, repeated, second, third = [request.headers["idempotency-key"] for request in server.requests]
    assert first == repeated != second
    assert third == "k"


def test_all_that_learns_of_an_operation_is_read() -> None:
    answer = operation_json(
        state="failed",
        ended_at="2027-03-01T13:00:00.000Z",
        share=0.25,
        refused={"too_late": 2, "moved": 1},
        examples=[{"job_id": "j1~x", "code": "too_late", "detail": "it is on its way"}, {"job_id": "j1~y"}],
        error="ClientError: throttled",
        stop_requested=True,
    )
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client:
        operation = client.operations.get(ID, tenant="acme")

    (request,) = server.requests
    assert (request.method, request.path) == ("GET", PATH)
    assert operation == Operation(
        id=ID,
        tenant="acme",
        action=Action.CANCEL,
        dry_run=False,
        state=OperationState.FAILED,
        stop_requested=True,
        caller="arn:aws:iam::123456789012:user/ann",
        created_at=NOON,
        ended_at=NOON + timedelta(hours=1),
        share=0.25,
        examined=5,
        matched=3,
        done=3,
        refused={"too_late": 2, "moved": 1},
        examples=(Example(job_id="j1~x", code="too_late", detail="it is on its way"), Example(job_id="j1~y")),
        error="ClientError: throttled",
        parts=None,
        body=answer,
    )
    assert (operation.refused_count, operation.is_over) == (3, True)


def test_operations_are_listed_page_by_page() -> None:
    pages = (
        {"operations": [operation_json(id="o1")], "next": "o1"},
        {"operations": [operation_json(id="o2")], "next": None},
    )
    with ApiServer(*(Answer(200, page) for page in pages)) as server, a_client(server) as client:
        found = list(client.operations.list(tenant="acme", page_size=1))

    assert [operation.id for operation in found] == ["o1", "o2"]
    assert [request.path for request in server.requests] == [
        "/v1/operations?tenant=acme&limit=1",
        "/v1/operations?tenant=acme&limit=1&after=o1",
    ]


def test_a_stop_is_sent_again_after_a_lost_answer() -> None:
    with ApiServer(LOST, Answer(202, {**WAITING, "stop_requested": True})) as server, a_client(server) as client:
        operation = client.operations.stop(ID, tenant="acme")

    assert operation.stop_requested
    assert [(request.method, request.path) for request in server.requests] == [("POST", f"{PATH}:stop")] * 2


def test_an_operation_is_followed_to_its_end() -> None:
    running = operation_json(state="running", share=0.5)
    seen: list[float] = []
    answers = [Answer(200, answer) for answer in (running, running, operation_json())]
    with ApiServer(*answers) as server, a_client(server) as client:
        ended = client.operations.wait(
            Operation.from_json(WAITING), on_progress=lambda operation: seen.append(operation.share)
        )

    assert (ended.state, ended.done) == ("done", 3)
    assert seen == [0.0, 0.5, 0.5, 1.0]
    assert {request.path for request in server.requests} == {PATH}


def test_what_is_over_is_not_waited_for() -> None:
    with ApiServer() as server, a_client(server) as client:
        client.operations.wait(Operation.from_json(operation_json(state="stopped")))

    assert server.requests == []


def test_the_files_of_an_export_are_one_file_on_this_side(tmp_path: Path) -> None:
    with ApiServer() as server, a_client(server) as client:
        server.answer_with(an_export(server, "/1?s=x", "/2?s=y"), a_part('{"id":"a"}', '{"id":"b"}'), a_part("{}"))
        count = client.operations.download(Operation.from_json(operation_json()), tmp_path / "jobs.jsonl")

    assert count == 3
    assert (tmp_path / "jobs.jsonl").read_text() == '{"id":"a"}\n{"id":"b"}\n{}\n'
    assert [request.path for request in server.requests] == [PATH, "/1?s=x", "/2?s=y"]
    assert "authorization" in server.requests[0].headers
    assert all("authorization" not in request.headers for request in server.requests[1:])
    assert list(tmp_path.iterdir()) == [tmp_path / "jobs.jsonl"]


def test_an_export_of_nothing_is_an_empty_file(tmp_path: Path) -> None:
    with ApiServer() as server, a_client(server) as client:
        server.answer_with(an_export(server))

        assert client.operations.download(Operation.from_json(operation_json()), tmp_path / "none") == 0
    assert (tmp_path / "none").read_bytes() == b""


def test_an_address_that_is_good_no_more_is_asked_for_again(tmp_path: Path) -> None:
    with ApiServer() as server, a_client(server) as client:
        server.answer_with(
            an_export(server, "/1", "/2"), a_part("1"), Answer(403, {}), an_export(server, "/3", "/4"), a_part("2")
        )
        assert client.operations.download(Operation.from_json(operation_json()), tmp_path / "out") == 2

    assert [request.path for request in server.requests] == [PATH, "/1", "/2", PATH, "/4"]


@pytest.mark.parametrize("statuses", [(404,), (403, 403)])
def test_files_that_are_gone_leave_no_half_a_file(tmp_path: Path, statuses: tuple[int, ...]) -> None:
    with ApiServer() as server, a_client(server) as client:
        answers = [answer for status in statuses for answer in (an_export(server, "/1?s=s3cret"), Answer(status, {}))]
        server.answer_with(*answers)
        with pytest.raises(ApiProblem, match="files are kept for 7 days") as problem:
            client.operations.download(Operation.from_json(operation_json()), tmp_path / "out")

    assert "s3cret" not in str(problem.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [(gzip.compress(b"{}\n" * 100, mtime=0)[:-9], "is cut off"), (b"<html>", "is damaged"), (b"", "is cut off")],
    ids=["cut", "no gzip", "empty"],
)
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    with ApiServer() as server, a_client(server) as client:
        server.answer_with(an_export(server, "/1"), Answer(200, content))
        with pytest.raises(Unreachable, match=said):
            client.operations.download(Operation.from_json(operation_json()), tmp_path / "out")

    assert list(tmp_path.iterdir()) == []


def test_a_download_is_tried_again_after_a_lost_answer_and_repeats_no_signature(tmp_path: Path) -> None:
    with ApiServer() as server, a_client(server) as client:
        server.answer_with(an_export(server, "/1?s=s3cret"), LOST, LOST, LOST)
        with pytest.raises(Unreachable) as failure:
            client.operations.download(Operation.from_json(operation_json()), tmp_path / "out")

    assert len(server.requests) == 4
    assert "s3cret" not in str(failure.value)


def test_only_an_export_that_is_done_has_files(tmp_path: Path) -> None:
    with (
        ApiServer(Answer(200, operation_json())) as server,
        a_client(server) as client,
        pytest.raises(InvalidRequest, match="is no export that is done"),
    ):
        client.operations.download(Operation.from_json(operation_json()), tmp_path / "out")


def test_pauses_between_looks_grow_to_five_seconds() -> None:
    pauses: list[float] = []
    with ApiServer(*[Answer(200, WAITING)] * 5, Answer(200, operation_json())) as server:
        backoff = Backoff(sleep=pauses.append)
        with made_client(server.url, region="us-east-1", credentials=Credentials("k", "s"), backoff=backoff) as client:
            client.operations.wait(Operation.from_json(WAITING))

    assert pauses == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
