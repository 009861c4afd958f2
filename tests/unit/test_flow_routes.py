"""The routes of flows on fakes: what they answer, and what they refuse."""

import json
from typing import Any

import pytest
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from functions.api.http.answers import problem_answer
from functions.api.http.problems import Misshapen, problem_of
from functions.api.http.router import serve
from functions.api.targets.flow_routes import FlowServices, routes
from functions.domain.errors import TickwheelError
from functions.domain.instants import SECOND
from functions.domain.targets.concurrency import Permit
from functions.domain.targets.flows import MAX_SET, THE_STAGE, FlowId, FlowLimits, FlowScope, NamedFlow, parse_rate
from functions.services.far_ring.flow_reader import MOST_COUNTED, FlowReader
from testkit.builders import NOON, a_timer
from testkit.events import Context, a_request
from testkit.fakes import FakeClock, InMemoryFlowStore, InMemoryPermitStore, RecordingAudit
from tests.page_queries import REFUSED_QUERIES

STRIPE = FlowId("acme", "stripe")
LIMITS = {"rate": "60/min", "burst": 10, "concurrency": 5}


class Api:
    """The routes over a store of flows."""

    def __init__(self) -> None:
        self.store = InMemoryFlowStore()
        self.permits = InMemoryPermitStore()
        self.audit = RecordingAudit()
        self.app = APIGatewayHttpResolver()
        reader = FlowReader(clock=FakeClock(), flows=self.store, permits=self.permits)
        serve(self.app, routes, FlowServices(flows=self.store, flow_reader=reader, audit=self.audit), checks=())
        self.app.exception_handler([Misshapen, TickwheelError])(_refuse)

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, Any]:
        context: Any = Context()
        answer = self.app.resolve(a_request(method, path, body, query=query), context)
        return answer["statusCode"], json.loads(answer["body"])


def _refuse(error: Exception) -> Response[str]:
    return problem_answer(problem_of(error))


@pytest.fixture
def api() -> Api:
    return Api()


def test_limits_are_set_and_setting_them_again_changes_nothing(api: Api):
    answers = [api.call("PUT", "/v1/flows/stripe", LIMITS, tenant="acme") for _ in range(2)]

    assert answers == [(200, {"tenant": "acme", "key": "stripe", **LIMITS})] * 2
    assert api.store.set == {STRIPE: FlowLimits(rate=parse_rate("60/min"), burst=10, concurrency=5)}


def test_a_flow_is_given_an_order_and_loses_it_when_it_is_set_without(api: Api):
    ordered = api.call("PUT", "/v1/flows/stripe", {"ordered": True}, tenant="acme")
    shown = api.call("GET", "/v1/flows/stripe", tenant="acme")
    without = api.call("PUT", "/v1/flows/stripe", LIMITS, tenant="acme")

    assert (ordered[0], ordered[1]["ordered"], shown[1]["ordered"]) == (200, True, True)
    assert "ordered" not in without[1]


def test_a_flow_of_the_stage_has_no_order(api: Api):
    status, problem = api.call("PUT", "/v1/flows/smtp", {"ordered": True})

    assert (status, problem["code"], problem["errors"][0]["field"]) == (422, "invalid_job", "ordered")
    assert problem["errors"][0]["message"].startswith("is for the flows of tenants")
    assert api.store.set == {}


def test_limits_that_are_set_replace_all_of_those_before(api: Api):
    api.call("PUT", "/v1/flows/stripe", LIMITS, tenant="acme")

    _, answer = api.call("PUT", "/v1/flows/stripe", {"concurrency": 2}, tenant="acme")

    assert (answer["rate"], answer["burst"], answer["concurrency"]) == (None, None, 2)


def test_a_burst_that_nobody_has_set_is_answered_as_it_counts(api: Api):
    assert api.call("PUT", "/v1/flows/stripe", {"rate": "600/min"}, tenant="acme")[1]["burst"] == 60


def test_without_a_tenant_the_flow_is_the_stages(api: Api):
    assert api.call("PUT", "/v1/flows/smtp", {"rate": "1/s"})[1]["tenant"] is None
    assert list(api.store.set) == [FlowId(THE_STAGE, "smtp")]


@pytest.mark.parametrize("query", [{"tenant": "acme"}, {}])
def test_as_many_flows_as_may_have_limits_of_their_own_and_these_may_be_changed(api: Api, query: dict[str, str]):
    owner = query.get("tenant", THE_STAGE)
    for number in range(MAX_SET):
        api.store.set_limits(FlowId(owner, f"k{number}"), FlowLimits(concurrency=1))

    status, problem = api.call("PUT", "/v1/flows/another", LIMITS, **query)
    changed, _ = api.call("PUT", "/v1/flows/k0", LIMITS, **query)

    assert (status, problem["code"], problem["count"], problem["limit"]) == (409, "flows_exceeded", MAX_SET, MAX_SET)
    assert "delete the limits of some" in problem["detail"]
    assert FlowId(owner, "another") not in api.store.set
    assert changed == 200
    api.call("DELETE", "/v1/flows/k1", **query)
    assert api.call("PUT", "/v1/flows/another", LIMITS, **query)[0] == 200


@pytest.mark.parametrize("key", ["a:b", "a%3Ab"])
def test_a_key_may_have_a_colon(api: Api, key: str):
    assert api.call("PUT", f"/v1/flows/{key}", {"rate": "1/s"}, tenant="acme")[1]["key"] == "a:b"


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({}, "body", "must have a rate, a concurrency, or both"),
        ({"burst": 5}, "burst", "needs a rate"),
        ({"rate": "often"}, "rate", "must be a whole number up to 1000 and a unit of time"),
        ({"rate": "1/s", "burst": 0}, "burst", "Input should be greater than or equal to 1"),
        ({"concurrency": 0}, "concurrency", "Input should be greater than or equal to 1"),
        ({"rate": "1/s", "tenant": "acme"}, "tenant", "is not a field here"),
        ({"rate": "1/s", "key": "x"}, "key", "is not a field here"),
    ],
)
def test_limits_that_cannot_be_set_are_refused_with_their_field(api: Api, body: Any, field: str, said: str):
    status, problem = api.call("PUT", "/v1/flows/stripe", body, tenant="acme")

    assert (status, problem["code"]) == (422, "invalid_input")
    assert problem["errors"][0]["field"] == field
    assert problem["errors"][0]["message"].startswith(said)
    assert api.store.set == {}


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("PUT", LIMITS), ("DELETE", None)])
def test_what_is_no_key_and_no_tenant_is_refused(api: Api, method: str, body: Any):
    for path, query, field in [
        ("/v1/flows/a%23b", {"tenant": "acme"}, "key"),
        (f"/v1/flows/{'x' * 65}", {"tenant": "acme"}, "key"),
        ("/v1/flows/stripe", {"tenant": "~"}, "tenant"),
        ("/v1/flows/stripe", {"tenant": ""}, "tenant"),
        ("/v1/flows/stripe", {"whose": "acme"}, "whose"),
    ]:
        status, problem = api.call(method, path, body, **query)
        assert (status, problem["code"]) == (422, "invalid_input")
        assert [error["field"] for error in problem["errors"]] == [field]


def test_a_flow_that_nobody_waits_for_may_start_something_now(api: Api):
    api.call("PUT", "/v1/flows/stripe", LIMITS, tenant="acme")

    assert api.call("GET", "/v1/flows/stripe", tenant="acme") == (
        200,
        {
            "tenant": "acme",
            "key": "stripe",
            **LIMITS,
            "is_set": True,
            "waiting": 0,
            "waiting_tenants": 0,
            "has_more": False,
            "next_start_at": "2027-03-01T12:00:00.000Z",
            "running": 0,
        },
    )


def test_a_flow_tells_how_many_wait_and_run_and_when_the_next_may_start(api: Api):
    api.store.set_limits(FlowId(THE_STAGE, "smtp"), FlowLimits(rate=parse_rate("60/min"), burst=1, concurrency=5))
    for tenant in ("acme", "acme", "globex"):
        named = NamedFlow(key="smtp", scope=FlowScope.STAGE)
        api.store.wait(FlowId(THE_STAGE, "smtp"), a_timer(tenant=tenant, flows=(named,)))
    api.store.spend(FlowId(THE_STAGE, "smtp"), cost=SECOND, now=NOON, latest=NOON, has_had_turn=True)
    for number, lease_until in enumerate((NOON + SECOND, NOON + SECOND, NOON - SECOND)):
        permit = Permit(tenant=f"{THE_STAGE}#smtp", number=number, owner="w", lease_until=lease_until)
        assert api.permits.take(permit, now=NOON, skew=SECOND)

    _, answer = api.call("GET", "/v1/flows/smtp")

    assert (answer["waiting"], answer["waiting_tenants"], answer["has_more"]) == (3, 2, False)
    assert (answer["next_start_at"], answer["running"]) == ("2027-03-01T12:00:01.000Z", 2)


def test_more_than_are_counted_are_said_to_be_more(api: Api):
    for _ in range(MOST_COUNTED + 1):
        api.store.wait(STRIPE, a_timer(flows=(NamedFlow(key="stripe"),)))
    api.store.note_entry(STRIPE)

    _, answer = api.call("GET", "/v1/flows/stripe", tenant="acme")

    assert (answer["waiting"], answer["has_more"]) == (MOST_COUNTED, True)


def test_limits_that_only_jobs_bring_along_are_those_of_the_job_that_goes_next(api: Api):
    limits = FlowLimits(rate=parse_rate("1/h"), burst=1)
    api.store.wait(STRIPE, a_timer(flows=(NamedFlow(key="stripe", limits=limits),)))
    api.store.note_entry(STRIPE)

    _, answer = api.call("GET", "/v1/flows/stripe", tenant="acme")

    assert (answer["is_set"], answer["rate"], answer["waiting"], answer["running"]) == (False, "1/h", 1, None)


def test_a_flow_that_nobody_has_set_or_used_is_not_found(api: Api):
    status, problem = api.call("GET", "/v1/flows/stripe", tenant="acme")

    assert (status, problem["code"]) == (404, "flow_not_found")
    assert problem["detail"].startswith("tenant acme has no flow stripe")


def test_limits_are_deleted_once_and_then_there_are_none(api: Api):
    api.call("PUT", "/v1/flows/stripe", LIMITS, tenant="acme")

    answers = [api.call("DELETE", "/v1/flows/stripe", tenant="acme") for _ in range(2)]

    assert [(status, answer["was_set"]) for status, answer in answers] == [(200, True), (200, False)]
    assert api.store.set == {}


def test_flows_are_listed_page_by_page_and_of_one_owner(api: Api):
    for owner, key in (("acme", "a"), ("acme", "b"), ("acme", "c"), ("globex", "b2"), (THE_STAGE, "s")):
        api.store.set_limits(FlowId(owner, key), FlowLimits(concurrency=1))

    _, first = api.call("GET", "/v1/flows", tenant="acme", limit=2)
    _, second = api.call("GET", "/v1/flows", tenant="acme", limit=2, after=first["next"])
    _, stage = api.call("GET", "/v1/flows")

    assert ([flow["key"] for flow in first["flows"]], first["next"]) == (["a", "b"], "b")
    assert ([flow["key"] for flow in second["flows"]], second["next"]) == (["c"], None)
    assert [(flow["key"], flow["tenant"]) for flow in stage["flows"]] == [("s", None)]


@pytest.mark.parametrize(
    ("query", "field"), [each for each in REFUSED_QUERIES if each[0].get("tenant")] + [({"after": "a#b"}, "after")]
)
def test_a_list_that_cannot_be_answered_is_refused_with_its_field(api: Api, query: dict[str, Any], field: str):
    status, problem = api.call("GET", "/v1/flows", **query)

    assert (status, problem["code"]) == (422, "invalid_input")
    assert [error["field"] for error in problem["errors"]] == [field]


def test_what_is_set_and_deleted_is_noted_with_what_was_there_before(api: Api):
    api.call("PUT", "/v1/flows/stripe", {"rate": "1/s"}, tenant="acme")
    api.call("PUT", "/v1/flows/stripe", {"rate": "2/s"}, tenant="acme")
    api.call("DELETE", "/v1/flows/stripe", tenant="acme")
    api.call("PUT", "/v1/flows/smtp", {"concurrency": 1})

    assert [(line.action, line.tenant, line.subject, line.before, line.after) for line in api.audit.actions] == [
        ("flow.put", "acme", "stripe", None, {"rate": "1/s"}),
        ("flow.put", "acme", "stripe", {"rate": "1/s"}, {"rate": "2/s"}),
        ("flow.delete", "acme", "stripe", {"rate": "2/s"}, None),
        ("flow.put", "", "smtp", None, {"concurrency": 1}),
    ]
