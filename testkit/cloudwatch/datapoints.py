"""Metrics as CloudWatch keeps them: values by namespace, name and dimensions, folded to a statistic a period.

Embedded metric format: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from functions.domain.metrics import INCIDENTS

_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?|100)")

_STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Sum": sum,
    "Average": lambda values: sum(values) / len(values),
    "Minimum": min,
    "Maximum": max,
    "SampleCount": len,
}


class Metric(NamedTuple):
    """Its name, and its dimensions by name: with another set of them it is another metric."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]


def metric(namespace: str, name: str, **dimensions: str) -> Metric:
    """A metric; the order of its dimensions means nothing."""
    return Metric(namespace, name, tuple(sorted(dimensions.items())))


@dataclass
class Datapoints:
    """Values with the time (s) at which each was counted."""

    values: dict[Metric, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def put(self, of: Metric, value: float, *, at: float) -> None:
        """One value."""
        self.values[of].append((at, value))

    def read(self, lines: Iterable[Mapping[str, Any]], *, at: float | None = None) -> None:
        """Take in log lines in the embedded metric format; others are passed over. at: instead of the lines' own time."""
        for line in lines:
            if "_aws" not in line:
                continue
            when = line["_aws"]["Timestamp"] / 1000 if at is None else at
            for directive in line["_aws"]["CloudWatchMetrics"]:
                for names in directive["Dimensions"]:
                    dimensions = {name: str(line[name]) for name in names}
                    for described in directive["Metrics"]:
                        of = metric(directive["Namespace"], described["Name"], **dimensions)
                        found = line[described["Name"]]
                        for value in found if isinstance(found, list) else [found]:
                            self.put(of, value, at=when)

    def undeclared(
        self, namespace: str, *, emitted: Mapping[str, Iterable[str]], dimensions: Mapping[str, Iterable[str]]
    ) -> set[Metric]:
        """The metrics of a namespace that their service does not declare, or not with their dimensions."""

        def is_declared(of: Metric) -> bool:
            if of.name == INCIDENTS:
                return not of.dimensions
            dimension_values = dict(of.dimensions)
            is_known = of.name in emitted.get(dimension_values.pop("service", ""), ())
            return (
                is_known and len(dimension_values) <= 1 and dimension_values.keys() <= set(dimensions.get(of.name, ()))
            )

        return {of for of in self.values if of.namespace == namespace and not is_declared(of)}

    def folded(self, of: Metric, *, statistic: str, period: int) -> dict[int, float]:
        """The statistic of each period that has values, by its start (s): periods begin at multiples of their length."""
        periods: dict[int, list[float]] = defaultdict(list)
        for at, value in self.values.get(of, ()):
            periods[int(at // period) * period].append(value)
        return {start: _fold(values, statistic) for start, values in periods.items()}


def _fold(values: Sequence[float], statistic: str) -> float:
    if statistic in _STATISTICS:
        return _STATISTICS[statistic](values)
    match = _PERCENTILE.fullmatch(statistic)
    if match is None:
        raise NotImplementedError(f"the statistic {statistic}")
    return sorted(values)[max(0, math.ceil(len(values) * float(match[1]) / 100) - 1)]
