"""DynamoDB Local, AWS's own engine, as one Java process per test process."""

import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import httpx
from botocore.config import Config

from tickwheel.local.processes import Started

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient, DynamoDBServiceResource

ENGINE = Path(__file__).resolve().parent.parent / ".tools" / "dynamodb_local"
"""In the checkout that this is a module of."""

_START_SECONDS = 60


def java_missing_because() -> str | None:
    """What to do where there is no Java."""
    return (
        None
        if shutil.which("java")
        else "there is no `java` on PATH: install Java 17, and in a checkout run `make setup` again"
    )


def missing_because() -> str | None:
    """Why the engine cannot run here, or None when it can."""
    if because := java_missing_because():
        return because
    if not (ENGINE / "DynamoDBLocal.jar").is_file():
        return f"there is no DynamoDBLocal.jar in {ENGINE}: run `make setup` again"
    return None


class DynamoDBLocal(Started):
    """The engine in memory on a free port, from `start` to `stop`; every region and key has tables of its own.

    It has no option for the address to listen on; it is spoken to over the loopback and holds test data only.
    """

    def __init__(self, engine: Path = ENGINE) -> None:
        self._engine = engine
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed by stop

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when the engine answers."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        # SerialGC and one compiler tier: it starts in half the time and takes one core's share of a small machine.
        options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-Djava.library.path=DynamoDBLocal_lib"]
        self._process = subprocess.Popen(
            ["java", *options, "-jar", "DynamoDBLocal.jar", "-inMemory", "-disableTelemetry", "-port", str(self.port)],
            cwd=self._engine,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            with suppress(httpx.TransportError):
                httpx.get(self.endpoint_url, timeout=5, trust_env=False)  # an unsigned GET is answered with 400
                return
            time.sleep(0.05)
        self._log.seek(0)
        said = self._log.read().decode(errors="replace")
        self.stop()
        raise RuntimeError(f"DynamoDB Local did not start on port {self.port}:\n{said}")

    def stop(self) -> None:
        """Ends the process; no error when it is not running."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        self._log.close()

    def client(self) -> "DynamoDBClient":
        return client_at(self.endpoint_url)

    def resource(self) -> "DynamoDBServiceResource":
        return boto3.resource("dynamodb", **_settings(self.endpoint_url))


def client_at(endpoint_url: str, *, key: str = "test") -> "DynamoDBClient":
    """A client of an engine that runs. key: letters and digits; each has tables of its own."""
    return boto3.client("dynamodb", **_settings(endpoint_url, key))


def _settings(endpoint_url: str, key: str = "test") -> dict[str, Any]:
    return {
        "endpoint_url": endpoint_url,
        "region_name": "us-east-1",
        "aws_access_key_id": key,
        "aws_secret_access_key": "test",
        # A user agent that is not given is put together anew for each call, in a tenth of its time.
        "config": Config(retries={"total_max_attempts": 1}, user_agent="tests"),
    }
