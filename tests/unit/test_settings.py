import json
from datetime import timedelta

import pytest
from pydantic import ValidationError

from functions.domain.errors import InvalidWheel
from functions.runtime.settings import ApiSettings, Settings, SweeperSettings
from tests.builders import DEPLOYED_WHEEL

CONSTANTS = {
    "STAGE": "dev",
    "BUCKET_SECONDS": "60",
    "LOOKAHEAD_SECONDS": "120",
    "SKEW_SECONDS": "60",
    "GUARD_SECONDS": "240",
    "WRITE_SHARDS": "4",
    "SCAN_SHARDS": "4",
}
API = CONSTANTS | {
    "TIMERS_TABLE": "timers",
    "SHARDS_TABLE": "shards",
    "LEDGER_TABLE": "ledger",
    "PAYLOAD_BUCKET": "payloads",
    "ALLOW_PLAIN_HTTP": "false",
    "MAX_TIMEOUT_SECONDS": "50",
    "SCHEDULES_TABLE": "schedules",
    "SCHEDULE_STATE_TABLE": "schedule_state",
    "READY_QUEUE_URLS": json.dumps(["u0", "u1", "u2", "u3"]),
}


def test_the_environment_makes_the_wheel_of_the_stage():
    assert Settings.model_validate(CONSTANTS).wheel() == DEPLOYED_WHEEL


def test_the_queues_are_named_as_a_json_list_in_the_order_of_the_classes():
    settings = ApiSettings.model_validate(API)

    assert settings.READY_QUEUE_URLS == ("u0", "u1", "u2", "u3")
    assert not settings.ALLOW_PLAIN_HTTP


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


@pytest.mark.parametrize("sample", ["-0.1", "1.1", "all"])
def test_a_sample_is_a_share(sample: str):
    with pytest.raises(ValidationError, match="AUDIT_SAMPLE"):
        SweeperSettings.model_validate(API | {"AUDIT_SAMPLE": sample})


def test_settings_do_not_change():
    settings = Settings.model_validate(CONSTANTS)

    with pytest.raises(ValidationError):
        settings.STAGE = "prod"  # pyright: ignore[reportAttributeAccessIssue]  # the point
    assert settings.wheel().skew == timedelta(seconds=60)
