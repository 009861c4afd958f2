"""The access check of the API on its own, before one route."""

import json
from typing import Any

import pytest
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

from functions.api.http.access import QUERY
from functions.api.http.access_check import AccessCheck
from functions.api.http.answers import problem_answer
from functions.api.http.problems import problem_of
from functions.api.http.reading import Request
from functions.api.http.route import Routes
from functions.api.http.router import serve
from functions.domain.errors import TickwheelError
from functions.domain.tenants.plan import TenantPlan
from testkit.events import Context, a_request
from testkit.fakes import GivenPlans

ROLE = "arn:aws:iam::123456789012:role/billing"
SESSION = "arn:aws:sts::123456789012:assumed-role/billing/i-0abc"


class Api:
    """One route behind an access check."""

    def __init__(self, operators: tuple[str, ...] = ()) -> None:
        self.plans = GivenPlans()
        self.reached = 0
        self.app = APIGatewayHttpResolver()
        routes = Routes("a breaker")
        routes.route("GET /v1/breakers", access=QUERY, answers={200: "Breakers"})(self._reach)
        serve(
            self.app,
            routes,
            None,
            checks=[AccessCheck(plans=self.plans, operators=operators, tenant_claim="tenant").check],
        )
        self.app.exception_handler([TickwheelError])(_refuse)

    def call(self, path: str = "/v1/breakers", **options: Any) -> int:
        context: Any = Context()
        return self.app.resolve(a_request("GET", path, **options), context)["statusCode"]

    def _reach(self, _services: None, _request: Request) -> Response[str]:
        self.reached += 1
        return Response(status_code=200, content_type="application/json", body=json.dumps({}))


def _refuse(error: Exception) -> Response[str]:
    return problem_answer(problem_of(error))


def asked(**options: Any) -> Request:
    return Request(APIGatewayProxyEventV2(a_request("GET", "/v1/breakers", **options)), {})


def test_a_path_that_no_route_has_is_for_the_resolver_to_refuse():
    assert Api().call("/v1/nothing", caller=SESSION) == 404


def test_a_route_is_reached_by_whom_the_plan_of_its_tenant_names():
    api = Api()
    api.plans.plans["acme"] = TenantPlan(principals=(ROLE,))

    assert api.call(query={"tenant": "acme"}, caller=SESSION) == 200
    assert api.call(query={"tenant": "globex"}, caller=SESSION) == 403
    assert api.call(query={"tenant": "acme"}, caller="unknown") == 403
    assert api.reached == 1


def test_an_operator_reaches_what_is_anybody_s():
    assert Api(operators=(ROLE,)).call(query={"tenant": "acme"}, caller=SESSION) == 200


def test_whoever_signs_is_known_by_his_arn():
    caller = asked(caller=SESSION).identity()

    assert (caller.name, caller.shown, caller.is_token) == (SESSION, ROLE, False)
    assert asked(caller=SESSION).caller == SESSION


def test_a_request_that_nobody_signed_is_nobody_s():
    caller = asked().identity()

    assert (caller.name, caller.principal, caller.tenant) == ("unknown", None, "")


@pytest.mark.parametrize(
    ("claims", "claim", "tenant"),
    [
        ({"sub": "ann", "tenant": "acme"}, "tenant", "acme"),
        ({"sub": "ann", "https://example.com/tenant": "acme"}, "https://example.com/tenant", "acme"),
        ({"sub": "ann", "tenant": "acme"}, "org", ""),
        ({"sub": "ann", "tenant": "acme", "": "acme"}, "", ""),
        ({}, "tenant", ""),
    ],
)
def test_a_token_is_for_the_tenant_of_the_claim_that_the_stage_names(claims: dict[str, Any], claim: str, tenant: str):
    caller = asked(token=claims).identity(tenant_claim=claim)

    assert (caller.is_token, caller.tenant, caller.principal) == (True, tenant, None)
    assert asked(token=claims).caller == f"token of {claims.get('sub', 'unknown')}"


def test_a_token_is_no_signature_even_beside_one():
    request = a_request("GET", "/v1/breakers", token={"sub": "ann", "tenant": "acme"})
    request["requestContext"]["authorizer"]["iam"] = {"userArn": SESSION}

    assert Request(APIGatewayProxyEventV2(request), {}).identity().is_token
