"""What happened, remembered."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class RecordingJournal:
    events: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    values: dict[str, list[float]] = field(default_factory=dict)

    def event(self, name: str, /, **keys: object) -> None:
        self.events.append((name, keys))

    def count(self, metric: str, amount: int = 1) -> None:
        self.counts[metric] = self.counts.get(metric, 0) + amount

    def observe(self, metric: str, value: float) -> None:
        self.values.setdefault(metric, []).append(value)
