import dataclasses

import pytest

from functions.runtime.deadline import ANSWER_WITHIN, COUNT_WITHIN, FLUSH_WITHIN
from infra.api import ELSEWHERE, GATEWAY_ROUTES
from infra.stage import Stage
from infra.stage_parts import Jwt
from scripts.synthesis import Templates, synthesise

TOKENS = Jwt(issuer="https://login.example.com", audience=("tickwheel",), tenant_claim="tenant")


@pytest.fixture(scope="module")
def with_tokens() -> Templates:
    return synthesise(dataclasses.replace(Stage.named("dev"), jwt=TOKENS))


def test_no_route_is_open_to_the_unsigned(templates: Templates) -> None:
    routes = [route["Properties"] for route in templates.of_type("AWS::ApiGatewayV2::Route").values()]
    expected = [*(f"{method} {path}" for method, path in GATEWAY_ROUTES), f"ANY {ELSEWHERE}"]
    assert sorted(route["RouteKey"] for route in routes) == sorted(expected)
    assert {route["AuthorizationType"] for route in routes} == {"AWS_IAM"}


def test_any_other_path_reaches_the_function_that_answers_with_a_problem(templates: Templates) -> None:
    routes = [route["Properties"] for route in templates.of_type("AWS::ApiGatewayV2::Route").values()]
    integrations = {str(route["Target"]) for route in routes}
    assert ELSEWHERE == "/{proxy+}"
    assert len(integrations) == 1


def test_requests_are_throttled_and_logged(templates: Templates) -> None:
    (stage,) = templates.of_type("AWS::ApiGatewayV2::Stage").values()
    settings = stage["Properties"]["DefaultRouteSettings"]
    assert settings["ThrottlingRateLimit"] > 0
    assert settings["ThrottlingBurstLimit"] > 0
    assert "requestId" in stage["Properties"]["AccessLogSettings"]["Format"]
    assert "caller" in stage["Properties"]["AccessLogSettings"]["Format"]


def test_the_function_answers_before_the_gateway_and_its_own_timeout_end_the_request(templates: Templates) -> None:
    gateway, cold_start = 30, 10
    timeout = templates.functions()["api"]["Properties"]["Timeout"]

    assert ANSWER_WITHIN + FLUSH_WITHIN + COUNT_WITHIN + cold_start < gateway
    assert ANSWER_WITHIN + FLUSH_WITHIN + COUNT_WITHIN < timeout < gateway


def test_the_address_is_an_output(templates: Templates) -> None:
    assert "Fn::GetAtt" in templates.scheduler["Outputs"]["ApiEndpoint"]["Value"]


def test_one_permission_serves_all_routes(templates: Templates) -> None:
    principals = [
        permission["Properties"]["Principal"] for permission in templates.of_type("AWS::Lambda::Permission").values()
    ]
    assert principals.count("apigateway.amazonaws.com") == 1


def test_tokens_open_every_route_at_an_address_of_their_own_and_none_of_the_signed_ones(with_tokens: Templates) -> None:
    routes = [route["Properties"] for route in with_tokens.of_type("AWS::ApiGatewayV2::Route").values()]
    expected = sorted([*(f"{method} {path}" for method, path in GATEWAY_ROUTES), f"ANY {ELSEWHERE}"])
    by_kind = {kind: [route for route in routes if route["AuthorizationType"] == kind] for kind in ("AWS_IAM", "JWT")}

    assert len(routes) == 2 * len(expected)
    for found in by_kind.values():
        assert sorted(route["RouteKey"] for route in found) == expected
        assert len({str(route["ApiId"]) for route in found}) == 1
    assert by_kind["AWS_IAM"][0]["ApiId"] != by_kind["JWT"][0]["ApiId"]


def test_tokens_are_checked_for_their_issuer_and_whom_they_are_for(with_tokens: Templates) -> None:
    (authorizer,) = with_tokens.of_type("AWS::ApiGatewayV2::Authorizer").values()

    assert authorizer["Properties"]["JwtConfiguration"] == {
        "Issuer": "https://login.example.com",
        "Audience": ["tickwheel"],
    }
    assert with_tokens.environment("api")["JWT_TENANT_CLAIM"] == "tenant"
    assert "JwtApiUrl" in with_tokens.scheduler["Outputs"]


def test_requests_with_tokens_are_throttled_and_logged_by_their_subject(with_tokens: Templates) -> None:
    stages = with_tokens.of_type("AWS::ApiGatewayV2::Stage").values()
    formats = [stage["Properties"]["AccessLogSettings"]["Format"] for stage in stages]

    assert sorted("$context.authorizer.claims.sub" in text for text in formats) == [False, True]
    assert all(stage["Properties"]["DefaultRouteSettings"]["ThrottlingRateLimit"] > 0 for stage in stages)


def test_each_address_has_a_log_of_its_own(with_tokens: Templates) -> None:
    logs = [group["Properties"].get("LogGroupName") for group in with_tokens.of_type("AWS::Logs::LogGroup").values()]
    assert sorted(filter(None, logs)) == [
        f"/aws/vendedlogs/Tickwheel-dev-Scheduler/{name}" for name in ("api", "tokens")
    ]


def test_there_is_no_address_for_tokens_unless_the_stage_takes_some(templates: Templates) -> None:
    assert "JwtApiUrl" not in templates.scheduler["Outputs"]
    assert len(templates.of_type("AWS::ApiGatewayV2::Api")) == 1
