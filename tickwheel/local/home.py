"""What the local cloud deploys from, and where it keeps things: a checkout, or what is installed."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

Progress = Callable[[str], None]
"""Called with a line for people."""


def quietly(_line: str) -> None:
    """Tells nobody."""


class Home(ABC):
    """Folders and tools. Each property raises MissingTool, with what to install, where one is not there."""

    @property
    @abstractmethod
    def state(self) -> Path:
        """The folder of all that the local cloud writes."""

    @property
    @abstractmethod
    def app(self) -> Path:
        """The folder of cdk.json, with the settings of the CDK, and of the application that it names."""

    @property
    @abstractmethod
    def examples(self) -> Path:
        """The folder of what the demo reads."""

    @property
    @abstractmethod
    def reports(self) -> Path:
        """The folder of a report that was not told where to go."""

    @property
    @abstractmethod
    def python(self) -> Path:
        """The interpreter with what the cloud needs, which also runs the Lambdas."""

    @property
    @abstractmethod
    def node(self) -> Path:
        """Node, for the CDK."""

    @property
    @abstractmethod
    def cdk(self) -> Path:
        """The CDK CLI."""

    @abstractmethod
    def dynamodb_local(self, progress: Progress = quietly) -> Path:
        """The folder of DynamoDB's own engine; in a checkout it may not be there."""

    @property
    def app_options(self) -> list[str]:
        """Options of the CDK CLI that say how the application runs, where cdk.json does not."""
        return []

    @abstractmethod
    def prepare(self, progress: Progress = quietly) -> None:
        """Install what a deployment needs and is not there yet. Raises MissingTool."""

    @property
    def state_file(self) -> Path:
        """Where the cloud that stays (`tickwheel local up`) is written down."""
        return self.state / "cloud.json"

    @property
    def clouds(self) -> Path:
        """The folders of all clouds."""
        return self.state / "clouds"

    def folder_of(self, port: int) -> Path:
        """What belongs to the cloud on that port: its log, and its data while it runs."""
        return self.clouds / str(port)

    @property
    def search_path(self) -> str:
        """A PATH on which the right python3, node and cdk come first."""
        ours = [str(tool.parent) for tool in (self.python, self.node, self.cdk)]
        return os.pathsep.join([*ours, os.environ.get("PATH", os.defpath)])
