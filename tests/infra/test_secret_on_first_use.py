"""A stage whose master key of webhooks is made by the first function that needs it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from functions.domain.targets.webhooks import name_to_make
from infra.stage import OWN_KEY, Stage
from infra.stage_parts import InvalidStage
from scripts.synthesis import FUNCTIONS, Templates


@pytest.fixture
def small(templates_of: Callable[[Stage], Templates]) -> Templates:
    return templates_of(Stage.named("small"))


def text(value: Any) -> str:
    """A joined text, with the names of what it refers to."""
    return "".join(part if isinstance(part, str) else part["Ref"] for part in value["Fn::Join"][1])


def on_secrets(templates: Templates, function: str) -> set[tuple[str, str]]:
    listed = lambda value: value if isinstance(value, list) else [value]  # noqa: E731
    return {
        (action, text(resource))
        for statement in templates.statements(function)
        for action in listed(statement["Action"])
        if action.startswith("secretsmanager:")
        for resource in listed(statement["Resource"])
    }


def test_its_functions_know_the_name_under_which_they_make_it(small: Templates) -> None:
    for function in ("api", "worker"):
        secret = text(small.environment(function)["WEBHOOK_SECRET"])
        assert secret.endswith(":secret:Tickwheel-small-WebhookKeys")
        assert name_to_make(secret) == "Tickwheel-small-WebhookKeys"


def test_they_may_make_that_one_and_no_other_and_nobody_else_may(small: Templates) -> None:
    pattern = "arn:AWS::Partition:secretsmanager:AWS::Region:AWS::AccountId:secret:Tickwheel-small-WebhookKeys*"
    expected = {(f"secretsmanager:{action}", pattern) for action in ("GetSecretValue", "CreateSecret")}
    assert {function: on_secrets(small, function) for function in FUNCTIONS} == {
        function: expected if function in ("api", "worker") else set() for function in FUNCTIONS
    }


def test_a_stage_with_its_secret_from_the_start_lets_nobody_make_one(dev: Templates) -> None:
    for function in FUNCTIONS:
        for statement in dev.statements(function):
            assert "CreateSecret" not in str(statement["Action"])


def test_a_customers_key_is_not_left_to_the_first_who_needs_the_secret() -> None:
    with pytest.raises(InvalidStage, match="small: secret_on_first_use is set beside customer_key: set it to False"):
        dataclasses.replace(Stage.named("small"), customer_key=OWN_KEY)
