"""What happened, remembered."""

from __future__ import annotations

from dataclasses import dataclass, field

from functions.domain.events import EVENTS
from functions.domain.metrics import DIMENSIONS, VALUES


@dataclass
class RecordingJournal:
    events: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    values: dict[str, list[float]] = field(default_factory=dict)
    dimensioned: list[tuple[str, float, dict[str, str]]] = field(default_factory=list)

    def event(self, name: str, /, **keys: object) -> None:
        assert name in EVENTS, f"{name} is not in the vocabulary: declare it in functions/domain/events.py"
        assert not (fault := EVENTS[name].fault(keys)), f"{name} {fault}"
        self.events.append((name, keys))

    def count(self, metric: str, amount: int = 1) -> None:
        self.counts[metric] = self.counts.get(metric, 0) + amount

    def observe(self, metric: str, value: float, /, **dimensions: str) -> None:
        assert tuple(dimensions) == DIMENSIONS.get(metric, ()), f"{metric} has other dimensions than {dimensions}"
        assert all(value in VALUES[dimension] for dimension, value in dimensions.items()), dimensions
        self.values.setdefault(metric, []).append(value)
        if dimensions:
            self.dimensioned.append((metric, value, dimensions))
