import json
import re
from typing import Any

import pytest

from functions.domain.lifecycle import State
from infra.metrics import BURYING, EMITTED, UnknownMetric, emitted
from infra.stage import Stage
from tests.infra.synthesis import ROOT, Templates

EVENTS = {
    name
    for file in (ROOT / "functions").rglob("*.py")
    for name in re.findall(r"(?:journal\.event\(\s*|\bevent = )\"(\w+)\"", file.read_text())
}


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
    """Namespace, name and dimensions of each metric on the dashboard, with CloudWatch's dots resolved."""
    found = set()
    for widget in dashboard_of(templates)["widgets"]:
        previous: list[str] = []
        for metric in widget["properties"].get("metrics", []):
            row = [part for part in metric if isinstance(part, str)]
            row = [before if part == "." else part for part, before in zip(row, previous or row, strict=False)]
            previous = row
            found.add(tuple(row))
    return found


def alarmed(templates: Templates) -> list[dict[str, Any]]:
    return [alarm["Properties"] for alarm in templates.of_type("AWS::CloudWatch::Alarm").values()]


def own_metrics(templates: Templates) -> list[tuple[str, str, list[dict[str, str]]]]:
    metrics = [
        stat["MetricStat"]["Metric"]
        for alarm in alarmed(templates)
        for stat in alarm.get("Metrics", [])
        if "MetricStat" in stat
    ]
    metrics += [alarm for alarm in alarmed(templates) if alarm.get("Namespace") == "Tickwheel"]
    return [(metric["Namespace"], metric["MetricName"], metric["Dimensions"]) for metric in metrics]


def test_the_dashboard_shows_only_metrics_that_are_emitted(dev: Templates) -> None:
    own = [row for row in graphed(dev) if row[0] == "Tickwheel"]
    assert len(own) > 10
    for _, name, dimension, service in own:
        assert dimension == "service"
        assert name in EMITTED[service]


def test_the_dashboard_shows_every_metric_that_is_emitted(dev: Templates) -> None:
    shown = {(row[3], row[1]) for row in graphed(dev) if row[0] == "Tickwheel"}
    assert shown == {(service, name) for service, names in EMITTED.items() for name in names}


def test_every_metric_that_a_function_counts_is_known() -> None:
    for service, names in EMITTED.items():
        code = "".join(file.read_text() for file in (ROOT / "functions" / service).glob("*.py"))
        counted = set(re.findall(r"journal\.(?:count|observe)\(\s*\"(\w+)\"", code))
        assert counted - set(names) == set()
    everywhere = {name for names in EMITTED.values() for name in names}
    shared = "".join(file.read_text() for file in (ROOT / "functions").glob("*.py"))
    assert set(re.findall(r"journal\.(?:count|observe)\(\s*\"(\w+)\"", shared)) - everywhere == set()


def test_every_metric_is_named_in_the_code_that_emits_it() -> None:
    outcomes = {state.value for state in State}  # an attempt is counted by the state it ends in
    for service, names in EMITTED.items():
        code = "".join(file.read_text() for file in (ROOT / "functions" / service).glob("*.py"))
        code += "".join(file.read_text() for file in (ROOT / "functions").glob("*.py"))
        assert [name for name in names if f'"{name}"' not in code and name not in outcomes] == []


def test_the_dashboard_follows_an_incident(dev: Templates) -> None:
    headings = [widget["properties"]["markdown"] for widget in dashboard_of(dev)["widgets"] if widget["type"] == "text"]
    assert headings == [
        "## Are jobs late?",
        "## Where: submission",
        "## Where: promotion",
        "## Where: queues",
        "## Where: execution",
        "## Whose are they?",
        "## What has changed?",
    ]


def test_the_two_signs_that_come_first_are_on_top(dev: Templates) -> None:
    graphs = [widget["properties"] for widget in dashboard_of(dev)["widgets"] if widget["type"] == "metric"]
    assert [(graph["metrics"][0][1], graph["metrics"][0][-1]["stat"]) for graph in graphs[:2]] == [
        ("oldest_bucket_age_s", "Maximum"),
        ("lag_ms", "p99"),
    ]


def test_queries_of_the_dashboard_look_for_events_that_are_logged(dev: Templates) -> None:
    queries = [widget["properties"]["query"] for widget in dashboard_of(dev)["widgets"] if widget["type"] == "log"]
    assert len(queries) == 3
    for query in queries:
        assert events_in(query) - EVENTS == set()
        assert events_in(query)


def test_alarms_watch_only_metrics_that_are_emitted(dev: Templates) -> None:
    for namespace, name, dimensions in own_metrics(dev):
        assert namespace == "Tickwheel"
        (dimension,) = dimensions
        assert dimension["Name"] == "service"
        assert name in EMITTED[dimension["Value"]]


@pytest.mark.parametrize(
    "name",
    [
        "stragglers",
        "chains_broken",
        "early",
        "oldest_bucket_age_s",
        "rescues",
        "dead_lettered",
        "operation_failures",
        "late",
        "clock_skewed",
        "shedding",
    ],
)
def test_what_must_not_happen_has_an_alarm(name: str, dev: Templates) -> None:
    assert name in {metric for _, metric, _ in own_metrics(dev)}


def test_the_first_dead_letter_wakes_somebody(templates: Templates) -> None:
    alarms = [alarm for alarm in alarmed(templates) if alarm.get("MetricName") == "dead_lettered"]
    assert {alarm["Dimensions"][0]["Value"] for alarm in alarms} == set(BURYING)
    for alarm in alarms:
        assert (alarm["Statistic"], alarm["Period"], alarm["Threshold"]) == ("Sum", 60, 0)
        assert (alarm["ComparisonOperator"], alarm["EvaluationPeriods"]) == ("GreaterThanThreshold", 1)
        assert alarm.get("DatapointsToAlarm", 1) == 1


def test_every_function_has_an_alarm_on_its_errors(templates: Templates) -> None:
    watched = [alarm for alarm in alarmed(templates) if alarm.get("MetricName") == "Errors"]
    assert len(watched) == len(templates.functions())


def test_silence_is_health_but_for_the_scanner_whose_every_tick_speaks(templates: Templates) -> None:
    silent = {alarm.get("MetricName") for alarm in alarmed(templates) if alarm["TreatMissingData"] != "notBreaching"}
    assert silent == {"oldest_bucket_age_s"}
    (oldest,) = [alarm for alarm in alarmed(templates) if alarm.get("MetricName") == "oldest_bucket_age_s"]
    assert oldest["TreatMissingData"] == "breaching"


def test_a_metric_that_nothing_emits_cannot_be_watched() -> None:
    with pytest.raises(UnknownMetric, match="worker emits no metric 'lag'"):
        emitted("lag", service="worker", stage=Stage.named("dev"))
