"""The metrics that a bill counts are those that the real handlers emit: of an idle stage, and of one with a job."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.cost_inputs import every_metric, read_measured
from bench.emitted import measure, name_of
from functions.domain.metrics import Watching
from scripts.synthesis import Templates
from testkit.cloudwatch.alarms import Alarms
from testkit.events import Context
from tests.infra.watched import Watched, watched_stage
from tests.integration.stage import NAMESPACE

FUNCTIONS_WITH_TICKS = ("sweeper", "operations")


@pytest.fixture(params=Watching)
def watching(request: pytest.FixtureRequest) -> Watching:
    return request.param


@pytest.fixture
def watched(
    watching: Watching, full: Templates, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Watched]:
    monkeypatch.setenv("WATCHING", watching)
    with watched_stage(Alarms(full.scheduler["Resources"]), monkeypatch, capsys) as watched:
        yield watched


def pass_a_minute(watched: Watched) -> None:
    watched.next_minute()
    watched.scan()
    for name in FUNCTIONS_WITH_TICKS:
        watched.handle(name, {}, Context())


def emitted_by(watched: Watched) -> set[str]:
    return {name_of(metric) for metric in watched.data.values if metric.namespace == NAMESPACE}


def test_an_idle_stage_emits_what_its_bill_counts(watching: Watching, watched: Watched) -> None:
    for _ in range(10):
        pass_a_minute(watched)

    assert emitted_by(watched) == set(read_measured(watching=watching).emitted["idle"])


def test_a_stage_with_a_job_emits_what_its_bill_counts(watching: Watching, watched: Watched) -> None:
    pass_a_minute(watched)
    watched.run("api", watched.stage.submit)
    watched.work()

    emitted = read_measured(watching=watching).emitted
    while_it_waits = {f"{gauge} service=sweeper" for gauge in ("depth", "budget")}  # here nobody looked meanwhile
    assert emitted_by(watched) == {*emitted["idle"], *emitted["request"], *emitted["near"]} - while_it_waits


def test_what_is_kept_is_what_is_counted_now(watching: Watching) -> None:
    found = measure(watching)

    assert found == read_measured(watching=watching).emitted
    assert {name for names in found.values() for name in names} < set(every_metric(watching))


def test_a_job_on_a_stage_that_is_watched_for_the_essential_adds_one_metric() -> None:
    emitted = read_measured(watching=Watching.ESSENTIAL).emitted

    assert {cause: list(names) for cause, names in emitted.items()} == {
        "idle": [],
        "request": [],
        **{cause: ["late service=worker"] for cause in ("near", "far", "fire", "retry")},
    }


def test_each_cause_adds_what_it_is_named_after() -> None:
    emitted = {cause: set(names) for cause, names in read_measured().emitted.items()}

    assert emitted["idle"] == set()
    assert emitted["near"] - emitted["far"] == {"lag_ms ring=near service=worker"}
    assert {"lag_ms ring=far service=worker", "promoted service=scanner"} <= emitted["far"] - emitted["near"]
    assert {"alarms_due service=scanner", "lag_ms kind=fire service=worker"} <= emitted["fire"] - emitted["far"]
    assert {"retried service=worker", "lag_ms kind=retry service=worker"} <= emitted["retry"] - emitted["near"]
