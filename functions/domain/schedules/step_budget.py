"""How much work one caller may cause: counted in steps, so that it ends at the same place on every machine.

Every walk over time spends from the budget of its call, for what it drops too. One step stands for a microsecond or
two of one core, whatever it looks at: a day, a period of a rule, a candidate. What a process remembers costs as many as
what it works out, so that the answer is the same in all of them.
"""

from __future__ import annotations

from collections.abc import Hashable

from functions.domain.errors import TooCostly

STEPS_OF_A_FIRE = 2_600
"""For the next fire of a definition that is submitted."""

STEPS_OF_A_WALK = 50_000
"""For many fires of one schedule, and to find out that it never fires."""

STEPS_OF_A_TICK = 250_000
"""For the fires of a schedule that was taken before: it may come to a place that is dearer than the one at which it was
taken, and a release before counted otherwise. Half a second at most, of the two that one chain may take."""

STEPS_OF_A_REQUEST = 50_000
"""For all definitions that come in one request."""


class Budget:
    """Steps that are left. within: a budget that pays for the same steps, such as that of the whole request.

    paid: what was spent for once, by all that pay for the same call.
    """

    __slots__ = ("_within", "left", "paid")

    def __init__(self, steps: int, *, within: Budget | None = None) -> None:
        self.left = steps
        self._within = within
        self.paid: set[Hashable] = set() if within is None else within.paid

    @property
    def affordable(self) -> int:
        """What can be spent."""
        return self.left if self._within is None else min(self.left, self._within.affordable)

    def spend(self, steps: int = 1) -> None:
        """Take from what is left. Raises TooCostly when there is not as much."""
        self.left -= steps
        if self._within is not None:
            self._within.spend(steps)
        if self.left < 0:
            raise TooCostly

    def spend_once(self, what: Hashable, steps: int) -> None:
        """Spend for something that is worked out once in a call, however often it is asked for, and whoever knows it already."""
        if what not in self.paid:
            self.spend(steps)
            self.paid.add(what)
