"""What a stage is billed for by the piece, counted in templates."""

import json
from typing import Any

from bench.deployed import FILE, OF_OTHERS, counted, read_counts
from infra.stage import STAGES


def a_template(**resources: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "Resources": {name: {"Type": f"AWS::{kind}", "Properties": given} for name, (kind, given) in resources.items()}
    }


def a_function(service: str, mode: str) -> tuple[str, dict[str, Any]]:
    variables = {"POWERTOOLS_SERVICE_NAME": service}
    return "Lambda::Function", {"Environment": {"Variables": variables}, "TracingConfig": {"Mode": mode}}


def a_source(function: str, **limits: Any) -> tuple[str, dict[str, Any]]:
    return "Lambda::EventSourceMapping", {"FunctionName": {"Ref": function}, **limits}


def test_functions_that_pass_traces_on_begin_none():
    found = counted([a_template(A=a_function("worker", "Active"), B=a_function("scanner", "PassThrough"))])

    assert found["traced"] == ["worker"]


def test_event_sources_of_dead_letters_are_counted_by_their_maximum_and_those_of_workers_are_not():
    found = counted(
        [
            a_template(Worker=a_function("worker", "Active"), Dead=a_function("dead_letters", "Active")),
            a_template(
                A=a_source("Dead", ScalingConfig={"MaximumConcurrency": 2}),
                B=a_source("Dead"),
                C=a_source("Worker", ScalingConfig={"MaximumConcurrency": 2}),
            ),
        ]
    )

    assert (found["limited_consumers"], found["unlimited_consumers"]) == (1, 1)


def test_metrics_of_a_dashboard_are_its_listed_ones_without_expressions():
    metrics = [["AWS/SQS", "NumberOfMessagesSent"], [{"expression": "a + 1"}], ["Tickwheel", "attempts"]]
    widgets = [{"properties": {"metrics": metrics}}, {"properties": {"markdown": "text"}}]
    before, _, behind = json.dumps({"widgets": widgets}).partition("Tickwheel")
    body = {"Fn::Join": ["", [before, {"Ref": "Namespace"}, behind]]}

    assert counted([a_template(A=("CloudWatch::Dashboard", {"DashboardBody": body}))])["metrics_of_a_dashboard"] == 2


def test_an_alarm_is_counted_by_the_metrics_that_it_looks_at():
    of_two = {"Metrics": [{"MetricStat": {}}, {"MetricStat": {}}, {"Expression": "a / b"}]}

    found = counted([a_template(A=("CloudWatch::Alarm", of_two), B=("CloudWatch::Alarm", {"MetricName": "x"}))])

    assert found["alarm_metrics"] == 3


def test_every_stage_is_counted_and_another_is_taken_for_prod():
    names = {stage.name for stage in STAGES if not stage.emulated}

    assert set(json.loads(FILE.read_text())) == names
    assert read_counts("ours") == read_counts(OF_OTHERS)
