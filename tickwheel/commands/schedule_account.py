"""What became of the lines of a file of schedules."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tickwheel.client.batches import MAY_HAVE_BEEN_APPLIED
from tickwheel.client.schedules import Stored
from tickwheel.commands.account import Account
from tickwheel.commands.lines import Line
from tickwheel.errors import ApiProblem, Unreachable


@dataclass
class ScheduleAccount(Account):
    """Of schedules. changes: what was done to those that are stored, as far as that is known."""

    ITEMS = "schedules"

    stored: int = 0
    changes: Counter[str] = field(default_factory=Counter[str])

    def accept(self, line: Line, result: Stored) -> None:
        """A line that is stored as it says."""
        self.stored += 1
        if result.change is not None:
            self.changes[result.change] += 1
        schedule = result.schedule
        named = {"tenant": schedule.tenant, "id": schedule.id, "version": schedule.version}
        self.items.add({"line": line.number, **named, **({"change": result.change} if result.change else {})})

    def fail(self, line: Line, error: ApiProblem | Unreachable) -> None:
        """A line that is refused, or has no answer."""
        if isinstance(error, Unreachable) or error.status in MAY_HAVE_BEEN_APPLIED:
            self.doubt(line, error)
        else:
            self.refuse(line, error)

    def taken(self) -> Mapping[str, int]:
        """As its base."""
        changes = {change: self.changes[change] for change in ("created", "updated", "unchanged")}
        return {"stored": self.stored, **changes}
