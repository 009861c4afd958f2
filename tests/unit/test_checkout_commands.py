"""Commands that run in a checkout alone, and what they say elsewhere."""

import os
import sys
from pathlib import Path

import pytest

from tests.command_line import run
from tickwheel.commands import checkout_modules
from tickwheel.errors import NotACheckout
from tickwheel.local.checkout import Checkout

VERIFY = ["verify", "--jobs", "1"]
SIMULATE = ["simulate", "steady"]
COST = ["cost", "--jobs-per-day", "1"]
DOCTOR = ["doctor"]
DEV = ["dev", "--handlers", "jobs"]
ALL = pytest.mark.parametrize("arguments", [VERIFY, SIMULATE, COST, DOCTOR, DEV], ids=lambda arguments: arguments[0])


@ALL
def test_without_a_checkout_it_says_where_it_runs(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def find() -> None:
        raise NotACheckout("not here")

    monkeypatch.setattr(checkout_modules, "find_checkout", find)

    result = run(*arguments)

    assert result.exit_code == 1
    assert "clone the repository, run `make setup`" in result.stderr


@ALL
def test_without_the_packages_of_a_checkout_it_says_how_to_get_them(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise ModuleNotFoundError(name="matplotlib")

    monkeypatch.setattr(checkout_modules.importlib, "import_module", fail)

    result = run(*arguments)

    assert result.exit_code == 1
    assert "matplotlib is not installed here: run `make setup`" in result.stderr


def test_a_checkout_brings_its_own_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / ".tools" / "node" / "bin" / "node"
    node.parent.mkdir(parents=True)
    node.touch()
    (tmp_path / "json").mkdir()
    monkeypatch.setattr(checkout_modules, "find_checkout", lambda: Checkout(tmp_path))
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.delenv("JSII_NODE", raising=False)

    checkout_modules.modules_of_checkout("json", reason="of this test")

    assert os.environ.pop("JSII_NODE") == str(node)


def test_a_folder_of_handlers_that_cannot_be_deployed_starts_nothing(tmp_path: Path) -> None:
    result = run("dev", "--handlers", str(tmp_path / "jobs"))

    assert result.exit_code == 2
    assert "is no folder: use that of a Python package" in result.stderr
