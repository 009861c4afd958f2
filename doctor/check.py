"""What a check found, and all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """warning: the deployment works, and something will be slow or refused. refused: it would stop half-way."""

    OK = "ok"
    WARNING = "warning"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """seen, needed: as people read them. command: what mends it, to be run or done. page: where AWS says what it is."""

    name: str
    level: Level
    seen: str
    needed: str = ""
    command: str = ""
    page: str = ""

    def __str__(self) -> str:
        """A line for people."""
        needed = f"; needed: {self.needed}" if self.needed else ""
        command = f"\n{'':10}{self.command}" if self.command else ""
        return f"{self.level:<10}{self.name}: {self.seen}{needed}{command}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """executions: a second, if it was asked what they need."""

    stage: str
    executions: float | None
    checks: Sequence[Check]

    @property
    def is_deployable(self) -> bool:
        """Whether nothing would stop a deployment."""
        return all(check.level is not Level.REFUSED for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        """A report for a script."""
        return {
            "stage": self.stage,
            "executions_a_second": self.executions,
            "deployable": self.is_deployable,
            "checks": [asdict(check) for check in self.checks],
        }
