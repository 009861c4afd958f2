from infra.api import ELSEWHERE, ROUTES
from tests.infra.synthesis import Templates


def test_no_route_is_open_to_the_unsigned(templates: Templates) -> None:
    routes = [route["Properties"] for route in templates.of_type("AWS::ApiGatewayV2::Route").values()]
    expected = [*(f"{method} {path}" for method, path in ROUTES), f"ANY {ELSEWHERE}"]
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


def test_the_address_is_an_output(templates: Templates) -> None:
    assert "Fn::GetAtt" in templates.scheduler["Outputs"]["ApiEndpoint"]["Value"]


def test_one_permission_serves_all_routes(templates: Templates) -> None:
    principals = [
        permission["Properties"]["Principal"] for permission in templates.of_type("AWS::Lambda::Permission").values()
    ]
    assert principals.count("apigateway.amazonaws.com") == 1
