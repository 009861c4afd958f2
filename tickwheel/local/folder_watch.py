"""Changes of a folder, seen by looking at it."""

from collections.abc import Mapping
from pathlib import Path

Look = Mapping[str, tuple[int, int]]


class FolderWatch:
    """What has changed in a folder since it was last asked. Editors write files in many ways: times and sizes tell of all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self._look()

    def changed(self) -> list[str]:
        """The paths of files that are new, gone or different since then, below the folder."""
        before, self._seen = self._seen, self._look()
        return sorted(path for path in before.keys() | self._seen.keys() if before.get(path) != self._seen.get(path))

    def _look(self) -> Look:
        found: dict[str, tuple[int, int]] = {}
        for path in self._folder.rglob("*"):
            name = str(path.relative_to(self._folder))
            if "__pycache__" in name or name.startswith("."):
                continue
            try:
                state = path.stat()
            except FileNotFoundError:  # gone between two looks of this pass
                continue
            if path.is_file():
                found[name] = (state.st_mtime_ns, state.st_size)
        return found
