"""What became of the lines of a file of jobs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tickwheel.client.jobs import Submitted
from tickwheel.commands.account import Account
from tickwheel.commands.api import fields_of
from tickwheel.commands.lines import Line


@dataclass
class LineAccount(Account):
    """Of jobs. replayed: accepted ones that were so before."""

    ITEMS = "jobs"

    accepted: int = 0
    replayed: int = 0

    def accept(self, line: Line, answer: Submitted) -> None:
        """A line that is a job now."""
        self.accepted += 1
        self.replayed += answer.replayed
        self.items.add({"line": line.number, **fields_of(answer)})

    def taken(self) -> Mapping[str, int]:
        """As its base."""
        return {"accepted": self.accepted, "replayed": self.replayed}


def keyed(line: Line, key: str | None) -> str:
    """A line with the key that its job was sent with."""
    return line.text if key is None else json.dumps({**json.loads(line.text), "idempotency_key": key})
