"""The structure of a dashboard's body as JSON Schema, and what a schema cannot say of it.

After AWS's documentation, "Dashboard body structure and syntax"
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html): CloudWatch takes
a body that is wrong, and then shows an empty widget. Stricter than it where a name that is not documented would be passed
over in silence: nothing else is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import jsonschema_rs

Body = dict[str, Any]

COLUMNS = 24
MOST_METRICS, MOST_METRICS_IN_ALL = 500, 2_500
"""In a widget and in a dashboard, hidden ones included: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html."""

STATISTIC = (
    r"^(SampleCount|Average|Sum|Minimum|Maximum|IQM"
    r"|p(100|\d{1,2}(\.\d{1,10})?)"
    r"|(tm|wm|tc|ts)(100|\d{1,2}(\.\d{1,10})?)"
    r"|(TM|WM|TC|TS|PR)\((\d+(\.\d+)?%?)?:(\d+(\.\d+)?%?)?\))$"
)
"""Of CloudWatch, "Statistics definitions": the plain ones, percentiles, and trimmed and winsorized ones."""


def _object(properties: Body, *, required: Sequence[str] = ()) -> Body:
    """An object with these properties and no others."""
    return {"type": "object", "required": list(required), "additionalProperties": False, "properties": properties}


_PERIOD = {"anyOf": [{"enum": [1, 5, 10, 20, 30]}, {"type": "integer", "minimum": 60, "multipleOf": 60}]}
_COLOUR = {"type": "string", "pattern": "^#[0-9a-fA-F]{3}([0-9a-fA-F]{3})?$"}
_AXIS = _object(
    {
        "label": {"type": "string"},
        "min": {"type": "number"},
        "max": {"type": "number"},
        "showUnits": {"type": "boolean"},
    }
)
_MARK = {"label": {"type": "string"}, "color": _COLOUR, "visible": {"type": "boolean"}}
_HORIZONTAL = _object(
    {
        **_MARK,
        "value": {"type": "number"},
        "fill": {"enum": ["above", "below", "none"]},
        "yAxis": {"enum": ["left", "right"]},
    },
    required=["value"],
)
_VERTICAL = _object(
    {**_MARK, "value": {"type": "string"}, "fill": {"enum": ["before", "after", "none"]}},
    required=["value"],
)
_RENDERING = _object(
    {
        "accountId": {"type": "string"},
        "color": _COLOUR,
        "expression": {"type": "string", "minLength": 1, "maxLength": 1024},
        "id": {"type": "string", "pattern": "^[a-z][a-zA-Z0-9_]{0,254}$"},
        "label": {"type": "string"},
        "period": _PERIOD,
        "region": {"type": "string"},
        "stat": {"type": "string", "pattern": STATISTIC},
        "visible": {"type": "boolean"},
        "yAxis": {"enum": ["left", "right"]},
    }
)
_METRICS = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST_METRICS,
    "items": {
        "type": "array",
        "minItems": 1,
        # A namespace, a name, and up to 30 dimensions as pairs, then how it is shown.
        "maxItems": 63,
        "items": {"anyOf": [{"type": "string", "minLength": 1, "maxLength": 1024}, _RENDERING]},
    },
}
_METRIC_WIDGET = _object(
    {
        "accountId": {"type": "string"},
        "annotations": _object(
            {
                "alarms": {"type": "array", "maxItems": 1, "items": {"type": "string"}},
                "horizontal": {"type": "array", "items": _HORIZONTAL},
                "vertical": {"type": "array", "items": _VERTICAL},
            }
        ),
        "legend": _object({"position": {"enum": ["bottom", "right", "hidden"]}}),
        "liveData": {"type": "boolean"},
        "metrics": _METRICS,
        "period": _PERIOD,
        "region": {"type": "string", "minLength": 1},
        "setPeriodToTimeRange": {"type": "boolean"},
        "singleValueFullPrecision": {"type": "boolean"},
        "sparkline": {"type": "boolean"},
        "stacked": {"type": "boolean"},
        "stat": {"type": "string", "pattern": STATISTIC},
        "timezone": {"type": "string", "pattern": r"^[+-]\d{4}$"},
        "title": {"type": "string"},
        "trend": {"type": "boolean"},
        "view": {"enum": ["timeSeries", "singleValue", "gauge", "bar", "pie", "table"]},
        "yAxis": _object({"left": _AXIS, "right": _AXIS}),
    },
    required=["region", "metrics"],
)
_LOG_WIDGET = _object(
    {
        "accountId": {"type": "string"},
        "query": {"type": "string", "pattern": "^SOURCE '[^']+'( \\| SOURCE '[^']+')* *[|\\n]"},
        "region": {"type": "string", "minLength": 1},
        "stacked": {"type": "boolean"},
        "title": {"type": "string"},
        "view": {"enum": ["table", "timeSeries", "bar", "pie"]},
    },
    required=["region", "query"],
)
_TEXT_WIDGET = _object(
    {
        "markdown": {"type": "string", "minLength": 1},
        "background": {"enum": ["transparent", "solid"]},
    },
    required=["markdown"],
)
_ALARM_WIDGET = _object(
    {
        "alarms": {"type": "array", "minItems": 1, "maxItems": 100, "items": {"type": "string", "pattern": "^arn:"}},
        "sortBy": {"enum": ["default", "stateUpdatedTimestamp", "timestamp"]},
        "states": {"type": "array", "items": {"enum": ["ALARM", "INSUFFICIENT_DATA", "OK"]}},
        "title": {"type": "string"},
    },
    required=["alarms"],
)
_PROPERTIES = {"metric": _METRIC_WIDGET, "log": _LOG_WIDGET, "text": _TEXT_WIDGET, "alarm": _ALARM_WIDGET}


def _widget(kind: str, properties: Body) -> Body:
    return _object(
        {
            "type": {"const": kind},
            "x": {"type": "integer", "minimum": 0, "maximum": COLUMNS - 1},
            "y": {"type": "integer", "minimum": 0},
            "width": {"type": "integer", "minimum": 1, "maximum": COLUMNS},
            "height": {"type": "integer", "minimum": 1, "maximum": 1000},
            "properties": properties,
        },
        # The documentation lets positions be left out; CDK writes them, and without them nothing could be laid out.
        required=["type", "x", "y", "width", "height", "properties"],
    )


SCHEMA: Body = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["widgets"],
    "additionalProperties": False,
    "properties": {
        "start": {"type": "string", "pattern": r"^(-P.+|\d{4}-\d{2}-\d{2}T.+)$"},
        "end": {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}T.+$"},
        "periodOverride": {"enum": ["auto", "inherit"]},
        "widgets": {
            "type": "array",
            "maxItems": 500,
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"enum": sorted(_PROPERTIES)}},
                "allOf": [
                    {"if": {"properties": {"type": {"const": kind}}}, "then": _widget(kind, properties)}
                    for kind, properties in _PROPERTIES.items()
                ],
            },
        },
    },
}

_VALIDATOR = jsonschema_rs.Draft202012Validator(SCHEMA)
_NAMES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXTS = re.compile(r"'[^']*'|\"[^\"]*\"")


def problems_of(body: Body) -> list[str]:
    """Everything that is wrong with a body, with where it is."""
    found = [f"{'/'.join(map(str, error.instance_path))}: {error.message}" for error in _VALIDATOR.iter_errors(body)]
    return found or [*_layout_problems(body), *_metric_problems(body)]


def rows_of(metrics: list[list[Any]]) -> Iterator[tuple[list[str], Body]]:
    """Namespace, name and dimensions of each metric, with the documentation's shorthands resolved, and how it is shown.

    `.` is what stands there in the metric before, and `...` is all of that but the last value.
    """
    before: list[str] = []
    for metric in metrics:
        shown = metric[-1] if isinstance(metric[-1], dict) else {}
        texts = [part for part in metric if isinstance(part, str)]
        if texts[:1] == ["..."]:
            texts = [*before[: len(before) - len(texts) + 1], *texts[1:]]
        texts = [before[number] if part == "." and number < len(before) else part for number, part in enumerate(texts)]
        if texts:
            before = texts
        yield texts, shown


def _layout_problems(body: Body) -> Iterator[str]:
    widgets = body["widgets"]
    for number, widget in enumerate(widgets):
        if widget["x"] + widget["width"] > COLUMNS:
            yield f"widgets/{number}: reaches beyond column {COLUMNS}"
    for (one, first), (other, second) in combinations(enumerate(widgets), 2):
        if _overlap(first, second, "x", "width") and _overlap(first, second, "y", "height"):
            yield f"widgets/{one} and widgets/{other}: lie over each other"


def _overlap(first: Body, second: Body, start: str, size: str) -> bool:
    return first[start] < second[start] + second[size] and second[start] < first[start] + first[size]


def _metric_problems(body: Body) -> Iterator[str]:
    for number, widget in enumerate(body["widgets"]):
        if widget["type"] == "metric":
            yield from (
                f"widgets/{number}: {problem}" for problem in _problems_of_metrics(widget["properties"]["metrics"])
            )


def _problems_of_metrics(metrics: list[list[Any]]) -> Iterator[str]:
    ids: list[str] = []
    expressions: list[str] = []
    for number, (texts, shown) in enumerate(rows_of(metrics)):
        if any(isinstance(part, dict) for part in metrics[number][:-1]):
            yield f"metric {number}: how it is shown is not its last part"
        ids += [shown["id"]] if "id" in shown else []
        if "expression" in shown:
            expressions.append(shown["expression"])
            if texts:
                yield f"metric {number}: is an expression and a metric at the same time"
        elif len(texts) < 2 or len(texts) % 2:
            yield f"metric {number}: {texts} is not a namespace, a name and pairs of dimensions"
        elif "." in texts or "..." in texts:
            yield f"metric {number}: {texts} repeats what the metric before does not have"
    yield from (f"the id {each!r} is there twice" for each in sorted({each for each in ids if ids.count(each) > 1}))
    for expression in expressions:
        yield from (
            f"{expression!r} names {name!r}, which nothing is called" for name in unknown_names(expression, ids)
        )


def unknown_names(expression: str, ids: list[str]) -> list[str]:
    """The names in an expression of metric math that are neither its functions nor ids; ids begin in lower case."""
    names = _NAMES.findall(_TEXTS.sub("", expression))
    return [name for name in names if name[0].islower() and name not in ids]
