"""How much work one caller may cause: counted in steps, so that it ends at the same place on every machine.

Every walk over time spends from the budget of its call, for what it drops too. One step stands for about a microsecond
of one core, whatever it looks at: a day, a period of a rule, a candidate.
"""

from __future__ import annotations

from functions.domain.errors import TooCostly

STEPS_OF_A_FIRE = 2_600
"""For the next fire of a definition that is handed in."""

STEPS_OF_A_WALK = 50_000
"""For many fires of one schedule, to find out that it never fires, and for the next one of a schedule that was taken
before: it may come to a place that is dearer than the one at which it was taken."""

STEPS_OF_A_REQUEST = 50_000
"""For all definitions that come in one request."""


class Budget:
    """Steps that are left. within: a budget that pays for the same steps, such as that of the whole request."""

    __slots__ = ("_within", "left")

    def __init__(self, steps: int, *, within: Budget | None = None) -> None:
        self.left = steps
        self._within = within

    def spend(self, steps: int = 1) -> None:
        """Take from what is left. Raises TooCostly when there is not as much."""
        self.left -= steps
        if self._within is not None:
            self._within.spend(steps)
        if self.left < 0:
            raise TooCostly
