import json
from typing import Any

import pytest

from functions.runtime import settings
from infra.stage import Stage
from scripts.synthesis import Templates

MODELS = {
    "api": settings.ApiSettings,
    "scanner": settings.ScannerSettings,
    "worker": settings.WorkerSettings,
    "sweeper": settings.SweeperSettings,
    "operations": settings.OperationsSettings,
    "dead_letters": settings.DeadLettersSettings,
}

FOR_POWERTOOLS = {
    "LOG_LEVEL",
    "POWERTOOLS_SERVICE_NAME",
    "POWERTOOLS_METRICS_NAMESPACE",
    "POWERTOOLS_LOGGER_LOG_EVENT",
}


def as_deployed(value: Any) -> str:
    """A value of a template as a function sees it: every reference stands for a name."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return separator.join(as_deployed(part) for part in parts)
    if "Operator" in str(value.get("Fn::GetAtt")):
        return f"arn:aws:iam::123456789012:role/{value['Fn::GetAtt'][0]}"
    return next(str(reference) for reference in value.values()).replace('"', "'")


def environment_of(function: str, templates: Templates) -> dict[str, str]:
    return {name: as_deployed(value) for name, value in templates.environment(function).items()}


@pytest.mark.parametrize("function", MODELS)
def test_a_function_gets_all_that_its_settings_ask_for(function: str, any_stage: Stage, templates: Templates) -> None:
    model = MODELS[function].model_validate(environment_of(function, templates))
    assert model.wheel() == any_stage.wheel


@pytest.mark.parametrize("function", MODELS)
def test_a_function_gets_nothing_that_its_settings_do_not_ask_for(function: str, templates: Templates) -> None:
    variables = set(environment_of(function, templates)) - FOR_POWERTOOLS
    fields = MODELS[function].model_fields
    assert {name for name, field in fields.items() if field.is_required()} <= variables <= set(fields)


def test_the_ready_queues_are_reported_in_the_order_of_the_classes(templates: Templates) -> None:
    for function in MODELS:
        urls = json.loads(environment_of(function, templates)["READY_QUEUE_URLS"])
        assert [url.removeprefix("Ready")[:-8] for url in urls] == ["Critical", "High", "Normal", "Low"]


@pytest.mark.parametrize("function", MODELS)
def test_logs_and_metrics_carry_the_name_of_their_function_and_stage(
    function: str, any_stage: Stage, templates: Templates
) -> None:
    environment = environment_of(function, templates)
    assert environment["POWERTOOLS_SERVICE_NAME"] == function
    assert environment["POWERTOOLS_METRICS_NAMESPACE"] == f"Tickwheel/{any_stage.name}"
    assert environment["LOG_LEVEL"] == ("DEBUG" if any_stage.emulated else "INFO")
    assert environment["WATCHING"] == any_stage.watching


def test_the_api_knows_whom_to_call_for_a_new_operation(templates: Templates) -> None:
    (name,) = (
        logical_id
        for logical_id, function in templates.of_type("AWS::Lambda::Function").items()
        if function is templates.functions()["operations"]
    )
    assert templates.environment("api")["OPERATIONS_FUNCTION"] == {"Ref": name}


def test_the_api_knows_the_operators_of_its_stage(any_stage: Stage, templates: Templates) -> None:
    *patterns, role = json.loads(environment_of("api", templates)["OPERATORS"])

    assert patterns == ([] if any_stage.name in ("small", "prod", "scale") else ["*"])
    assert {"Fn::GetAtt": [role.rpartition("/")[2], "Arn"]} == templates.scheduler["Outputs"]["OperatorRoleArn"][
        "Value"
    ]


def test_no_stage_takes_tokens_unless_it_says_whose(templates: Templates) -> None:
    assert environment_of("api", templates)["JWT_TENANT_CLAIM"] == ""


def test_the_api_and_the_worker_know_the_allowed_targets(any_stage: Stage, templates: Templates) -> None:
    for function in ("api", "worker"):
        assert json.loads(environment_of(function, templates)["ALLOWED_TARGETS"]) == list(any_stage.targets)


def test_only_the_local_stage_calls_addresses_that_are_not_public(any_stage: Stage, templates: Templates) -> None:
    expected = ["127.0.0.0/8", "::1/128"] if any_stage.name == "local" else []
    assert json.loads(environment_of("worker", templates)["ALLOWED_NETWORKS"]) == expected


def test_plain_http_is_for_the_local_stage(any_stage: Stage, templates: Templates) -> None:
    expected = "true" if any_stage.name == "local" else "false"
    # The API refuses such targets; what it has taken, the worker calls.
    assert environment_of("api", templates)["ALLOW_PLAIN_HTTP"] == expected
