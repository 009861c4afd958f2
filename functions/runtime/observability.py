"""Logs and metrics by Powertools, behind the one small port that the rules know."""

from __future__ import annotations

import threading
from collections import defaultdict

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

logger = Logger()
metrics = Metrics()

_MILLISECONDS = "_ms"
_SECONDS = "_s"


class PowertoolsJournal:
    """Collects what the threads of one invocation report; `flush` hands it to Powertools' EMF metrics.

    Metrics have the service for their only dimension: a dimension a tenant would cost a metric each.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = defaultdict(int)
        self._values: dict[str, list[float]] = defaultdict(list)

    def event(self, name: str, /, **keys: object) -> None:
        """One JSON line: the event's name is its message."""
        logger.info(name, extra=keys)

    def count(self, metric: str, amount: int = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._counts[metric] += amount

    def observe(self, metric: str, value: float) -> None:
        """One value of a distribution: percentiles need each of them."""
        with self._lock:
            self._values[metric].append(value)

    def flush(self) -> None:
        """Hand over what was collected, and begin anew."""
        with self._lock:
            counts, self._counts = self._counts, defaultdict(int)
            values, self._values = self._values, defaultdict(list)
        for metric, amount in counts.items():
            metrics.add_metric(name=metric, unit=MetricUnit.Count, value=amount)
        for metric, observed in values.items():
            for value in observed:
                metrics.add_metric(name=metric, unit=_unit_of(metric), value=value)
        if counts or values:
            metrics.flush_metrics()


def _unit_of(metric: str) -> MetricUnit:
    if metric.endswith(_MILLISECONDS):
        return MetricUnit.Milliseconds
    return MetricUnit.Seconds if metric.endswith(_SECONDS) else MetricUnit.Count
