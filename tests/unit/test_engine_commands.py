"""Commands that run the scheduler's own code: of the checkout or of the engine's wheel, and what they say where neither is."""

import os
import sys
from pathlib import Path

import pytest

from tests.command_line import run
from tickwheel.commands import engine_modules
from tickwheel.commands.engine_modules import Engine
from tickwheel.errors import MissingTool
from tickwheel.local import installation
from tickwheel.local.checkout import Checkout
from tickwheel.local.installation import Installation

VERIFY = ["verify", "--jobs", "1"]
SIMULATE = ["simulate", "steady"]
COST = ["cost", "--jobs-per-day", "1"]
DOCTOR = ["doctor"]
SMOKE = ["smoke", "--list"]
DEV = ["dev", "--handlers", "jobs"]
EACH = [(VERIFY, "local"), (SIMULATE, "local"), (COST, "cdk"), (DOCTOR, "cdk"), (SMOKE, "cdk"), (DEV, "local")]
ALL = pytest.mark.parametrize(("arguments", "extra"), EACH, ids=[arguments[0] for arguments, _ in EACH])


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """The wheel of the client, without a checkout."""
    home = Installation(state_folder=tmp_path / "state", cache=tmp_path / "cache")
    monkeypatch.setattr(engine_modules, "find_home", lambda: home)
    return home


@ALL
@pytest.mark.usefixtures("installed")
def test_without_the_engine_it_says_in_a_line_which_extra_to_install(arguments: list[str], extra: str) -> None:
    result = run(*arguments)

    assert result.exit_code == 1
    assert f"pip install 'tickwheel[{extra}]'" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@ALL
def test_without_the_packages_of_a_checkout_it_says_how_to_get_them(
    arguments: list[str], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del extra

    def fail(name: str) -> None:
        raise ModuleNotFoundError(name="matplotlib")

    monkeypatch.setattr(engine_modules, "import_module", fail)

    result = run(*arguments)

    assert result.exit_code == 1
    assert "matplotlib is not installed here: run `make setup`" in result.stderr


def test_a_checkout_brings_its_own_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / ".tools" / "node" / "bin" / "node"
    node.parent.mkdir(parents=True)
    node.touch()
    monkeypatch.setattr(engine_modules, "find_home", lambda: Checkout(tmp_path))
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.delenv("JSII_NODE", raising=False)

    Engine(extra="cdk", needs_node=True)

    assert os.environ.pop("JSII_NODE") == str(node)


def test_a_node_that_the_environment_names_is_the_one(installed: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed.node.exists()
    monkeypatch.setenv("JSII_NODE", "/opt/node")

    Engine(extra="cdk", needs_node=True)

    assert os.environ["JSII_NODE"] == "/opt/node"


def test_without_any_node_it_says_what_brings_one(installed: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    del installed
    monkeypatch.delenv("JSII_NODE", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(installation, "find_spec", lambda name: None)

    with pytest.raises(MissingTool, match=r"no Node on PATH.*tickwheel\[local\]"):
        Engine(extra="cdk", needs_node=True)


def test_a_folder_of_handlers_that_cannot_be_deployed_starts_nothing(tmp_path: Path) -> None:
    result = run("dev", "--handlers", str(tmp_path / "jobs"))

    assert result.exit_code == 2
    assert "is no folder: use that of a Python package" in result.stderr
