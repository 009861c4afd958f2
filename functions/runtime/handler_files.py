"""What a function's package has of handlers beside those of its own: their names, and in a worker their code.

A stage with handlers has a layer with them. Where Lambda unpacks it, and where the local cloud does, is on Python's path. The layer of
`tickwheel dev` has no handlers itself, but says where they are on the machine of the local cloud, which changes while it runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from functions.domain.targets.handler_names import BUILT_IN, FILE, FOLDER, LIVE, HandlerNames


class HandlerFiles:
    """The handlers of this process's layer. path: what is looked into, `sys.path` if it is None."""

    def __init__(self, path: Sequence[str] | None = None) -> None:
        folders = [Path(place, FOLDER) for place in (sys.path if path is None else path)]
        live = next((folder / LIVE for folder in folders if (folder / LIVE).is_file()), None)
        self._current = None if live is None else Path(live.read_text())
        self._layer = next((folder for folder in folders if (folder / FILE).is_file()), None)
        self._known: tuple[list[Path], HandlerNames] | None = None

    @property
    def is_live(self) -> bool:
        """Whether they may be others at the next look."""
        return self._current is not None

    def folders(self) -> list[Path]:
        """Where they are: first the modules and their names, then the libraries beside them. Empty where there are none."""
        if self._current is None:
            return [] if self._layer is None else [self._layer]
        try:
            return [Path(line) for line in self._current.read_text().splitlines()]
        except OSError:  # `tickwheel dev` is beginning, or what it wrote is gone
            return []

    def modules(self) -> Mapping[str, str]:
        """By the names of handlers, the modules that register them; of some the code is in this package."""
        folders = self.folders()
        return json.loads((folders[0] / FILE).read_text()) if folders else {}

    def names(self) -> HandlerNames:
        """What jobs may name: read, not imported, because what answers requests runs no code of handlers."""
        if self._known is None or (self.is_live and self._known[0] != self.folders()):
            self._known = (self.folders(), HandlerNames({*BUILT_IN, *self.modules()}))
        return self._known[1]
