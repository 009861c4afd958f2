"""Logs and metrics by Powertools, behind the one small port that the rules know."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from functions.domain.metrics import INCIDENTS, MUST_BE_ZERO, SILENT_AT_ZERO
from functions.runtime.lean_lines import LeanLines, told

logger = Logger(logger_formatter=LeanLines(log_record_order=["message"]))
metrics = Metrics()

_Dimensions = tuple[tuple[str, str], ...]

_MILLISECONDS = "_ms"
_SECONDS = "_s"


class PowertoolsJournal:
    """Collects what the threads of one invocation report; `flush` hands it to Powertools' EMF metrics.

    Every metric has the service for a dimension, and some have others beside it: `DIMENSIONS` of the domain.
    """

    def __init__(self) -> None:
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
        for metric, amount in counts.items():
            if self._is_news(metric, amount):
                metrics.add_metric(name=metric, unit=MetricUnit.Count, value=amount)
        for metric in SILENT_AT_ZERO:
            if metric in values.get((), {}) and not self._is_news(metric, max(values[()][metric])):
                del values[()][metric]
        if incidents := sum(counts.get(metric, 0) for metric in MUST_BE_ZERO):
            _publish_of_all(INCIDENTS, incidents)
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
    described = {"Name": metric, "Unit": MetricUnit.Count.value}
    directive = {"Namespace": metrics.namespace, "Dimensions": [[]], "Metrics": [described]}
    document = {"_aws": {"Timestamp": int(time.time() * 1_000), "CloudWatchMetrics": [directive]}, metric: value}
    print(json.dumps(document, separators=(",", ":")))  # noqa: T201  as Powertools does


def _unit_of(metric: str) -> MetricUnit:
    if metric.endswith(_MILLISECONDS):
        return MetricUnit.Milliseconds
    return MetricUnit.Seconds if metric.endswith(_SECONDS) else MetricUnit.Count
