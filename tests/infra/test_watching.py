import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from functions.domain.events import EVENTS
from functions.domain.lifecycle import State
from functions.domain.metrics import DIMENSIONS, INCIDENTS, VALUES
from infra.metrics import BURYING, EMITTED, UnknownMetric, emitted, emitted_at
from infra.stage import Stage
from infra.stage_parts import Watching
from scripts.synthesis import ROOT, Templates
from tests.infra.dashboard_schema import rows_of

NAMESPACE = "Tickwheel/dev"


def events_in(query: str) -> set[str]:
    """The names of events that a query filters by."""
    asked = re.findall(r"message (?:= |in )(\[[^]]*\]|\"\w+\")", query)
    return {name for names in asked for name in re.findall(r"\"(\w+)\"", names)}


def dashboard_of(templates: Templates) -> dict[str, Any]:
    (dashboard,) = templates.of_type("AWS::CloudWatch::Dashboard").values()
    body = dashboard["Properties"]["DashboardBody"]
    text = "".join(part if isinstance(part, str) else "reference" for part in body["Fn::Join"][1])
    return json.loads(text)


def graphed(templates: Templates) -> set[tuple[str, ...]]:
    """Namespace, name and dimensions of each metric on the dashboard."""
    listed = [widget["properties"].get("metrics", []) for widget in dashboard_of(templates)["widgets"]]
    return {tuple(texts) for metrics in listed for texts, _ in rows_of(metrics) if texts}


def alarmed(templates: Templates) -> list[dict[str, Any]]:
    return [alarm["Properties"] for alarm in templates.of_type("AWS::CloudWatch::Alarm").values()]


def watched_metrics(templates: Templates) -> list[dict[str, Any]]:
    """What alarms watch, alone or in an expression."""
    expressions = [
        stat["MetricStat"]["Metric"]
        for alarm in alarmed(templates)
        for stat in alarm.get("Metrics", [])
        if "MetricStat" in stat
    ]
    return expressions + [alarm for alarm in alarmed(templates) if "Namespace" in alarm]


def own_metrics(templates: Templates) -> list[tuple[str, list[dict[str, str]]]]:
    own = [metric for metric in watched_metrics(templates) if metric["Namespace"] == NAMESPACE]
    return [(metric["MetricName"], metric.get("Dimensions", [])) for metric in own]


def test_the_dashboard_shows_only_metrics_that_are_emitted(full: Templates) -> None:
    own = [row for row in graphed(full) if row[0] == NAMESPACE]
    assert len(own) > 10
    for _, name, *dimensions in own:
        if name == INCIDENTS:
            assert not dimensions
            continue
        check_emitted(name, dict(zip(dimensions[::2], dimensions[1::2], strict=True)))


def test_the_dashboard_shows_every_metric_that_is_emitted(full: Templates) -> None:
    shown = {(row[3], row[1]) for row in graphed(full) if row[0] == NAMESPACE and len(row) == 4}
    assert shown == {(service, name) for service, names in EMITTED.items() for name in names}


def test_a_stage_that_is_watched_for_the_essential_emits_what_its_alarms_look_at_and_nothing_else(
    dev: Templates,
) -> None:
    asked = {
        (name, tuple(sorted((each["Name"], each["Value"]) for each in dimensions)))
        for name, dimensions in own_metrics(dev)
    }
    every = {
        (name, (("service", service),)) for service, names in emitted_at(Watching.ESSENTIAL).items() for name in names
    }
    assert asked == {*every, (INCIDENTS, ())}


@pytest.mark.parametrize("by", [None, ("ring", "far")])
def test_an_alarm_over_what_only_a_fully_watched_stage_emits_is_refused(by: tuple[str, str] | None) -> None:
    fully = dataclasses.replace(Stage.named("dev"), watching=Watching.FULL)
    assert emitted("lag_ms", service="worker", stage=fully, by=by).metric_name == "lag_ms"
    with pytest.raises(UnknownMetric, match="is no metric of dev, which is watched for the essential: watch it fully"):
        emitted("lag_ms", service="worker", stage=Stage.named("dev"), by=by)


def test_every_metric_that_a_function_counts_is_known() -> None:
    for service, names in EMITTED.items():
        code = "".join(file.read_text() for file in (ROOT / "functions" / service).rglob("*.py"))
        counted = set(re.findall(r"journal\.(?:count|observe)\(\s*\"(\w+)\"", code))
        assert counted - set(names) == set()
    everywhere = {name for names in EMITTED.values() for name in names}
    shared = "".join(file.read_text() for file in (ROOT / "functions" / "services").rglob("*.py"))
    assert set(re.findall(r"journal\.(?:count|observe)\(\s*\"(\w+)\"", shared)) - everywhere == set()


def test_every_metric_is_named_in_the_code_that_emits_it() -> None:
    outcomes = {state.value for state in State}  # an attempt is counted by the state it ends in
    for service, names in EMITTED.items():
        code = "".join(file.read_text() for file in (ROOT / "functions" / service).rglob("*.py"))
        code += "".join(file.read_text() for file in (ROOT / "functions" / "services").rglob("*.py"))
        assert [name for name in names if f'"{name}"' not in code and name not in outcomes] == []


def test_the_dashboard_follows_an_incident(full: Templates) -> None:
    headings = [
        widget["properties"]["markdown"] for widget in dashboard_of(full)["widgets"] if widget["type"] == "text"
    ]
    assert headings[0].startswith("**Runbook:** `docs/runbook.md`")
    assert headings[1:] == [
        "## Are jobs late?",
        "## Where: submission",
        "## Where: promotion",
        "## Where: queues",
        "## Where: execution",
        "## Where: functions and stores",
        "## Whose are they?",
        "## What has changed?",
        "## Which jobs are late?",
    ]


def test_the_two_signs_that_come_first_are_on_top(full: Templates) -> None:
    graphs = [widget["properties"] for widget in dashboard_of(full)["widgets"] if widget["type"] == "metric"]
    assert [(graph["metrics"][0][1], graph["metrics"][0][-1]["stat"]) for graph in graphs[:2]] == [
        ("oldest_bucket_age_s", "Maximum"),
        ("lag_ms", "p99"),
    ]


def test_queries_of_the_dashboard_look_for_events_that_are_logged(full: Templates) -> None:
    queries = [widget["properties"]["query"] for widget in dashboard_of(full)["widgets"] if widget["type"] == "log"]
    about_events = [query for query in queries if "message" in query]
    assert len(about_events) == 3
    for query in about_events:
        assert events_in(query) - set(EVENTS) == set()
        assert events_in(query)


def test_alarms_watch_only_metrics_that_are_emitted(full: Templates) -> None:
    assert own_metrics(full)
    for name, dimensions in own_metrics(full):
        if name == INCIDENTS:
            assert not dimensions
            continue
        check_emitted(name, {dimension["Name"]: dimension["Value"] for dimension in dimensions})


def test_the_dashboard_shows_every_value_of_every_dimension(full: Templates) -> None:
    shown = {(row[1], *row[2:]) for row in graphed(full) if row[0] == NAMESPACE and len(row) > 4}
    expected = {
        (name, *(part for pair in sorted([("service", service), (dimension, value)]) for part in pair))
        for service, names in EMITTED.items()
        for name in set(names) & set(DIMENSIONS)
        for dimension in DIMENSIONS[name]
        for value in VALUES[dimension]
    }
    assert shown == expected


def test_the_lag_is_shown_by_each_percentile_for_each_dimension(full: Templates) -> None:
    titles = {widget["properties"].get("title") for widget in dashboard_of(full)["widgets"]}
    wanted = {
        f"Lag {share} by {name} (ms)" for share in ("p50", "p95", "p99", "p99.9") for name in DIMENSIONS["lag_ms"]
    }
    assert wanted <= titles


def test_a_widget_over_a_dimension_that_nothing_emits_is_refused() -> None:
    with pytest.raises(UnknownMetric, match="'lag_ms' is not counted by tenant"):
        emitted("lag_ms", service="worker", stage=Stage.named("prod"), by=("tenant", "acme"))
    with pytest.raises(UnknownMetric, match="'lag_ms' is not counted by ring 'middle'"):
        emitted("lag_ms", service="worker", stage=Stage.named("prod"), by=("ring", "middle"))


def check_emitted(name: str, dimensions: dict[str, str]) -> None:
    service = dimensions.pop("service")
    assert name in EMITTED[service]
    assert len(dimensions) <= 1
    for dimension, value in dimensions.items():
        assert dimension in DIMENSIONS[name]
        assert value in VALUES[dimension]


@pytest.mark.parametrize(
    "name",
    [
        "stragglers",
        "chains_broken",
        "early",
        "oldest_bucket_age_s",
        "promotion_lag_s",
        "requests_failed",
        "rescues",
        "dead_lettered",
        "operation_failures",
        "late",
        "clock_skewed",
        "shedding",
        "audit_lines_lost",
    ],
)
def test_what_must_not_happen_has_an_alarm(name: str, full: Templates) -> None:
    assert name in {metric for metric, _ in own_metrics(full)}


def test_the_first_dead_letter_wakes_somebody(fully_watched: Templates) -> None:
    alarms = [alarm for alarm in alarmed(fully_watched) if alarm.get("MetricName") == "dead_lettered"]
    assert {alarm["Dimensions"][0]["Value"] for alarm in alarms} == set(BURYING)
    for alarm in alarms:
        assert (alarm["Statistic"], alarm["Period"], alarm["Threshold"]) == ("Sum", 60, 0)
        assert (alarm["ComparisonOperator"], alarm["EvaluationPeriods"]) == ("GreaterThanThreshold", 15)
        assert alarm["DatapointsToAlarm"] == 1


def test_every_function_has_an_alarm_on_its_errors(fully_watched: Templates) -> None:
    watched = [alarm for alarm in alarmed(fully_watched) if alarm.get("MetricName") == "Errors"]
    assert len(watched) == len(fully_watched.functions())


def test_silence_is_health_but_for_the_ticks_of_scanner_and_sweeper(templates: Templates) -> None:
    choices = {
        (alarm.get("Namespace"), alarm.get("MetricName"), alarm["TreatMissingData"]) for alarm in alarmed(templates)
    }
    assert {choice for *_, choice in choices} == {"breaching", "notBreaching"}
    # Those of DynamoDB would keep their state instead, whatever is asked for.
    assert "AWS/DynamoDB" not in {metric["Namespace"] for metric in watched_metrics(templates)}
    silent = silence_of(templates)
    assert [name.removeprefix("Alarms")[:-8] for name in silent] == ["SilentScanner", "SilentSweeper"]
    for alarm in silent.values():
        assert alarm["Properties"]["Namespace"] == "AWS/Lambda"


def test_silence_is_watched_from_when_there_are_ticks_and_pages_only_after_a_wait_for_the_first(
    full: Templates,
) -> None:
    silent = silence_of(full)
    rules = full.of_type("AWS::Events::Rule")
    for name, alarm in silent.items():
        ticks = {rule for rule in rules if rule.startswith(name.removeprefix("AlarmsSilent")[:-8])}
        assert ticks
        assert ticks <= set(alarm["DependsOn"])
    paging = [
        composite["Properties"]
        for composite in full.of_type("AWS::CloudWatch::CompositeAlarm").values()
        if any(name in json.dumps(composite["Properties"]["AlarmRule"]) for name in silent)
    ]
    # A tick a minute, and as long again until Lambda's count and the alarm's evaluation are there.
    assert [composite["ActionsSuppressorWaitPeriod"] for composite in paging] == [180]


def silence_of(templates: Templates) -> dict[str, Any]:
    """The alarms that are on without data, by their logical id."""
    return {
        name: alarm
        for name, alarm in templates.of_type("AWS::CloudWatch::Alarm").items()
        if alarm["Properties"]["TreatMissingData"] == "breaching"
    }


def test_a_metric_that_nothing_emits_cannot_be_watched() -> None:
    with pytest.raises(UnknownMetric, match="worker emits no metric 'lag'"):
        emitted("lag", service="worker", stage=Stage.named("dev"))


def test_a_stage_neither_watches_nor_shows_what_another_one_counts(templates_of: Callable[[Stage], Templates]) -> None:
    """Both would page for each other, and one that is silent would look well."""
    namespaces: list[set[str]] = []
    for name in ("dev", "prod"):
        templates = templates_of(dataclasses.replace(Stage.named(name), watching=Watching.FULL))
        watched = {namespace for namespace, *_ in graphed(templates)} | {
            metric["Namespace"] for metric in watched_metrics(templates)
        }
        namespaces.append({namespace for namespace in watched if not namespace.startswith("AWS/")})
    assert namespaces == [{"Tickwheel/dev"}, {"Tickwheel/prod"}]
