"""Which events are written, and what their lines have beside their keys."""

import io
import json
import logging
from collections.abc import Callable
from typing import Any, cast

import pytest
from aws_lambda_powertools import Logger

from functions.domain.events import EVENTS, SAMPLE, is_sampled
from functions.runtime import observability
from functions.runtime.lean_lines import LeanLines, told
from functions.runtime.observability import PowertoolsJournal
from testkit.events import Context

SAMPLED = next(f"job-{number}" for number in range(10_000) if is_sampled(f"job-{number}"))
OTHER = next(f"job-{number}" for number in range(10_000) if not is_sampled(f"job-{number}"))

Written = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """The lines of one invocation that reports an event."""
    monkeypatch.delenv("_X_AMZN_TRACE_ID", raising=False)

    def lines(name: str, *, level: str = "INFO", **keys: object) -> list[dict[str, Any]]:
        output = io.StringIO()
        logger = Logger(
            service=f"worker-{id(output)}",
            level=level,
            logger_handler=logging.StreamHandler(output),
            logger_formatter=LeanLines(log_record_order=["message"]),
        )
        monkeypatch.setattr(observability, "logger", logger)

        @logger.inject_lambda_context
        def handler(_: Any, __: Any) -> None:
            PowertoolsJournal().event(name, **keys)

        handler({}, cast("Any", Context()))
        return [json.loads(line) for line in output.getvalue().splitlines()]

    return lines


def test_the_line_of_a_job_for_which_all_went_well_has_its_keys_and_its_service(written: Written):
    (line,) = written("job_settled", job_id=OTHER, tenant="acme", outcome="succeeded", attempt=1)

    assert set(line) == {"message", "service", "job_id", "tenant", "outcome", "attempt"}


def test_the_line_of_one_that_failed_names_its_invocation_too(written: Written):
    (line,) = written("job_settled", job_id=OTHER, tenant="acme", outcome="failed", attempt=1, error="HTTP 503")

    assert set(line) == {"message", "service", "function_request_id", "job_id", "tenant", "outcome", "attempt", "error"}


def test_an_error_says_so(written: Written, monkeypatch: pytest.MonkeyPatch):
    output = io.StringIO()
    logger = Logger(
        service="errors",
        logger_handler=logging.StreamHandler(output),
        logger_formatter=LeanLines(log_record_order=["message"]),
    )
    logger.error("request_failed", extra={"error": "X", "places": "y"})

    assert json.loads(output.getvalue())["level"] == "ERROR"


@pytest.mark.parametrize(("sampled", "is_named"), [("1", True), ("0", False)])
def test_a_trace_is_named_where_it_is_kept(
    sampled: str, is_named: bool, written: Written, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("_X_AMZN_TRACE_ID", f"Root=1-a-b;Parent=c;Sampled={sampled}")

    (line,) = written("rescued", job_id=OTHER, attempt=2)

    assert ("xray_trace_id" in line) is is_named


def test_what_many_jobs_have_is_written_for_those_that_are_sampled(written: Written):
    (line,) = written("promoted", shard=1, job_ids=[OTHER, SAMPLED])

    assert line["job_ids"] == [SAMPLED]
    assert written("promoted", shard=1, job_ids=[OTHER]) == []
    (near,) = written("jobs_accepted", near=[SAMPLED], far=[OTHER])
    assert (near["near"], near["far"]) == ([SAMPLED], [])


def test_at_debug_everything_is_written(written: Written):
    (line,) = written("promoted", level="DEBUG", shard=1, job_ids=[OTHER, SAMPLED])
    assert line["job_ids"] == [OTHER, SAMPLED]
    assert written("shard_scanned", level="DEBUG", shard=0, sent=0, alarms_due=0, buried=0, stopped_by="")


IDLE: dict[str, dict[str, object]] = {
    "shard_scanned": {"shard": 3, "sent": 0, "alarms_due": 0, "buried": 0, "stopped_by": ""},
    "swept": {"audited": 0, "stragglers": 0, "unplaced": 0, "waits_for": (), "waits_for_queues": False},
    "schedules_swept": {"seen": 100, "healed": 0, "refused": 0},
    "conditions_published": {
        "depths": {"high": 0},
        "waiting": {"high": 0},
        "budgets": {"high": 50_000},
        "lags": {"high": 0},
        "shed": [],
    },
}


@pytest.mark.parametrize("name", IDLE)
def test_a_tick_that_found_nothing_writes_no_line(name: str):
    assert told(name, IDLE[name], is_detailed=False) is None


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("shard_scanned", "sent", 1),
        ("shard_scanned", "stopped_by", "its clock is skewed"),
        ("swept", "waits_for", (4,)),
        ("swept", "waits_for_queues", True),
        ("schedules_swept", "healed", 1),
        ("conditions_published", "lags", {"high": 61}),
        ("conditions_published", "shed", ["low"]),
    ],
)
def test_one_that_found_something_does(name: str, key: str, value: object):
    keys = {**IDLE[name], key: value}

    assert told(name, keys, is_detailed=False) == keys


def test_only_ticks_are_silent_and_only_lists_of_jobs_are_sampled():
    assert {name for name, shape in EVENTS.items() if shape.tells} == set(IDLE)
    assert {name for name, shape in EVENTS.items() if shape.of_many} == {"jobs_accepted", "fires_placed", "promoted"}
    for shape in EVENTS.values():
        assert {*shape.of_many, *shape.tells} <= {*shape.keys}


def test_one_job_of_a_hundred_is_sampled():
    count = sum(is_sampled(f"j1~acme~2e~ttzw00~1~n0p8ww00~{number:024x}") for number in range(20_000))

    assert 0.8 < count * SAMPLE / 20_000 < 1.2


def test_a_key_that_is_declared_nowhere_is_not_told():
    assert told("job_settled", {"job_id": OTHER, "payload": "4111"}, is_detailed=False) == {"job_id": OTHER}
