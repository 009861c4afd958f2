"""Tickwheel itself, deployed to a local cloud."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tickwheel.local.cloud import LocalCloud, stop_group
from tickwheel.local.deploy import api_endpoint_of, deploy, destroy, diff
from tickwheel.local.home import Home, Progress, quietly
from tickwheel.local.installation import find_home
from tickwheel.local.settings import AwsSettings
from tickwheel.local.state import Running, forget_running, read_running, write_running

_SCHEDULER = "local/Scheduler"


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A deployed scheduler: where its API is, how boto3 reaches the cloud below it, and what the stacks put out."""

    api_endpoint: str
    port: int
    aws: AwsSettings
    log: Path
    outputs: Mapping[str, str]
    home: Home
    folder: Path

    def redeploy(self, *, progress: Progress = quietly) -> "Stack":
        """Deploys what the home has now over what is deployed; state and jobs stay."""
        outputs = deploy(self.home, self.aws, folder=self.folder, progress=progress, bootstrap=False)
        return replace(self, outputs=outputs, api_endpoint=api_endpoint_of(outputs))

    def redeploy_scheduler(self, *, progress: Progress = quietly) -> "Stack":
        """As `redeploy`, but leaves the storage stack as it is: outputs are those of the scheduler."""
        outputs = deploy(self.home, self.aws, folder=self.folder, progress=progress, bootstrap=False, stack=_SCHEDULER)
        return replace(self, outputs=outputs, api_endpoint=api_endpoint_of(outputs))

    def diff(self, *, progress: Progress = quietly) -> None:
        """Raises DeployFailed where deploying what the home has now would change anything."""
        diff(self.home, self.aws, folder=self.folder, progress=progress)

    def destroy(self, *, progress: Progress = quietly) -> None:
        """Deletes the stacks as `cdk destroy` does in an account; the cloud stays."""
        destroy(self.home, self.aws, folder=self.folder, progress=progress)

    def destroy_scheduler(self, *, progress: Progress = quietly) -> None:
        """Deletes what `make destroy` does in an account: the scheduler, and not the data."""
        destroy(self.home, self.aws, folder=self.folder, progress=progress, stacks=(_SCHEDULER,))


@contextmanager
def local_stack(*, progress: Progress = quietly, home: Home | None = None) -> Iterator[Stack]:
    """A cloud of one's own with the scheduler deployed to it; on exit everything is stopped and only the log stays.

    Several may run side by side. `progress` is called with lines for people. It ends with the process that asked
    for it, also when that is killed. Raises a LocalCloudError.
    """
    home = home or find_home()
    home.prepare(progress)
    progress("starting the local cloud")
    with LocalCloud(home) as cloud:
        yield _deploy_to(cloud.port, cloud.aws, cloud.log, home=home, progress=progress)


def up(*, progress: Progress = quietly) -> Running:
    """Starts a cloud that stays and deploys to it; one that runs already gets what the home has now.

    A new cloud whose deployment fails or is interrupted is stopped again.
    """
    home = find_home()
    home.prepare(progress)
    running = read_running(home)
    if running is not None:
        progress(f"the local cloud already runs on port {running.port}; deploying what has changed")
        return _deploy_and_write(home, running, progress, bootstrap=running.api_endpoint is None)
    progress("starting the local cloud")
    cloud = LocalCloud(home, detached=True)
    cloud.start()
    try:
        running = Running(pid=cloud.pid, port=cloud.port, log=str(cloud.log))
        write_running(home, running)
        deployed = _deploy_and_write(home, running, progress, bootstrap=True)
    except BaseException:
        cloud.stop()
        forget_running(home)
        raise
    cloud.let_go()
    return deployed


def down() -> Running | None:
    """Stops the cloud that stays, its Lambdas with it; returns what ran, or None when nothing did."""
    home = find_home()
    running = read_running(home)
    if running is not None:
        stop_group(home, pid=running.pid, port=running.port)
        forget_running(home)
    return running


def _deploy_and_write(home: Home, running: Running, progress: Progress, *, bootstrap: bool) -> Running:
    stack = _deploy_to(
        running.port,
        AwsSettings(f"http://127.0.0.1:{running.port}"),
        Path(running.log),
        home=home,
        progress=progress,
        bootstrap=bootstrap,
    )
    deployed = replace(running, api_endpoint=stack.api_endpoint)
    write_running(home, deployed)
    return deployed


def _deploy_to(
    port: int, aws: AwsSettings, log: Path, *, home: Home, progress: Progress, bootstrap: bool = True
) -> Stack:
    folder = home.folder_of(port) / "data"
    outputs = deploy(home, aws, folder=folder, progress=progress, bootstrap=bootstrap)
    return Stack(
        api_endpoint=api_endpoint_of(outputs),
        port=port,
        aws=aws,
        log=log,
        outputs=outputs,
        home=home,
        folder=folder,
    )
