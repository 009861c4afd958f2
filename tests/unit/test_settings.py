import json
from datetime import timedelta

import pytest
from pydantic import ValidationError

from functions.domain.errors import InvalidWheel
from functions.domain.targets.addresses import parse_networks
from functions.domain.targets.targets import AllowedTargets
from functions.runtime.settings import (
    ApiSettings,
    DeadLettersSettings,
    OperationsSettings,
    ScannerSettings,
    Settings,
    SweeperSettings,
    WorkerSettings,
)
from testkit.builders import DEPLOYED_WHEEL

CONSTANTS = {
    "STAGE": "dev",
    "BUCKET_SECONDS": "60",
    "LOOKAHEAD_SECONDS": "120",
    "SKEW_SECONDS": "60",
    "GUARD_SECONDS": "240",
    "WRITE_SHARDS": "4",
    "SCAN_SHARDS": "4",
    "PLANS": "{}",
}
API = CONSTANTS | {
    "TIMERS_TABLE": "timers",
    "DEAD_LETTERS_TABLE": "dead_letters",
    "SHARDS_TABLE": "shards",
    "LEDGER_TABLE": "ledger",
    "PAYLOAD_BUCKET": "payloads",
    "WEBHOOK_SECRET": "arn:aws:secretsmanager:us-east-1:000000000000:secret:webhooks",
    "ALLOW_PLAIN_HTTP": "false",
    "ALLOWED_TARGETS": '["https://*.example.com"]',
    "MAX_TIMEOUT_SECONDS": "50",
    "OPERATIONS_FUNCTION": "operations",
    "OPERATORS": '["arn:aws:iam::123456789012:role/ops-*"]',
    "SUBMISSION_QUEUE_URLS": "[]",
    "REFUSED_QUEUE_URLS": "[]",
    "JWT_TENANT_CLAIM": "",
    "SCHEDULES_TABLE": "schedules",
    "SCHEDULE_STATE_TABLE": "schedule_state",
    "TENANTS_TABLE": "tenants",
    "READY_QUEUE_URLS": json.dumps(["u0", "u1", "u2", "u3"]),
    "AUDIT_STREAM": "audit",
}

WORKER = API | {"DEAD_LETTERS_TABLE": "dead_letters", "ALLOWED_NETWORKS": "[]", "LAG_OBJECTIVE_MS": "2000"}


def test_the_environment_makes_the_wheel_of_the_stage():
    assert Settings.model_validate(CONSTANTS).wheel() == DEPLOYED_WHEEL


def test_the_queues_are_named_as_a_json_list_in_the_order_of_the_classes():
    settings = ApiSettings.model_validate(API)

    assert settings.READY_QUEUE_URLS == ("u0", "u1", "u2", "u3")
    assert not settings.ALLOW_PLAIN_HTTP


def test_the_allowed_targets_are_a_json_list_of_patterns():
    assert AllowedTargets(("https://*.example.com",)) == ApiSettings.model_validate(API).ALLOWED_TARGETS


@pytest.mark.parametrize("patterns", ["https://*", '["*"]', "", "[1]", "{}"])
def test_a_stage_whose_list_of_targets_is_none_does_not_start(patterns: str):
    with pytest.raises(ValidationError, match="ALLOWED_TARGETS"):
        ApiSettings.model_validate(API | {"ALLOWED_TARGETS": patterns})


def test_the_operators_are_a_json_list_of_patterns():
    assert ApiSettings.model_validate(API).OPERATORS == ("arn:aws:iam::123456789012:role/ops-*",)
    assert ApiSettings.model_validate(API | {"OPERATORS": "[]"}).OPERATORS == ()


@pytest.mark.parametrize("patterns", ["*", '["ops"]', '[""]', "", "[1]", "{}"])
def test_a_stage_whose_list_of_operators_is_none_does_not_start(patterns: str):
    with pytest.raises(ValidationError, match="OPERATORS"):
        ApiSettings.model_validate(API | {"OPERATORS": patterns})


@pytest.mark.parametrize("urls", ["[]", '["u0","u1","u2"]', "u0,u1,u2,u3", ""])
def test_a_stage_without_a_queue_for_each_class_does_not_start(urls: str):
    with pytest.raises(ValidationError, match="READY_QUEUE_URLS"):
        ApiSettings.model_validate(API | {"READY_QUEUE_URLS": urls})


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch):
    for name in CONSTANTS:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValidationError, match="GUARD_SECONDS"):
        Settings.from_environment()


def test_constants_that_would_lose_jobs_do_not_start():
    settings = Settings.model_validate(CONSTANTS | {"GUARD_SECONDS": "239"})

    with pytest.raises(InvalidWheel):
        settings.wheel()


def test_allowed_networks_are_a_json_list_of_cidrs():
    settings = WorkerSettings.model_validate(WORKER | {"ALLOWED_NETWORKS": '["10.0.0.0/8","fd12::/32"]'})

    assert parse_networks(["10.0.0.0/8", "fd12::/32"]) == settings.ALLOWED_NETWORKS
    assert WorkerSettings.model_validate(WORKER).ALLOWED_NETWORKS == ()


@pytest.mark.parametrize("networks", ["", "10.0.0.0/8", '["10.0.0.1/8"]', '["all"]', '["0.0.0.0/0"]'])
def test_a_worker_that_was_given_other_networks_does_not_start(networks: str):
    with pytest.raises(ValidationError, match="ALLOWED_NETWORKS"):
        WorkerSettings.model_validate(WORKER | {"ALLOWED_NETWORKS": networks})


@pytest.mark.parametrize("sample", ["-0.1", "1.1", "all"])
def test_a_sample_is_a_share(sample: str):
    with pytest.raises(ValidationError, match="AUDIT_SAMPLE"):
        SweeperSettings.model_validate(API | {"AUDIT_SAMPLE": sample})


@pytest.mark.parametrize(
    "settings",
    [ApiSettings, DeadLettersSettings, OperationsSettings, ScannerSettings, SweeperSettings, WorkerSettings],
)
def test_whatever_puts_timers_learns_where_their_days_are_marked(settings: type[Settings]):
    environment = {**WORKER, "AUDIT_SAMPLE": "1.0", "READY_CAPACITY": "1000", "SHED_AFTER_SECONDS": "300"}
    environment["LONGEST_TIMEOUT_SECONDS"] = "300"
    settings.model_validate(environment)

    del environment["TENANTS_TABLE"]
    with pytest.raises(ValidationError, match="TENANTS_TABLE"):
        settings.model_validate(environment)


def test_settings_do_not_change():
    settings = Settings.model_validate(CONSTANTS)

    with pytest.raises(ValidationError):
        settings.STAGE = "prod"  # pyright: ignore[reportAttributeAccessIssue]  # the point
    assert settings.wheel().skew == timedelta(seconds=60)
