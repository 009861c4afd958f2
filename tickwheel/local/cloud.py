"""One local cloud: a ministack process on a free port of the loopback, with its own folder."""

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

from tickwheel.errors import CloudDidNotStart
from tickwheel.local.home import Home
from tickwheel.local.processes import REMOVED, Started, end_group, remove
from tickwheel.local.settings import LOCAL_ACCESS_KEY, LOCAL_ACCOUNT, LOCAL_REGION, LOCAL_SECRET_KEY, AwsSettings
from tickwheel.local.state import GATEWAY_MODULE, is_local_cloud

_LOOPBACK = "127.0.0.1"
_START_SECONDS = 60.0
_PORT_ATTEMPTS = 5
# ministack would first wait for requests and Lambdas under way; their state goes with it, so it is not given long.
_STOP_GRACE_SECONDS = 2.0
_KILL_SECONDS = 3.0
# Each function has unpacked a layer of its own: where others use the disk, a removal of so many files takes minutes.
_REMOVAL_SECONDS = 1.0
_LOGS_KEPT = 10


class LocalCloud(Started):
    """Starts on entry, or by `start`, and ends with every Lambda it runs, also when this process is killed.

    A `detached` one stays until `stop_group` is called with its pid, by whatever process.
    """

    def __init__(self, home: Home, *, detached: bool = False) -> None:
        self.home = home
        self._detached = detached
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def pid(self) -> int:
        """The id of the process, which leads a group of its own."""
        assert self._process is not None, "the local cloud has not been started"
        return self._process.pid

    @property
    def log(self) -> Path:
        """What the cloud says; it stays after the cloud has ended. Lambdas write to CloudWatch Logs instead."""
        return self.home.folder_of(self.port) / "cloud.log"

    @property
    def aws(self) -> AwsSettings:
        """How boto3 reaches this cloud."""
        return AwsSettings(f"http://{_LOOPBACK}:{self.port}")

    def start(self) -> None:
        """Returns when the cloud answers; raises CloudDidNotStart."""
        forget_old_clouds(self.home)
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self.port = _free_port()
            self._spawn()
            try:
                self._wait_until_it_answers()
            except CloudDidNotStart:
                self.stop()
                # Another process may have taken the port in between; anything else fails the same way each time.
                if attempt == _PORT_ATTEMPTS or "already in use" not in self.log.read_text():
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                return

    def stop(self) -> None:
        """Ends the cloud and its Lambdas and removes its data; no error when it is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        stop_group(self.home, pid=process.pid, port=self.port)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        if process.stdin is not None:
            process.stdin.close()

    def let_go(self) -> None:
        """Leaves a detached cloud to whoever knows its pid; this object no longer stops it."""
        assert self._detached, "a cloud that is not detached ends with this process"
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0  # or Popen warns about the process that is left running on purpose

    def _spawn(self) -> None:
        folder = self.home.folder_of(self.port)
        shutil.rmtree(folder, ignore_errors=True)
        data = folder / "data"
        (data / "tmp").mkdir(parents=True)
        command = [str(self.home.python), "-m", GATEWAY_MODULE]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603
                command if self._detached else [*command, "--lifeline"],
                cwd=data,
                env=self._environment(str(data)),
                stdin=subprocess.DEVNULL if self._detached else subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C is ours to handle: the cloud ends after what uses it
            )
        (data / "pid").write_text(str(self._process.pid))

    def _environment(self, data: str) -> Mapping[str, str]:
        # Nothing else is passed on: the Lambdas inherit this environment, and a real account's variables must not
        # reach them.
        return {
            "PATH": self.home.search_path,
            "HOME": data,
            "TMPDIR": f"{data}/tmp",  # noqa: S108  # our own, below the cloud's folder
            "LANG": "C.UTF-8",
            "BIND_HOST": _LOOPBACK,
            "GATEWAY_PORT": str(self.port),
            "STATE_DIR": f"{data}/state",
            "S3_DATA_DIR": f"{data}/s3",
            "AUTH": "true",  # verify signatures and evaluate policies, as AWS does
            "IOT_MTLS_ENABLED": "0",  # would listen on a fixed port
            "SFTP_ENABLED": "0",  # likewise
            "MINISTACK_REGION": LOCAL_REGION,
            "MINISTACK_ACCOUNT_ID": LOCAL_ACCOUNT,
            "AWS_ACCESS_KEY_ID": LOCAL_ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": LOCAL_SECRET_KEY,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            if (code := self._process.poll()) is not None:
                raise CloudDidNotStart(f"the local cloud ended with code {code} while starting", log=self.log)
            if answers(self.port):
                return
            time.sleep(0.1)
        message = f"the local cloud did not answer on port {self.port} within {_START_SECONDS:.0f} s"
        raise CloudDidNotStart(message, log=self.log)


def stop_group(home: Home, *, pid: int, port: int) -> None:
    """Ends the cloud with that pid and its Lambdas, then removes its data and keeps its log. Within ten seconds."""
    end_group(pid, grace_seconds=_STOP_GRACE_SECONDS, kill_seconds=_KILL_SECONDS)
    remove(home.folder_of(port) / "data", wait_seconds=_REMOVAL_SECONDS)


def forget_old_clouds(home: Home) -> None:
    """Removes the data of clouds that were killed, and all but the newest logs."""
    folders = sorted(home.clouds.glob("*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for age, folder in enumerate(folders):
        data = folder / "data"
        with contextlib.suppress(FileNotFoundError, ValueError):
            if not is_local_cloud(int((data / "pid").read_text())):
                remove(data, wait_seconds=_REMOVAL_SECONDS)
        for left in folder.glob(f"{REMOVED}*"):  # of a removal that was killed
            remove(left, wait_seconds=0)
        if age >= _LOGS_KEPT and not data.exists():
            shutil.rmtree(folder, ignore_errors=True)


def answers(port: int) -> bool:
    """Whether a cloud on that port is ready for requests."""
    try:
        health = httpx.get(f"http://{_LOOPBACK}:{port}/_ministack/ready", timeout=5, trust_env=False)
    except httpx.TransportError:
        return False
    return health.is_success


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_LOOPBACK, 0))
        return probe.getsockname()[1]
