"""Turns of operations through the real handler: what one tells, what it leaves, and what it counts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions.adapters.dynamodb.timers import DynamoDBTimerStore
from testkit.events import Context
from tests.integration.stage import Stage

HOUR = 3_600


def test_a_turn_says_what_it_did_and_the_next_has_nothing_to_do(stage: Stage):
    stage.submit(delay=HOUR, tags=["eu"])
    accept_cancel(stage)

    first, second = turn(stage), turn(stage)

    assert first == {"worked": 1, "ended": 1, "jobs": 1}
    assert second == {"worked": 0, "ended": 0, "jobs": 0}


def test_a_turn_without_time_leaves_the_operation_to_the_next(stage: Stage):
    accept_cancel(stage)

    assert turn(stage, remaining_ms=0)["worked"] == 0
    assert turn(stage)["ended"] == 1


def test_a_turn_that_ends_in_an_error_is_counted_and_the_next_goes_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    job = stage.submit(delay=HOUR, tags=["eu"])
    accept_cancel(stage)

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the store is not there")

    with monkeypatch.context() as patched:
        patched.setattr(DynamoDBTimerStore, "read_owned", fail)
        failed = turn(stage)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    ended = turn(stage)

    assert failed == {"worked": 1, "ended": 0, "jobs": 0}
    assert [line["operation_failures"] for line in lines if "_aws" in line and "operation_failures" in line] == [[1.0]]
    assert ended == {"worked": 1, "ended": 1, "jobs": 1}
    assert stage.get(job["id"])["state"] == "cancelled"


def accept_cancel(stage: Stage) -> None:
    status, accepted = stage.call("POST", "/v1/operations", {"tenant": "acme", "action": "cancel", "tag": "eu"})
    assert status == 202, accepted


def turn(stage: Stage, *, remaining_ms: int = 60_000) -> dict[str, Any]:
    return stage.module("operations").handler({}, Context(remaining_ms=remaining_ms))
