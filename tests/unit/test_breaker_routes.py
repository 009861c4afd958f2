"""The routes of breakers on fakes: what they answer, and what they refuse."""

import json
from typing import Any

import pytest
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from functions.api.http.answers import problem_answer
from functions.api.http.problems import Misshapen, problem_of
from functions.api.http.router import serve
from functions.api.targets.routes import BreakerServices, routes
from functions.domain.errors import TickwheelError
from functions.domain.instants import SECOND
from functions.domain.targets.breaker import BreakerState
from testkit.builders import NOON, a_breaker
from testkit.events import Context, a_request
from testkit.fakes import InMemoryBreakerStore, RecordingAudit, RecordingJournal
from tests.page_queries import REFUSED_QUERIES

HOST = "https://example.com"


class Api:
    """The routes over a store of breakers."""

    def __init__(self) -> None:
        self.store = InMemoryBreakerStore()
        self.journal = RecordingJournal()
        self.app = APIGatewayHttpResolver()
        services = BreakerServices(breaker_store=self.store, journal=self.journal, audit=RecordingAudit())
        serve(self.app, routes, services, checks=())
        self.app.exception_handler([Misshapen, TickwheelError])(_refuse)

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, Any]:
        context: Any = Context()
        answer = self.app.resolve(a_request(method, path, body, query=query), context)
        return answer["statusCode"], json.loads(answer["body"])

    def reset(self, destination: Any, tenant: str = "acme") -> tuple[int, Any]:
        return self.call("POST", "/v1/breakers:reset", {"tenant": tenant, "destination": destination})

    def opened(self, *destinations: str, **fields: Any) -> None:
        for destination in destinations:
            self.store.put(a_breaker(destination=destination, **fields), seen=None)


def _refuse(error: Exception) -> Response[str]:
    return problem_answer(problem_of(error))


def test_a_tenant_whose_destinations_are_well_has_no_breakers_to_say():
    assert Api().call("GET", "/v1/breakers", tenant="acme") == (200, {"breakers": [], "next": None})


def test_a_breaker_is_reported_as_it_stands():
    api = Api()
    api.opened(HOST, state=BreakerState.HALF_OPEN, until=NOON + 90 * SECOND, error_class="timeout")

    _, answer = api.call("GET", "/v1/breakers", tenant="acme")

    assert answer["breakers"] == [
        {
            "tenant": "acme",
            "destination": HOST,
            "state": "half_open",
            "opened_at": "2027-03-01T12:00:00.000Z",
            "until": "2027-03-01T12:01:30.000Z",
            "error_class": "timeout",
        }
    ]


def test_breakers_are_reported_page_by_page_and_of_one_tenant():
    api = Api()
    api.opened("https://a", "https://b", "https://c")
    api.opened("https://b2", tenant="globex")

    _, first = api.call("GET", "/v1/breakers", tenant="acme", limit=2)
    _, second = api.call("GET", "/v1/breakers", tenant="acme", limit=2, after=first["next"])

    assert [breaker["destination"] for breaker in first["breakers"]] == ["https://a", "https://b"]
    assert first["next"] == "https://b"
    assert [breaker["destination"] for breaker in second["breakers"]] == ["https://c"]
    assert second["next"] is None


def test_a_reset_closes_the_breaker_and_says_that_it_did():
    api = Api()
    api.opened(HOST)

    assert api.reset(HOST) == (
        200,
        {"tenant": "acme", "destination": HOST, "state": "closed", "was_closed": False},
    )
    assert api.store.rows == {}
    assert api.journal.counts == {"breakers_closed": 1}


def test_a_reset_of_what_is_closed_says_so_and_counts_nothing():
    api = Api()
    api.opened(HOST, tenant="globex")

    status, answer = api.reset(HOST)

    assert (status, answer["was_closed"]) == (200, True)
    assert len(api.store.rows) == 1
    assert api.journal.counts == {}


@pytest.mark.parametrize(
    ("target", "destination"),
    [
        ("https://EXAMPLE.com:443/hook?x=1", HOST),
        ("handler:echo", "handler:echo"),
        (
            "arn:aws:lambda:eu-west-1:123456789012:function:bill:live",
            "arn:aws:lambda:eu-west-1:123456789012:function:bill",
        ),
    ],
)
def test_any_target_names_its_destination(target: str, destination: str):
    api = Api()
    api.opened(destination)

    assert api.reset(target)[1] == {
        "tenant": "acme",
        "destination": destination,
        "state": "closed",
        "was_closed": False,
    }


@pytest.mark.parametrize(
    ("destination", "said"),
    [
        ("example.com", "destination has an unknown scheme"),
        ("", "destination has an unknown scheme"),
        (7, "destination Input should be a valid string"),
        (f"https://{'a' * 1_100}", "destination is longer than 1016 characters"),
    ],
)
def test_a_reset_of_what_is_no_destination_is_refused_with_its_field(destination: Any, said: str):
    status, problem = Api().reset(destination)

    assert (status, problem["code"]) == (422, "invalid_input")
    assert said in problem["detail"]


def test_a_password_in_a_destination_is_not_repeated():
    status, problem = Api().reset("https://user:hunter2@example.com")

    assert status == 422
    assert "hunter2" not in json.dumps(problem)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        *REFUSED_QUERIES,
        ({"tenant": "acme", "after": "é"}, "after"),
        ({"tenant": "acme", "after": "x" * 1_017}, "after"),
    ],
)
def test_a_query_that_cannot_be_answered_is_refused_with_its_field(query: dict[str, Any], field: str):
    status, problem = Api().call("GET", "/v1/breakers", **query)

    assert (status, problem["code"]) == (422, "invalid_input")
    assert [error["field"] for error in problem["errors"]] == [field]
