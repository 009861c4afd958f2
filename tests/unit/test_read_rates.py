"""How fast callers may read: on the rules alone, and behind the access check of an API with the real routes' paths."""

import json
from datetime import timedelta
from math import inf
from typing import Any

import pytest
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from functions.api.http import read_rates
from functions.api.http.access import BODY, QUERY
from functions.api.http.access_check import AccessCheck
from functions.api.http.answers import problem_answer
from functions.api.http.problems import problem_of
from functions.api.http.read_rates import OVER_ALL, ReadRates, reads_of
from functions.api.http.reading import Request
from functions.api.http.route import Route, Routes
from functions.api.http.router import serve
from functions.api.route_table import ROUTES
from functions.domain.errors import ReadRateExceeded, TickwheelError
from functions.domain.instants import SECOND
from functions.domain.tenants.plan import TenantPlan
from testkit.builders import NOON
from testkit.events import Context, a_request
from testkit.fakes import FakeClock, GivenPlans, RecordingJournal

BILLING = "arn:aws:iam::123456789012:role/billing"
SLOW = TenantPlan(read_rate=2)
"""Twenty reads at once, then one each half second."""


class Rates:
    def __init__(self) -> None:
        self.clock, self.plans, self.journal = FakeClock(NOON), GivenPlans(), RecordingJournal()
        self.plans.plans["acme"] = SLOW
        self.rates = ReadRates(clock=self.clock, plans=self.plans, journal=self.journal)

    def refused(self, reads: int = 1, *, caller: str = BILLING, tenant: str = "acme") -> timedelta | None:
        """After which time it may come; None where it may at once."""
        try:
            self.rates.take(caller, tenant, reads)
        except ReadRateExceeded as error:
            return error.retry_after
        return None

    def use_up(self, *, caller: str = BILLING, tenant: str = "acme") -> int:
        taken = 0
        while self.refused(caller=caller, tenant=tenant) is None:
            taken += 1
        return taken


@pytest.fixture
def rates() -> Rates:
    return Rates()


def test_a_caller_may_read_ten_seconds_of_his_rate_at_once_and_is_then_told_when_to_come_again(rates: Rates):
    assert rates.use_up() == 20
    assert rates.refused() == SECOND / 2
    assert rates.journal.counts == {"reads_throttled": 2}

    rates.clock.tick(SECOND / 2)
    assert [rates.refused() for _ in range(2)] == [None, SECOND / 2]


def test_what_is_refused_takes_nothing(rates: Rates):
    rates.use_up()
    for _ in range(100):
        assert rates.refused(20) is not None

    rates.clock.tick(SECOND / 2)
    assert rates.refused() is None


def test_what_costs_more_takes_more(rates: Rates):
    assert [rates.refused(10), rates.refused(10)] == [None, None]
    assert rates.refused(10) == 5 * SECOND


def test_what_costs_more_than_may_be_saved_up_is_let_through_when_all_is_saved_up(rates: Rates):
    assert rates.refused(40) is None
    assert rates.refused(40) == 20 * SECOND

    rates.clock.tick(20 * SECOND)
    assert rates.refused(40) is None


def test_each_caller_has_a_rate_of_his_own_for_each_tenant(rates: Rates):
    rates.plans.plans["globex"] = SLOW
    rates.use_up()

    assert rates.use_up(caller="token of ann") == 20
    assert rates.use_up(tenant="globex") == 20


def test_who_asks_for_one_tenant_after_the_other_has_a_rate_for_all_of_them(rates: Rates):
    rates.plans.everybody = TenantPlan(read_rate=2)
    rates.plans.plans = {f"t{number}": SLOW for number in range(2_000)}

    taken = [number for number in range(20_000) if rates.refused(20, tenant=f"t{number % 2_000}") is None]

    assert len(taken) == OVER_ALL
    assert rates.refused(20, caller="token of ann", tenant="t7") is None
    # It is refused as what is of no tenant, and comes again.
    with pytest.raises(ReadRateExceeded, match="may ask for 10 reads a second"):
        rates.rates.take(BILLING, "t1999", 20)
    rates.clock.tick(2 * SECOND)
    assert rates.refused(20, tenant="t1999") is None


def test_a_tenant_that_has_a_higher_rate_than_all_of_them_by_default_has_that(rates: Rates):
    rates.plans.everybody = TenantPlan(read_rate=1)
    rates.plans.plans["acme"] = TenantPlan(read_rate=40)

    assert rates.use_up() == 400


def test_where_nobody_has_a_rate_by_default_there_is_none_for_all_of_them(rates: Rates):
    rates.plans.everybody = TenantPlan(read_rate=inf)

    assert rates.use_up() == 20
    assert all(rates.refused(20, tenant=f"t{number}") is None for number in range(100))


def test_what_names_no_tenant_has_the_rate_of_everybody(rates: Rates):
    rates.plans.everybody = TenantPlan(read_rate=1)

    assert rates.use_up(tenant="") == 10


def test_a_tenant_without_a_read_rate_is_not_even_remembered(rates: Rates, monkeypatch: pytest.MonkeyPatch):
    rates.plans.plans["acme"] = TenantPlan(read_rate=inf)
    monkeypatch.setattr(rates.clock, "now", lambda: pytest.fail("asked for the time"))

    assert [rates.refused(1_000) for _ in range(3)] == [None] * 3


def test_a_bounded_number_of_callers_is_kept_those_who_were_heard_of_last(
    rates: Rates, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(read_rates, "MOST_CALLERS", 3)
    for number in range(3):
        rates.use_up(caller=f"caller {number}")
    rates.refused(caller="caller 0")

    assert rates.refused(caller="caller 3") is None
    assert len(rates.rates._next_at) == 2 * 3
    assert rates.refused(caller="caller 0") is not None
    assert rates.refused(caller="caller 1") is None


def test_a_rate_that_is_raised_counts_for_those_who_had_used_theirs_up(rates: Rates):
    rates.use_up()
    rates.plans.plans["acme"] = TenantPlan(read_rate=100)
    rates.clock.tick(SECOND / 100)

    assert rates.refused() is None


@pytest.mark.parametrize(
    ("method", "path", "asked", "reads"),
    [
        ("GET", "/v1/jobs/{id}", {}, 1),
        ("GET", "/v1/jobs/{id}/explain", {}, 5),
        ("GET", "/v1/schedules/{id}", {}, 1),
        ("GET", "/v1/schedules/{id}:preview", {}, 10),
        ("GET", "/v1/schedules/{id}:stats", {}, 10),
        ("POST", "/v1/schedules:fires", {}, 20),
        ("GET", "/v1/dead-letters", {}, 20),
        ("POST", "/v1/jobs", {"body": {"dry_run": True}}, 0),
        ("DELETE", "/v1/schedules/{id}", {}, 0),
        ("PUT", "/v1/schedules/{id}", {}, 0),
        ("PUT", "/v1/schedules/{id}", {"query": {"dry_run": "True"}}, 10),
        ("PATCH", "/v1/schedules/{id}", {"query": {"dry_run": "1"}}, 10),
        ("PATCH", "/v1/schedules/{id}", {"query": {"dry_run": "false"}}, 0),
        ("POST", "/v1/schedules/{id}:backfill", {"body": {"dry_run": True}}, 10),
        ("POST", "/v1/schedules/{id}:backfill", {"body": {"dry_run": "yes"}}, 0),
        ("POST", "/v1/schedules/{id}:trigger", {"body": None}, 0),
        ("POST", "/v1/dead-letters:replay", {"body": {"tenant": "acme", "dry_run": True}}, 20),
        ("POST", "/v1/dead-letters:replay", {"body": {"tenant": "acme"}}, 20),
        ("POST", "/v1/dead-letters:purge", {"body": [1]}, 20),
        ("POST", "/v1/dead-letters/{id}:replay", {}, 0),
    ],
)
def test_a_read_takes_what_it_costs_and_what_changes_something_that_it_names_takes_nothing(
    method: str, path: str, asked: dict[str, Any], reads: int
):
    event = APIGatewayProxyEventV2(a_request(method, "/", asked.get("body"), query=asked.get("query")))

    assert reads_of(route_of(method, path), Request(event, {})) == reads


def test_a_body_that_is_no_json_is_for_its_route_to_refuse():
    event = APIGatewayProxyEventV2(a_request("POST", "/") | {"body": "{"})

    assert reads_of(route_of("POST", "/v1/schedules/{id}:backfill"), Request(event, {})) == 0


def route_of(method: str, path: str) -> Route:
    (found,) = [route for route in ROUTES if (route.method, route.path) == (method, path)]
    return found


def test_a_caller_who_reads_too_fast_is_answered_429_and_does_not_reach_the_route():
    plans, reached = GivenPlans(), []
    plans.plans["acme"] = TenantPlan(principals=(BILLING,), read_rate=1)
    access_check = AccessCheck(plans=plans, operators=())
    clock = FakeClock(NOON)
    rates = ReadRates(clock=clock, plans=plans, journal=RecordingJournal())
    app = APIGatewayHttpResolver()
    routes = Routes("a breaker")

    @routes.route("GET /v1/breakers", access=QUERY, answers={200: "Breakers"}, reads=5)
    @routes.route("POST /v1/breakers:reset", access=BODY, answers={200: "Reset"})
    def reach(_services: None, _request: Request) -> Response[str]:
        reached.append(1)
        return Response(status_code=200, content_type="application/json", body="{}")

    def refuse(error: Exception) -> Response[str]:
        return problem_answer(problem_of(error))

    serve(app, routes, None, checks=(access_check.check, rates.check))
    app.exception_handler([TickwheelError])(refuse)

    def call(method: str = "GET", path: str = "/v1/breakers", session: str = "i-0abc", tenant: str = "acme") -> Any:
        caller = f"arn:aws:sts::123456789012:assumed-role/billing/{session}"
        context: Any = Context()
        return app.resolve(a_request(method, path, query={"tenant": tenant}, caller=caller), context)

    assert [call()["statusCode"] for _ in range(3)] == [200, 200, 429]
    # It is the role that has the rate: a session is made as fast as anybody likes.
    refused = call(session="i-0def")
    problem = json.loads(refused["body"])
    assert (problem["code"], problem["retry_after"]) == ("read_rate_exceeded", 5)
    assert refused["headers"]["Retry-After"] == "5"
    assert f"{BILLING} may ask for 1 reads of tenant acme a second" in problem["detail"]
    # What changes something is not a read, and whoever may not ask at all is refused for that.
    assert call("POST", "/v1/breakers:reset")["statusCode"] == 200
    assert call(tenant="globex")["statusCode"] == 403
    assert len(reached) == 3
