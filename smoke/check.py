"""What a check is, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, asdict, dataclass
from enum import IntEnum, StrEnum
from typing import Any

from infra.stage import Stage
from smoke.ground import Ground


class Phase(IntEnum):
    """Checks of one phase run side by side. SETTLED: what all the others have left behind."""

    LOOKS = 0
    DOOR = 1
    JOBS = 2
    LOAD = 3
    SETTLED = 4
    LONG = 5


class Outcome(StrEnum):
    """NOT_POSSIBLE: this cloud or this stage does not have what would be looked at."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_POSSIBLE = "not possible here"


@dataclass(frozen=True, slots=True)
class Check:
    """A function with what it needs: `@partial(Check, name=…)`. Its docstring begins with a sentence that says what it proves.

    run: returns the value that was seen, or raises Wrong or NotPossible.
    seconds: its longest duration, and is_far: beside the time until the next bucket that is still closed. jobs, worker_seconds: that it
    makes a stage run at most. usd: what it costs beside those. is_quick: of the short list. needs_aws: why it says nothing on a local cloud.
    """

    run: Callable[[Ground], str]
    _: KW_ONLY
    name: str
    phase: Phase
    seconds: float = 60
    is_far: bool = False
    jobs: int = 0
    worker_seconds: float = 0
    usd: float = 0
    is_quick: bool = False
    needs_aws: str = ""

    def __call__(self, ground: Ground) -> str:
        """Run it."""
        return self.run(ground)

    @property
    def proves(self) -> str:
        """In a sentence."""
        return (self.run.__doc__ or "").partition("\n")[0]

    @property
    def is_long(self) -> bool:
        """Whether it runs only where it is asked for."""
        return self.phase is Phase.LONG

    def is_possible(self, stage: Stage) -> bool:
        """Whether such a stage has what is looked at; a check may still find that this one does not."""
        return not (self.needs_aws and stage.emulated)

    def longest(self, stage: Stage) -> float:
        """How many seconds it takes at most."""
        wheel = stage.wheel
        until_far = wheel.guard + 2 * wheel.bucket if self.is_far else 0 * wheel.guard
        return self.seconds + until_far.total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """of: the name of the check. seen: the value, or the reason why there is none."""

    of: str
    outcome: Outcome
    seen: str
    expected: str = ""
    seconds: float = 0

    def __str__(self) -> str:
        """A line for people."""
        mark = {Outcome.PASSED: "✔", Outcome.FAILED: "✘", Outcome.NOT_POSSIBLE: "-"}[self.outcome]
        seen = f"saw {self.seen}; expected: {self.expected}" if self.outcome is Outcome.FAILED else self.seen
        said = "" if self.outcome is Outcome.PASSED else f"{self.outcome}: "
        return f"{mark} {self.of}: {said}{seen} ({self.seconds:.1f} s)"

    def as_json(self) -> dict[str, Any]:
        """For the report."""
        return asdict(self)
