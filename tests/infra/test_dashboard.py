"""The body of the dashboard is what CloudWatch takes, and shows."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from scripts.synthesis import Templates
from tests.infra.dashboard_schema import COLUMNS, MOST_METRICS, MOST_METRICS_IN_ALL, Body, problems_of, rows_of


def body_of(fully_watched: Templates) -> Body:
    """The dashboard's body with a name in the place of each reference, as CloudFormation would resolve it."""
    (dashboard,) = fully_watched.of_type("AWS::CloudWatch::Dashboard").values()
    parts = dashboard["Properties"]["DashboardBody"]["Fn::Join"][1]
    return json.loads("".join(part if isinstance(part, str) else resolved(part) for part in parts))


def resolved(reference: dict[str, Any]) -> str:
    """What a reference may become: a physical name, an ARN, or the region."""
    match reference:
        case {"Ref": "AWS::Region"}:
            return "eu-central-1"
        case {"Fn::GetAtt": [name, "Arn"]}:
            return f"arn:aws:cloudwatch:eu-central-1:123456789012:alarm:{name}"
        case {"Fn::ImportValue": name}:
            return name
        case {"Ref": name} | {"Fn::GetAtt": [name, *_]}:
            return f"Tickwheel-{name}"
        case _:
            raise NotImplementedError(reference)


def widgets(body: Body, kind: str) -> list[Body]:
    return [widget for widget in body["widgets"] if widget["type"] == kind]


def test_the_body_of_every_stage_has_the_structure_that_cloudwatch_documents(fully_watched: Templates) -> None:
    assert problems_of(body_of(fully_watched)) == []


def test_the_grid_has_no_holes_and_nothing_lies_over_another(fully_watched: Templates) -> None:
    cells: list[tuple[int, int]] = []
    for widget in body_of(fully_watched)["widgets"]:
        rows = range(widget["y"], widget["y"] + widget["height"])
        cells += [(x, y) for x in range(widget["x"], widget["x"] + widget["width"]) for y in rows]
    height = max(y for _, y in cells) + 1
    assert sorted(cells) == [(x, y) for x in range(COLUMNS) for y in range(height)]


def test_there_are_no_more_metrics_than_cloudwatch_shows(fully_watched: Templates) -> None:
    counts = [len(widget["properties"]["metrics"]) for widget in widgets(body_of(fully_watched), "metric")]
    assert max(counts) <= MOST_METRICS
    assert sum(counts) <= MOST_METRICS_IN_ALL


def test_every_alarm_is_on_top_and_each_in_one_place(fully_watched: Templates) -> None:
    shown = widgets(body_of(fully_watched), "alarm")
    assert {widget["y"] for widget in shown} == {0}
    names = [arn.rpartition(":")[2] for widget in shown for arn in widget["properties"]["alarms"]]
    single = set(fully_watched.of_type("AWS::CloudWatch::Alarm"))
    # Those that page, the tickets, and of what pages the parts.
    assert len(names) == len(set(names))
    assert single <= set(names)
    composites = set(fully_watched.of_type("AWS::CloudWatch::CompositeAlarm"))
    assert composites <= set(names)


def test_the_lines_of_what_is_promised_are_in_the_graphs_of_the_lag(full: Templates) -> None:
    graphs = [widget["properties"] for widget in widgets(body_of(full), "metric")]
    of_lag = [
        graph
        for graph in graphs
        if any({"lag_ms", "critical_late_ms"} & set(texts) for texts, _ in rows_of(graph["metrics"]))
    ]
    assert len(of_lag) == 15
    for graph in of_lag:
        assert 2_000 in drawn_in(graph), graph["title"]
    assert drawn_in(titled(graphs, "How late critical jobs begin, p90 (ms)")) == [2_000, 30_000]
    assert drawn_in(titled(graphs, "Share of attempts that began more than 2 s late")) == pytest.approx(
        [0.001, 0.006, 0.0144]
    )


def test_a_line_that_says_alarm_is_at_the_threshold_of_one_on_that_metric(fully_watched: Templates) -> None:
    alarms = [alarm["Properties"] for alarm in fully_watched.of_type("AWS::CloudWatch::Alarm").values()]
    thresholds = {(alarm["MetricName"], alarm["Threshold"]) for alarm in alarms if "MetricName" in alarm}
    found = 0
    for widget in widgets(body_of(fully_watched), "metric"):
        names = {texts[1] for texts, _ in rows_of(widget["properties"]["metrics"]) if texts}
        for mark in widget["properties"].get("annotations", {}).get("horizontal", []):
            if "alarm" in mark["label"]:
                assert any((name, mark["value"]) in thresholds for name in names), (widget["properties"]["title"], mark)
                found += 1
    assert found == 8


def titled(graphs: list[Body], title: str) -> Body:
    (found,) = [graph for graph in graphs if graph["title"] == title]
    return found


def drawn_in(graph: Body) -> list[float]:
    """The values of its lines."""
    return sorted(mark["value"] for mark in graph["annotations"]["horizontal"])


def test_a_graph_has_a_title_and_an_axis_that_begins_at_zero(fully_watched: Templates) -> None:
    for widget in widgets(body_of(fully_watched), "metric"):
        assert widget["properties"]["title"]
        assert widget["properties"]["yAxis"]["left"]["min"] == 0


def test_no_graph_shows_the_same_line_twice(fully_watched: Templates) -> None:
    for widget in widgets(body_of(fully_watched), "metric"):
        rows = rows_of(widget["properties"]["metrics"])
        shown = [json.dumps([texts, shown.get("stat"), shown.get("expression")]) for texts, shown in rows]
        assert len(shown) == len(set(shown)), widget["properties"]["title"]


def first(kind: str) -> Callable[[Body], Body]:
    return lambda body: widgets(body, kind)[0]


def properties(body: Body) -> Body:
    return first("metric")(body)["properties"]


def shown(body: Body) -> Body:
    return properties(body)["metrics"][0][-1]


WRONG: dict[str, tuple[Callable[[Body], object], str]] = {
    "a widget of a kind that there is not": (lambda body: first("text")(body).update(type="note"), "note"),
    "a widget over another": (lambda body: body["widgets"][2].update(y=0, x=0), "lie over each other"),
    "a widget beyond the grid": (lambda body: body["widgets"][2].update(x=20), "beyond column 24"),
    "a width of none": (lambda body: body["widgets"][1].update(width=0), "width"),
    "no region": (lambda body: properties(body).pop("region"), "region"),
    "a misspelt property": (lambda body: properties(body).update(titel="Lag"), "titel"),
    "a statistic that there is not": (lambda body: shown(body).update(stat="p101"), "stat"),
    "a statistic in another spelling": (lambda body: shown(body).update(stat="average"), "stat"),
    "a period that is no minutes": (lambda body: shown(body).update(period=90), "period"),
    "a dimension without a value": (lambda body: properties(body)["metrics"][0].pop(3), "pairs of dimensions"),
    "nothing to show": (lambda body: properties(body).update(metrics=[]), "metrics"),
    "a shorthand for nothing": (
        lambda body: properties(body).update(metrics=[["Tickwheel", ".", "service", "worker"]]),
        "repeats what",
    ),
    "an id twice": (
        lambda body: properties(body).update(
            metrics=[["Tickwheel", "late", {"id": "late"}], ["Tickwheel", "early", {"id": "late"}]]
        ),
        "there twice",
    ),
    "an expression of an unknown id": (
        lambda body: properties(body).update(metrics=[["T", "late", {"id": "late"}], [{"expression": "late / all"}]]),
        "'all'",
    ),
    "an id in capitals": (lambda body: shown(body).update(id="Late"), "id"),
    "an annotation without a value": (
        lambda body: properties(body).update(annotations={"horizontal": [{"label": "objective"}]}),
        "value",
    ),
    "a query without a source": (
        lambda body: first("log")(body)["properties"].update(query="fields @message"),
        "query",
    ),
    "text without a text": (lambda body: first("text")(body)["properties"].clear(), "markdown"),
    "a start that is none": (lambda body: body.update(start="3h"), "start"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_body_that_is_wrong_is_found_so(wrong: str, full: Templates) -> None:
    body = copy.deepcopy(body_of(full))
    spoil, said = WRONG[wrong]
    spoil(body)
    problems = problems_of(body)
    assert problems
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize("statistic", ["p50", "p99.9", "p100", "tm90", "TM(10%:90%)", "PR(:300)", "IQM", "Sum"])
def test_the_statistics_of_cloudwatch_are_taken(statistic: str, full: Templates) -> None:
    body = copy.deepcopy(body_of(full))
    shown(body)["stat"] = statistic
    assert problems_of(body) == []


def test_a_metric_may_repeat_the_one_before_it() -> None:
    metrics = [["AWS/SQS", "Depth", "QueueName", "a"], [".", "Age", ".", "."], ["...", "b"], [{"expression": "m1"}]]
    assert [texts for texts, _ in rows_of(metrics)] == [
        ["AWS/SQS", "Depth", "QueueName", "a"],
        ["AWS/SQS", "Age", "QueueName", "a"],
        ["AWS/SQS", "Age", "QueueName", "b"],
        [],
    ]
