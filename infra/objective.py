"""What a stage promises about when jobs begin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from functions.domain.instants import MILLISECOND
from functions.domain.tenants.attempts import LAG_OBJECTIVE

LEAST_SHARE = 0.95
"""An hour that spends the budget 14.4 times too fast is then still less than all that there is to be late."""


class InvalidObjective(ValueError):
    """A promise that nothing can break, or that nothing can keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """The share of attempts, from 0.95 and below 1, that begin within `lag` of their time."""

    lag: timedelta = LAG_OBJECTIVE
    share: float = 0.999

    def __post_init__(self) -> None:
        """Refuse what cannot be measured."""
        if self.lag < MILLISECOND or self.lag % MILLISECOND:
            raise InvalidObjective(f"lag is {self.lag}: use whole milliseconds, at least one")
        if not LEAST_SHARE <= self.share < 1:
            raise InvalidObjective(
                f"share is {self.share}: use {LEAST_SHARE} or more, or no alarm could go off, and less than 1, "
                "or the first late job would page"
            )

    @property
    def error_budget(self) -> float:
        """The share of attempts that may begin late."""
        return 1 - self.share
