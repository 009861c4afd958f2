"""Breakers as the client and the command line tell and reset them, against a real server."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.api_server import Answer, ApiServer
from tests.command_line import run
from tests.either_client import made_client
from tickwheel.client import Client
from tickwheel.client.backoff import Backoff
from tickwheel.client.breakers import Breaker
from tickwheel.client.words import BreakerState
from tickwheel.errors import Unreachable

HOST = "https://example.com"
NONE = Answer(200, {"breakers": [], "next": None})


def a_client(server: ApiServer) -> Client:
    return made_client(
        server.url, region="us-east-1", backoff=Backoff(attempts=2, base_seconds=0, sleep=lambda _: None)
    )


def breaker_json(**changes: Any) -> dict[str, Any]:
    return {
        "tenant": "acme",
        "destination": HOST,
        "state": "open",
        "opened_at": "2030-01-31T09:00:00.000Z",
        "until": "2030-01-31T09:00:30.000Z",
        "error_class": "http_503",
        **changes,
    }


def reset_answer(*, was_closed: bool) -> Answer:
    return Answer(200, {"tenant": "acme", "destination": HOST, "state": "closed", "was_closed": was_closed})


def test_breakers_are_reported_page_by_page() -> None:
    first = Answer(200, {"breakers": [breaker_json()], "next": HOST})
    second = Answer(200, {"breakers": [breaker_json(destination="handler:echo")], "next": None})
    with ApiServer(first, second) as server, a_client(server) as client:
        found = list(client.breakers("acme", page_size=1))

    assert [request.path for request in server.requests] == [
        "/v1/breakers?tenant=acme&limit=1",
        "/v1/breakers?tenant=acme&limit=1&after=https%3A%2F%2Fexample.com",
    ]
    assert found[0] == Breaker(
        tenant="acme",
        destination=HOST,
        state=BreakerState.OPEN,
        opened_at=datetime(2030, 1, 31, 9, tzinfo=UTC),
        until=datetime(2030, 1, 31, 9, 0, 30, tzinfo=UTC),
        error_class="http_503",
    )
    assert found[1].destination == "handler:echo"


def test_an_answer_that_is_not_understood_says_so() -> None:
    answer = Answer(200, {"breakers": [{}], "next": None})
    with (
        ApiServer(answer) as server,
        a_client(server) as client,
        pytest.raises(Unreachable, match="not understood"),
    ):
        list(client.breakers("acme"))


@pytest.mark.parametrize("was_closed", [True, False])
def test_a_reset_says_whether_the_breaker_was_open(was_closed: bool) -> None:
    with ApiServer(reset_answer(was_closed=was_closed)) as server, a_client(server) as client:
        assert client.reset_breaker("acme", HOST) is not was_closed

    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/breakers:reset")
    assert request.json == {"tenant": "acme", "destination": HOST}


def test_a_reset_is_sent_again_when_its_answer_was_lost() -> None:
    with ApiServer(Answer(503, {}), reset_answer(was_closed=True)) as server, a_client(server) as client:
        client.reset_breaker("acme", HOST)

    assert len(server.requests) == 2


def test_the_command_lists_a_row_a_breaker() -> None:
    with ApiServer(Answer(200, {"breakers": [breaker_json(state="half_open")], "next": None})) as server:
        result = run("breakers", "acme", server=server)

    assert result.exit_code == 0
    assert result.stdout.splitlines()[1].split() == [
        *(HOST, "half_open", "2030-01-31", "09:00:30", "2030-01-31", "09:00:00", "http_503")
    ]


def test_the_command_says_when_all_is_well() -> None:
    with ApiServer(NONE) as server:
        assert run("breakers", "acme", server=server).stdout == "every breaker of acme is closed\n"


def test_the_command_prints_json_for_scripts() -> None:
    with ApiServer(Answer(200, {"breakers": [breaker_json()], "next": None})) as server:
        answer = json.loads(run("breakers", "acme", "--json", server=server).stdout)

    assert answer["breakers"][0]["until"] == "2030-01-31T09:00:30Z"
    assert answer["breakers"][0]["destination"] == HOST


@pytest.mark.parametrize(
    ("was_closed", "said"),
    [(False, f"closed the breaker of acme for {HOST}\n"), (True, "was closed already; `tickwheel breakers acme`")],
)
def test_the_command_resets_a_breaker(was_closed: bool, said: str) -> None:
    with ApiServer(reset_answer(was_closed=was_closed)) as server:
        result = run("breaker", "reset", "acme", HOST, server=server)

    assert result.exit_code == 0
    assert said in result.stdout


def test_a_reset_is_reported_as_json_for_scripts() -> None:
    with ApiServer(reset_answer(was_closed=False)) as server:
        answer = json.loads(run("breaker", "reset", "acme", HOST, "--json", server=server).stdout)

    assert answer == {"tenant": "acme", "destination": HOST, "was_closed": False}


def test_what_is_refused_ends_the_command_with_1() -> None:
    problem = {"status": 422, "code": "invalid_input", "title": "The request is refused", "detail": "destination is …"}
    with ApiServer(Answer(422, problem)) as server:
        result = run("breaker", "reset", "acme", "x", server=server)

    assert result.exit_code == 1
    assert "destination is …" in result.stderr


@pytest.mark.parametrize("arguments", [["breakers"], ["breaker", "reset", "acme"], ["breaker", "reset"]])
def test_the_commands_need_their_arguments(arguments: list[str]) -> None:
    assert run(*arguments).exit_code == 2
