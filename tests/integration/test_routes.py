"""A route is declared once: the router, the gateway and the description have the same ones, and the guard stands before all."""

import subprocess
import sys

from functions.api.http.access import Access
from functions.api.openapi import document
from functions.api.route_table import ROUTES
from infra.api import GATEWAY_ROUTES, gateway_route
from tests.integration.stage import Stage

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


def test_the_resolver_answers_what_is_declared_and_beside_it_unknown_verbs_only(stage: Stage):
    app = stage.module("api").app.resolver
    answered = {(route.method, route.path) for route in [*app._static_routes, *app._dynamic_routes]}
    of_verbs = {(route.method, route.whole_path) for route in ROUTES if route.verb}

    unknown_verbs = {(method, pattern) for method, pattern in answered if pattern.endswith("<verb>")}
    assert answered - unknown_verbs == {(route.method, route.pattern) for route in ROUTES}
    assert len(unknown_verbs) == len(of_verbs)


def test_what_is_declared_is_described_and_nothing_else():
    described = [
        (method.upper(), path) for path, item in document()["paths"].items() for method in item if method in METHODS
    ]

    assert sorted(described) == sorted((route.method, route.path) for route in ROUTES)


def test_what_is_declared_is_let_through_by_the_gateway_and_nothing_else():
    assert set(GATEWAY_ROUTES) == {gateway_route(route) for route in ROUTES}
    assert len(GATEWAY_ROUTES) == len(set(GATEWAY_ROUTES))


def test_every_route_says_who_may_ask():
    for route in ROUTES:
        assert isinstance(route.access, Access)
        assert bool(route.access.sources) + route.access.is_open + route.access.for_operators == 1, route.path


def test_the_verbs_of_a_path_are_for_the_same_callers():
    # An unknown one is answered under the rules of the first.
    for route in ROUTES:
        of_path = [each for each in ROUTES if each.verb and each.whole_path == route.whole_path]
        assert len({each.access for each in of_path if each.method == route.method}) <= 1, route.path


def test_every_route_is_declared_once_and_has_a_name_of_its_own():
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)
    assert len({route.name for route in ROUTES}) == len(ROUTES)


def test_every_route_has_words_of_one_line():
    for route in ROUTES:
        assert route.summary.endswith(".")
        assert "\n" not in route.summary


_COLD_START = """
import sys
import pytest
from moto import mock_aws
from tests.integration.stage import Stage

with mock_aws():
    stage = Stage(pytest.MonkeyPatch())
    for name in [name for name in sys.modules if name.startswith("functions.api")]:
        del sys.modules[name]
    stage.module("api")
    print(*(name for name in sys.modules if name.startswith("functions.api")))
"""


def test_what_answers_requests_imports_nothing_that_makes_the_description():
    done = subprocess.run([sys.executable, "-c", _COLD_START], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    imported = done.stdout.split()
    assert "functions.api.handler" in imported
    assert [name for name in imported if "openapi" in name or name.endswith(".components")] == []
