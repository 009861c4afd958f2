"""`tickwheel` as its users run it, in a wide terminal without colours."""

import shlex
from typing import Any

import typer
from typer.testing import CliRunner, Result

from tests.api_server import ApiServer
from tickwheel.cli import app

JOB_OPTIONS = (
    *("--precision", "exact", "--retry-strategy", "linear", "--retry-attempts", "3", "--retry-base", "2s"),
    *("--retry-cap", "PT5M", "--retry-max-age", "6h", "--timeout", "90", "--expires-after", "1d"),
    *("--http-method", "PUT", "--header", "X-Team=billing", "--header", "Authorization=Bearer a=b="),
    *("--http-success", "200", "--http-success", "409", "--http-retry-on", "404"),
    *("--asynchronous", "--tag", "team:billing", "--tag", "eu"),
    *("--flow", "stripe,rate=60/min,burst=10,concurrency=5", "--flow", "smtp,scope=stage", "--flow", "own"),
)
"""Options that submissions and schedules have in common."""

JOB_OF_OPTIONS: dict[str, Any] = {
    "precision": "exact",
    "retry": {"strategy": "linear", "attempts": 3, "base": 2, "cap": 300, "max_age": 21600},
    "timeout": 90,
    "expires_after": 86400,
    "http": {
        "method": "PUT",
        "headers": {"X-Team": "billing", "Authorization": "Bearer a=b="},
        "success": [200, 409],
        "retry_on": [404],
    },
    "asynchronous": True,
    "tags": ["team:billing", "eu"],
    "flow": [
        {"key": "stripe", "rate": "60/min", "burst": 10, "concurrency": 5},
        {"key": "smtp", "scope": "stage"},
        {"key": "own"},
    ],
}
"""The fields of a job that they are sent as."""


def run(*arguments: str, server: ApiServer | None = None, typed: str | None = None, columns: int = 200) -> Result:
    """Run a command against a server; typed: what its user answers."""
    environment = {"COLUMNS": str(columns), "NO_COLOR": "1"}
    if server is not None:
        environment["TICKWHEEL_ENDPOINT"] = server.url
    return CliRunner().invoke(app, arguments, input=typed, env=environment, catch_exceptions=False)


def assert_wrong_usage(*arguments: str, said: str) -> None:
    """It is refused with these words before anything is sent."""
    with ApiServer() as server:
        result = run(*arguments, server=server)

    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert server.requests == []


def parse_only(line: str) -> None:
    """Parse a line as the command line does, and run nothing."""
    words = shlex.split(line)[1:]
    command: Any = typer.main.get_command(app)
    while hasattr(command, "get_command"):
        command = command.get_command(None, words.pop(0))
    command.make_context(line, words)
