"""The client's calls about dead letters against a real server: what they send, and what they make of the answers."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.api_server import LOST, Answer, ApiServer
from tests.unit.test_client_schedules import a_client
from tickwheel.client.dead_letters import DeadLetter, DeadLetterFilter, LetterFilter, NotDone, Part, Replay
from tickwheel.client.words import JobState, ReplayOutcome
from tickwheel.errors import ApiProblem, InvalidRequest, Unreachable

ACME = DeadLetterFilter(tenant="acme")
ID = "d1~acme~n0p8ww00~nightly:2027-03-01T12:00:00.000Z"
PATH = "/v1/dead-letters/d1~acme~n0p8ww00~nightly:2027-03-01T12:00:00.000Z"


def dead_letter_json(letter_id: str = ID, **changes: Any) -> dict[str, Any]:
    return {
        "id": letter_id,
        "tenant": "acme",
        "dead_at": "2027-03-01T12:00:00.000Z",
        "error": "HTTP 500",
        "error_class": "http_500",
        "attempt": 3,
        "is_replayable": True,
        "job_id": "j1~x",
        "target": "https://example.com/hook",
        **changes,
    }


def page_json(*letters: dict[str, Any], after: str | None = None) -> dict[str, Any]:
    return {"dead_letters": list(letters), "examined_until": "2027-03-01T00:00:00.000Z", "next": after}


def part_json(*, after: str | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "matched": 2,
        "replayed": 2,
        "already_replayed": 0,
        "failed": [],
        "examined_until": "2027-03-01T00:00:00.000Z",
        "next": after,
        **changes,
    }


def test_dead_letters_are_listed_page_by_page_with_empty_ones_between() -> None:
    pages = (
        page_json(dead_letter_json("d1~a"), after="1~2~~x"),
        page_json(after="1~1~~"),
        page_json(dead_letter_json("d1~b")),
    )
    matching = DeadLetterFilter(
        tenant="?",
        since=datetime(2027, 3, 1, tzinfo=UTC),
        until=datetime(2027, 3, 2, tzinfo=UTC),
        target="https://example.com",
        error_class="timeout",
        schedule="nightly",
        tag="eu",
    )
    with ApiServer(*(Answer(200, page) for page in pages)) as server, a_client(server) as client:
        letters = list(client.dead_letters.list(matching, page_size=7))

    asked = (
        "tenant=%3F&since=2027-03-01T00%3A00%3A00Z&until=2027-03-02T00%3A00%3A00Z&target=https%3A%2F%2Fexample.com"
        "&error_class=timeout&schedule=nightly&tag=eu&limit=7"
    )
    assert [letter.id for letter in letters] == ["d1~a", "d1~b"]
    assert [request.path for request in server.requests] == [
        f"/v1/dead-letters?{asked}",
        f"/v1/dead-letters?{asked}&after=1~2~~x",
        f"/v1/dead-letters?{asked}&after=1~1~~",
    ]


def test_all_that_learns_of_a_dead_letter_is_read() -> None:
    job = {"target": "https://example.com/hook", "timeout": "PT30S"}
    answer = dead_letter_json(schedule_id="nightly", tags=["eu"], payload={"n": 1}, job=job)
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client:
        letter = client.dead_letters.get(ID)

    (request,) = server.requests
    assert (request.method, request.path) == ("GET", PATH)
    assert letter == DeadLetter(
        id=ID,
        tenant="acme",
        dead_at=datetime(2027, 3, 1, 12, tzinfo=UTC),
        error="HTTP 500",
        error_class="http_500",
        attempt=3,
        is_replayable=True,
        job_id="j1~x",
        target="https://example.com/hook",
        schedule_id="nightly",
        tags=("eu",),
        payload={"n": 1},
        job=job,
        body=answer,
    )


def test_what_tickwheel_did_not_write_is_read() -> None:
    answer = dead_letter_json(is_replayable=False, raw="hello", is_payload_gone=True)
    del answer["job_id"], answer["target"]
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client:
        letter = client.dead_letters.get(ID)

    assert (letter.raw, letter.job_id, letter.job, letter.is_payload_gone) == ("hello", None, None, True)


def test_an_answer_that_is_not_understood_does_not_repeat_the_payload() -> None:
    with (
        ApiServer(Answer(200, {"payload": "s3cret"})) as server,
        a_client(server) as client,
        pytest.raises(Unreachable) as failure,
    ):
        client.dead_letters.get(ID)

    assert "s3cret" not in str(failure.value)


def test_a_replay_is_sent_again_after_a_lost_answer() -> None:
    answer = {"id": ID, "job_id": "j1~x", "outcome": "already_replayed", "state": "running"}
    with ApiServer(LOST, Answer(200, answer)) as server, a_client(server) as client:
        outcome = client.dead_letters.replay(ID)

    assert outcome == Replay(id=ID, job_id="j1~x", outcome=ReplayOutcome.ALREADY_REPLAYED, state=JobState.RUNNING)
    assert [(request.method, request.path) for request in server.requests] == [("POST", f"{PATH}:replay")] * 2


def test_a_replay_says_when_the_next_attempt_is_due() -> None:
    answer = {"id": ID, "job_id": "j1~x", "outcome": "replayed", "attempt": 4, "due_at": "2027-03-01T12:00:00.000Z"}
    with ApiServer(Answer(202, answer)) as server, a_client(server) as client:
        outcome = client.dead_letters.replay(ID)

    assert (outcome.attempt, outcome.due_at) == (4, datetime(2027, 3, 1, 12, tzinfo=UTC))


def test_a_purge_is_sent_again_after_a_lost_answer() -> None:
    with ApiServer(LOST, Answer(200, {"id": ID, "outcome": "purged"})) as server, a_client(server) as client:
        client.dead_letters.purge(ID)

    assert [(request.method, request.path) for request in server.requests] == [("DELETE", PATH)] * 2


def test_many_are_replayed_until_nothing_is_left() -> None:
    failed = {"id": "d1~a", "code": "payload_gone", "detail": "the payload is gone"}
    answers = (
        part_json(matched=200, replayed=199, failed=[failed], after="1~2~3~x"),
        part_json(matched=0, replayed=0, after="1~1~3~"),
        part_json(matched=5, replayed=3, already_replayed=2),
    )
    seen: list[Part] = []
    with ApiServer(*(Answer(200, answer) for answer in answers)) as server, a_client(server) as client:
        done = client.dead_letters.replay_many(ACME, rate=10, on_progress=seen.append)

    assert [request.json for request in server.requests] == [
        {"tenant": "acme", "rate": 10},
        {"tenant": "acme", "rate": 10, "after": "1~2~3~x"},
        {"tenant": "acme", "rate": 10, "after": "1~1~3~"},
    ]
    assert {request.path for request in server.requests} == {"/v1/dead-letters:replay"}
    assert (done.matched, done.done, done.already_replayed) == (205, 202, 2)
    assert done.failed == (NotDone(id="d1~a", code="payload_gone", detail="the payload is gone"),)
    assert [part.matched for part in seen] == [200, 0, 5]


def test_many_are_purged() -> None:
    answer = {"matched": 2, "purged": 2, "failed": [], "examined_until": "2027-03-01T00:00:00.000Z", "next": None}
    with ApiServer(Answer(200, answer)) as server, a_client(server) as client:
        done = client.dead_letters.purge_many(DeadLetterFilter(tenant="acme", tag="eu"))

    (request,) = server.requests
    assert (request.path, request.json) == ("/v1/dead-letters:purge", {"tenant": "acme", "tag": "eu"})
    assert done.done == 2


def test_a_count_changes_nothing() -> None:
    answers = (
        {**page_json(*(dead_letter_json(f"d1~{number}") for number in range(10)), after="1~2~~x"), "matched": 5_000},
        {**page_json(dead_letter_json("d1~last")), "matched": 1},
    )
    with ApiServer(*(Answer(200, answer) for answer in answers)) as server, a_client(server) as client:
        matches = client.dead_letters.count(ACME)

    assert (matches.matched, len(matches.newest), matches.newest[0].id) == (5_001, 10, "d1~0")
    assert all(request.json["dry_run"] is True for request in server.requests)


def test_what_was_replayed_before_a_refusal_stays_so_and_the_refusal_is_reported() -> None:
    refused = Answer(422, {"status": 422, "code": "invalid_input", "title": "refused", "detail": "at this rate"})
    seen: list[Part] = []
    with (
        ApiServer(Answer(200, part_json(after="1~2~3~x")), refused) as server,
        a_client(server) as client,
        pytest.raises(ApiProblem, match="at this rate"),
    ):
        client.dead_letters.replay_many(ACME, rate=0.01, on_progress=seen.append)

    assert [part.done for part in seen] == [2]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"tenant": ""}, "tenant: is required"),
        ({"tenant": "acme", "since": datetime(2027, 3, 1)}, "since: has no time zone"),  # noqa: DTZ001
        ({"tenant": "acme", "until": "now"}, "until: is a datetime"),
    ],
)
def test_a_filter_is_valid_from_birth(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        DeadLetterFilter(**fields)


def test_the_filter_is_there_under_its_old_name_too() -> None:
    assert LetterFilter is DeadLetterFilter
