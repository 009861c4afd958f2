"""Logs and metrics by Powertools, behind the one small port that the rules know."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

from functions.domain.events import KEYS

logger = Logger()
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

    def event(self, name: str, /, **keys: object) -> None:
        """One JSON line: the event's name is its message. A key that is not in the vocabulary is not written."""
        logger.info(name, extra={key: value for key, value in keys.items() if key in KEYS})

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
            metrics.add_metric(name=metric, unit=MetricUnit.Count, value=amount)
        _publish(values.pop((), {}), ())
        for dimensions, observed in values.items():
            # A document has one value for each dimension.
            _publish(observed, dimensions)


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


def _unit_of(metric: str) -> MetricUnit:
    if metric.endswith(_MILLISECONDS):
        return MetricUnit.Milliseconds
    return MetricUnit.Seconds if metric.endswith(_SECONDS) else MetricUnit.Count
