"""The result of a soak: everything that its report has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from soak.curves import Curve, Judged
from verification.checker import Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """jobs, fires, calls: how many there were. left: what should be gone after the end and is not, by its gauge.

    broken: sentences, of promises that the API did not keep. seconds: how long the load lasted; judged_from: since when
    curves were looked at. lag: of all steady jobs, in milliseconds, by percentile. log_lines, log_bytes: what the functions
    wrote, all of which the emulator keeps.
    """

    seed: int
    rate: float
    seconds: float
    judged_from: float
    is_whole: bool
    jobs: int
    fires: int
    calls: int
    refused: int
    lag: Mapping[str, float]
    struck: Mapping[str, int]
    judgement: Judgement
    curves: Mapping[str, Curve]
    judged: Sequence[Judged]
    broken: Sequence[str]
    left: Mapping[str, float]
    log_lines: int
    log_bytes: int

    @property
    def faults(self) -> list[str]:
        """A sentence for each thing that is wrong."""
        violations = [f"{each.invariant}: {each.key} {each.text}" for each in self.judgement.violations]
        risen = [
            f"{each.gauge.name} is not flat: it rises by {each.verdict.rise:.1f} {each.gauge.unit} in "
            f"{each.verdict.span / 60:.0f} minutes, and may by {each.verdict.allowed:.1f}"
            for each in self.judged
            if each.is_wrong
        ]
        left = [f"{name} is {value:g} after the end: it should be 0" for name, value in self.left.items() if value]
        return [*violations, *self.broken, *risen, *left]
