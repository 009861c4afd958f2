"""Logs and metrics by Powertools, behind the one small port that the rules know."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from functions.domain.metrics import ESSENTIAL_METRICS, INCIDENTS, MUST_BE_ZERO, SILENT_AT_ZERO, Watching
from functions.runtime.lean_lines import LeanLines, told

logger = Logger(logger_formatter=LeanLines(log_record_order=["message"]))
metrics = Metrics()

_Dimensions = tuple[tuple[str, str], ...]

_MOST_VALUES = 100
"""Of a metric in a document: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html"""

_MILLISECONDS = "_ms"
_SECONDS = "_s"


class PowertoolsJournal:
    """Collects what the threads of one invocation report; `flush` hands it to Powertools' EMF metrics.

    Every metric has the service for a dimension, and some have others beside it: `DIMENSIONS` of the domain. Where a stage is
    watched for the essential, few are metrics, and one line of the log has the rest.
    """

    def __init__(self, watching: Watching = Watching.FULL) -> None:
        self._watching = watching
        self._lock = threading.Lock()
        self._counts: dict[str, int] = defaultdict(int)
        self._values: dict[_Dimensions, dict[str, list[float]]] = {}
        self._not_zero: set[str] = set()

    def event(self, name: str, /, **keys: object) -> None:
        """One JSON line: the event's name is its message. A key that is not in the vocabulary is not written.

        Of events of which only some are told, that is all at the level DEBUG.
        """
        found = told(name, keys, is_detailed=logger.log_level <= logging.DEBUG)
        if found is not None:
            logger.info(name, extra=dict(found))

    def count(self, metric: str, amount: int = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[metric] += amount

    def observe(self, metric: str, value: float, /, **dimensions: str) -> None:
        """One value of a distribution: percentiles need each of them."""
        with self._lock:
            self._values.setdefault(tuple(dimensions.items()), {}).setdefault(metric, []).append(value)

    def flush(self) -> None:
        """Hand over what was collected, and begin anew."""
        with self._lock:
            counts, self._counts = self._counts, defaultdict(int)
            values, self._values = self._values, {}
        counted = {metric: amount for metric, amount in counts.items() if self._is_news(metric, amount)}
        for metric in SILENT_AT_ZERO:
            if metric in values.get((), {}) and not self._is_news(metric, max(values[()][metric])):
                del values[()][metric]
        if incidents := sum(counts.get(metric, 0) for metric in MUST_BE_ZERO):
            _publish_of_all(INCIDENTS, incidents)
        if self._watching is Watching.ESSENTIAL:
            _observe(counted, values)
            return
        for metric, amount in counted.items():
            metrics.add_metric(name=metric, unit=MetricUnit.Count, value=amount)
        _publish(values.pop((), {}), ())
        for dimensions, observed in values.items():
            # A document has one value for each dimension.
            _publish(observed, dimensions)

    def _is_news(self, metric: str, amount: float) -> bool:
        """Whether a value is sent: a zero only behind another value, so that graphs and alarms see that it is over."""
        was_zero = metric not in self._not_zero
        if amount:
            self._not_zero.add(metric)
        else:
            self._not_zero.discard(metric)
        return bool(amount) or not was_zero


def _publish(values: Mapping[str, Sequence[float]], dimensions: _Dimensions) -> None:
    """One document, or more where a metric has over a hundred values. Each dimension is a set of its own."""
    for name, value in dimensions:
        metrics.add_dimensions(service=str(metrics.service), **{name: value})
    for metric, observed in values.items():
        for value in observed:
            metrics.add_metric(name=metric, unit=_unit_of(metric), value=value)
    if metrics.provider.metric_set:
        metrics.flush_metrics()
    else:
        metrics.clear_metrics()


def _publish_of_all(metric: str, value: int) -> None:
    """A document with an empty set of dimensions, which Powertools refuses to write.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    _print({**_directive([metric], dimensions=[]), metric: value})


def _observe(counts: Mapping[str, int], values: Mapping[_Dimensions, Mapping[str, Sequence[float]]]) -> None:
    """One line, or more where something has over a hundred values; none where nothing was observed."""
    event = "observed"
    emitted = {metric: [float(count)] for metric, count in counts.items() if metric in ESSENTIAL_METRICS}
    emitted |= {metric: all_of for metric, all_of in values.get((), {}).items() if metric in ESSENTIAL_METRICS}
    counted = {metric: count for metric, count in counts.items() if metric not in emitted}
    measured = [
        {metric: value, **dict(dimensions)}
        for dimensions, by_metric in values.items()
        for metric, all_of in by_metric.items()
        if metric not in emitted
        for value in all_of
    ]
    longest = max(len(measured), int(bool(counted)), *map(len, emitted.values()))
    for first in range(0, longest, _MOST_VALUES):
        part = slice(first, first + _MOST_VALUES)
        rest = {"counts": {} if first else counted, "values": measured[part]}
        now = {metric: all_of[part] for metric, all_of in emitted.items() if all_of[part]}
        line: dict[str, object] = {"message": event, "service": metrics.service}
        line |= {key: value for key, value in rest.items() if value}
        _print(line | (_directive(now, dimensions=["service"]) | now if now else {}))


def _directive(names: Iterable[str], *, dimensions: Sequence[str]) -> dict[str, object]:
    """By which CloudWatch takes members of a line for metrics."""
    described = [{"Name": name, "Unit": _unit_of(name).value} for name in names]
    directive = {"Namespace": metrics.namespace, "Dimensions": [dimensions], "Metrics": described}
    return {"_aws": {"Timestamp": int(time.time() * 1_000), "CloudWatchMetrics": [directive]}}


def _print(line: Mapping[str, object]) -> None:
    print(json.dumps(line, separators=(",", ":")))  # noqa: T201  as Powertools does


def _unit_of(metric: str) -> MetricUnit:
    if metric.endswith(_MILLISECONDS):
        return MetricUnit.Milliseconds
    return MetricUnit.Seconds if metric.endswith(_SECONDS) else MetricUnit.Count
