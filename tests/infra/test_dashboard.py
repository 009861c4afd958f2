"""The body of the dashboard is what CloudWatch takes, and shows."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from scripts.synthesis import Templates
from tests.infra.dashboard_schema import Body, problems_of, rows_of


def body_of(templates: Templates) -> Body:
    """The dashboard's body with a name in the place of each reference, as CloudFormation would resolve it."""
    (dashboard,) = templates.of_type("AWS::CloudWatch::Dashboard").values()
    parts = dashboard["Properties"]["DashboardBody"]["Fn::Join"][1]
    return json.loads("".join(part if isinstance(part, str) else resolved(part) for part in parts))


def resolved(reference: dict[str, Any]) -> str:
    """What a reference may become: a physical name, or the region."""
    match reference:
        case {"Ref": "AWS::Region"}:
            return "eu-central-1"
        case {"Ref": name} | {"Fn::GetAtt": [name, *_]}:
            return f"Tickwheel-{name}"
        case _:
            raise NotImplementedError(reference)


def widgets(body: Body, kind: str) -> list[Body]:
    return [widget for widget in body["widgets"] if widget["type"] == kind]


def test_the_body_of_every_stage_has_the_structure_that_cloudwatch_documents(templates: Templates) -> None:
    assert problems_of(body_of(templates)) == []


def test_every_row_of_the_grid_is_full(templates: Templates) -> None:
    body = body_of(templates)
    for line in {widget["y"] for widget in body["widgets"]}:
        assert sum(widget["width"] for widget in body["widgets"] if widget["y"] == line) == 24, line


def test_a_graph_has_a_title_and_an_axis_that_begins_at_zero(templates: Templates) -> None:
    for widget in widgets(body_of(templates), "metric"):
        assert widget["properties"]["title"]
        assert widget["properties"]["yAxis"]["left"]["min"] == 0


def test_no_graph_shows_the_same_line_twice(templates: Templates) -> None:
    for widget in widgets(body_of(templates), "metric"):
        shown = [json.dumps([texts, shown.get("stat")]) for texts, shown in rows_of(widget["properties"]["metrics"])]
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
    "a widget beyond the grid": (lambda body: body["widgets"][1].update(x=20), "beyond column 24"),
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
def test_a_body_that_is_wrong_is_found_so(wrong: str, dev: Templates) -> None:
    body = copy.deepcopy(body_of(dev))
    spoil, said = WRONG[wrong]
    spoil(body)
    problems = problems_of(body)
    assert problems
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize("statistic", ["p50", "p99.9", "p100", "tm90", "TM(10%:90%)", "PR(:300)", "IQM", "Sum"])
def test_the_statistics_of_cloudwatch_are_taken(statistic: str, dev: Templates) -> None:
    body = copy.deepcopy(body_of(dev))
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
