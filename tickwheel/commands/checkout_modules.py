"""What only a checkout of the repository has: benchmarks, simulation and verification are not installed with this package."""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from tickwheel.errors import MissingTool, NotACheckout, TickwheelError
from tickwheel.local.checkout import find_checkout


def modules_of_checkout(*names: str, reason: str) -> tuple[Path, list[Any]]:
    """The root of the checkout, and these of its modules. reason: why they are needed, for people.

    Raises TickwheelError outside a checkout, and MissingTool where what they import is not installed.
    """
    root = _find_root(names[0].partition(".")[0], reason)
    sys.path.insert(0, str(root))
    # The CDK's own Node, where `make setup` has put one: that on the path, if any, may be too old.
    if (node := root / ".tools" / "node" / "bin" / "node").exists():
        os.environ.setdefault("JSII_NODE", str(node))
    try:
        return root, [importlib.import_module(name) for name in names]
    except ModuleNotFoundError as error:
        raise MissingTool(
            f"{error.name} is not installed here: run `make setup` in {root}, and then {root}/.venv/bin/tickwheel"
        ) from None


def _find_root(folder: str, reason: str) -> Path:
    try:
        root = find_checkout().root
    except NotACheckout:
        root = None
    if root is None or not (root / folder).is_dir():
        raise TickwheelError(
            f"{Path.cwd()} is not inside a checkout of Tickwheel, and {reason}: "
            "clone the repository, run `make setup`, and try again in its folder"
        )
    return root
