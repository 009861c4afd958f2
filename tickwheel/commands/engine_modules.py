"""The code of the scheduler and what is made for it, which the client does not have: of the checkout, or of the engine's wheel."""

import os
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tickwheel.errors import MissingTool
from tickwheel.local.checkout import Checkout
from tickwheel.local.home import Home
from tickwheel.local.installation import ENGINE, find_home, missing


class Engine:
    """Modules by the names that they have in the repository.

    extra: brings what they import. needs_node: to import the CDK starts it.
    """

    def __init__(self, *, extra: str, needs_node: bool = False) -> None:
        """Raise MissingTool where Node is needed, and there is none."""
        self.home = find_home()
        self._extra = extra
        self._package = f"{ENGINE}."
        if isinstance(self.home, Checkout):
            sys.path.insert(0, str(self.home.root))
            self._package = ""
        if needs_node:
            _name_node(self.home)

    def load(self, *names: str) -> list[Any]:
        """Import modules. Raises MissingTool where what they import is not installed."""
        try:
            return [import_module(f"{self._package}{name}") for name in names]
        except ModuleNotFoundError as error:
            raise self._missing(error.name or "") from None

    @property
    def reports(self) -> Path:
        """The folder of a report that was not told where to go."""
        return self.home.reports

    def _missing(self, module: str) -> MissingTool:
        if isinstance(self.home, Checkout):
            root = self.home.root
            return MissingTool(
                f"{module} is not installed here: run `make setup` in {root}, and then {root}/.venv/bin/tickwheel"
            )
        return missing(module, extra=self._extra)


def _name_node(home: Home) -> None:
    """Let the CDK use the Node that came with this, where one did: that on the path, if any, may be too old."""
    if "JSII_NODE" in os.environ:
        return
    try:
        node = home.node
    except MissingTool:
        if shutil.which("node") is None:
            raise MissingTool(
                "there is no Node on PATH, which the CDK runs in: install Node 22 or newer, or Tickwheel with its extra "
                "`local`, which brings one: `pip install 'tickwheel[local]'`"
            ) from None
    else:
        os.environ["JSII_NODE"] = str(node)
