"""The checkout that the local cloud deploys from, and where it keeps things."""

import os
from dataclasses import dataclass
from pathlib import Path

from tickwheel.errors import MissingTool, NotACheckout


@dataclass(frozen=True)
class Checkout:
    """The folder of the repository; everything the local cloud writes is below `.local` in it."""

    root: Path

    @property
    def state_file(self) -> Path:
        """Where the cloud that stays (`tickwheel local up`) is written down."""
        return self.root / ".local" / "cloud.json"

    def folder_of(self, port: int) -> Path:
        """What belongs to the cloud on that port: its log, and its data while it runs."""
        return self.root / ".local" / "clouds" / str(port)

    @property
    def python(self) -> Path:
        """The interpreter with the pinned packages, which also runs the Lambdas."""
        return self._tool(self.root / ".venv" / "bin" / "python")

    @property
    def cdk(self) -> Path:
        """The CDK CLI."""
        return self._tool(self.root / ".tools" / "node_modules" / ".bin" / "cdk")

    @property
    def search_path(self) -> str:
        """A PATH on which the pinned python3, node and cdk come first."""
        node = self._tool(self.root / ".tools" / "node" / "bin" / "node")
        ours = [str(self.python.parent), str(node.parent), str(self.cdk.parent)]
        return os.pathsep.join([*ours, os.environ.get("PATH", os.defpath)])

    def _tool(self, path: Path) -> Path:
        if not path.exists():
            raise MissingTool(f"{path} is not there: run `make setup` in {self.root}")
        return path


def find_checkout() -> Checkout:
    """The checkout around the working directory, else the one this package is installed from.

    Raises NotACheckout: a plain `pip install tickwheel` has the client, not the stacks that the local cloud runs.
    """
    here = Path.cwd()
    package = Path(__file__).resolve().parent.parent.parent
    for folder in (here, *here.parents, package):
        if (folder / "cdk.json").is_file() and (folder / "tickwheel").is_dir() and (folder / "infra").is_dir():
            return Checkout(folder)
    raise NotACheckout(
        f"{here} is not inside a checkout of Tickwheel, and the local cloud deploys from one: "
        "clone the repository, run `make setup`, and try again in its folder"
    )
