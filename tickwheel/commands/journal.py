"""How far a file was submitted or imported: kept beside it until all of its lines are settled, so that this can go on."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from tickwheel.commands.terminal import usage


@dataclass(frozen=True, kw_only=True)
class Position:
    """Behind so many lines. digest: of those; keys: the prefix of the keys that lines were given, or None for none."""

    lines: int
    digest: str
    keys: str | None


@dataclass(frozen=True)
class Journal:
    """The journal of a file: `jobs.jsonl.journal`."""

    file: Path

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return self.file.with_name(f"{self.file.name}.journal")

    def read(self) -> Position:
        """Where to go on; none to go on from is wrong usage."""
        try:
            return Position(**json.loads(self.path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            usage(f"there is nothing to resume: {self.path} is not there")
        except (OSError, ValueError, TypeError) as error:
            usage(
                f"{self.path} is not a journal ({error}): remove it, and begin again with {self.file}, without --resume"
            )

    def write(self, position: Position) -> None:
        """In one step: whoever dies meanwhile goes on from the position before."""
        draft = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        draft.write_text(json.dumps(asdict(position)) + "\n", encoding="utf-8")
        draft.replace(self.path)

    def remove(self) -> None:
        """All lines are settled."""
        self.path.unlink(missing_ok=True)
