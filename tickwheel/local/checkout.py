"""The repository, with the tools that `make setup` installs into it."""

from dataclasses import dataclass
from pathlib import Path

from tickwheel.errors import MissingTool, NotACheckout
from tickwheel.local.home import Home, Progress, quietly


@dataclass(frozen=True)
class Checkout(Home):
    """The folder of the repository; everything the local cloud writes is below `.local` in it."""

    root: Path

    @property
    def state(self) -> Path:
        """`.local`."""
        return self.root / ".local"

    @property
    def app(self) -> Path:
        """The root."""
        return self.root

    @property
    def examples(self) -> Path:
        """`examples`."""
        return self.root / "examples"

    @property
    def reports(self) -> Path:
        """`.build`."""
        return self.root / ".build"

    @property
    def python(self) -> Path:
        """The interpreter with the pinned packages, which also runs the Lambdas."""
        return self._tool(self.root / ".venv" / "bin" / "python")

    @property
    def node(self) -> Path:
        """The pinned Node."""
        return self._tool(self.root / ".tools" / "node" / "bin" / "node")

    @property
    def cdk(self) -> Path:
        """The pinned CDK CLI."""
        return self._tool(self.root / ".tools" / "node_modules" / ".bin" / "cdk")

    def dynamodb_local(self, progress: Progress = quietly) -> Path:
        """Where `make setup` puts it if the machine has Java."""
        del progress
        return self.root / ".tools" / "dynamodb_local"

    def prepare(self, progress: Progress = quietly) -> None:
        """Nothing: `make setup` has."""
        del progress

    def _tool(self, path: Path) -> Path:
        if not path.exists():
            raise MissingTool(f"{path} is not there: run `make setup` in {self.root}")
        return path


def find_checkout() -> Checkout:
    """The checkout around the working directory, else the one this package is installed from. Raises NotACheckout."""
    here = Path.cwd()
    package = Path(__file__).resolve().parent.parent.parent
    for folder in (here, *here.parents, package):
        if (folder / "cdk.json").is_file() and (folder / "tickwheel").is_dir() and (folder / "infra").is_dir():
            return Checkout(folder)
    raise NotACheckout(
        f"{here} is not inside a checkout of Tickwheel: clone the repository, run `make setup`, and try again in its folder"
    )
