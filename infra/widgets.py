"""The parts of a dashboard: graphs of what functions emit and of what AWS counts, lines in them, queries, headings."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch

from functions.domain.metrics import VALUES
from infra.metrics import EMITTED, emitted
from infra.package import Function
from infra.stage import Stage

ROW_WIDTH = 24
"""Columns of CloudWatch's grid."""

MINUTE = cdk.Duration.minutes(1)


def heading(text: str) -> cloudwatch.IWidget:
    """A row that says what those below it answer."""
    return cloudwatch.TextWidget(markdown=f"## {text}", width=ROW_WIDTH, height=1)


def graph(
    title: str,
    *metrics: cloudwatch.IMetric,
    columns: int,
    right: Sequence[cloudwatch.IMetric] = (),
    lines: Sequence[cloudwatch.HorizontalAnnotation] = (),
) -> cloudwatch.IWidget:
    """right: metrics of another unit, with an axis of their own. lines: of the left axis."""
    axis = cloudwatch.YAxisProps(min=0, show_units=False)
    return cloudwatch.GraphWidget(
        title=title,
        left=list(metrics),
        right=list(right),
        width=ROW_WIDTH // columns,
        left_y_axis=axis,
        right_y_axis=axis if right else None,
        left_annotations=list(lines) or None,
    )


def line(value: float, label: str) -> cloudwatch.HorizontalAnnotation:
    """What a metric is compared with."""
    return cloudwatch.HorizontalAnnotation(value=value, label=label)


def query(title: str, *lines: str, log_group_names: Sequence[str], columns: int) -> cloudwatch.IWidget:
    """A query of a log."""
    return cloudwatch.LogQueryWidget(
        title=title,
        log_group_names=list(log_group_names),
        query_lines=list(lines),
        width=ROW_WIDTH // columns,
        height=6,
    )


def of(service: str, *names: str, stage: Stage) -> list[cloudwatch.Metric]:
    """Metrics of one function."""
    return [emitted(name, service=service, stage=stage) for name in names]


def of_each(name: str, *, stage: Stage, statistic: str = "Sum") -> list[cloudwatch.Metric]:
    """A metric of every function that emits it."""
    return [
        emitted(name, service=service, stage=stage, statistic=statistic, label=service if statistic != "Sum" else None)
        for service, names in EMITTED.items()
        if name in names
    ]


def of_values(name: str, dimension: str, *, service: str, stage: Stage, statistic: str) -> list[cloudwatch.Metric]:
    """A metric by each value of a dimension."""
    return [
        emitted(name, service=service, stage=stage, statistic=statistic, by=(dimension, value), label=value)
        for value in VALUES[dimension]
    ]


def of_functions(functions: Sequence[Function], metric: str, *, statistic: str) -> list[cloudwatch.Metric]:
    """What Lambda counts of each function."""
    return [
        function.function.metric(metric, label=function.name, period=MINUTE, statistic=statistic)
        for function in functions
    ]
