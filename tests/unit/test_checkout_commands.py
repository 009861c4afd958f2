"""Commands that run in a checkout alone, and what they say elsewhere."""

import pytest

from tests.command_line import run
from tickwheel.commands import checkout_modules
from tickwheel.errors import NotACheckout

VERIFY = ["verify", "--jobs", "1"]
SIMULATE = ["simulate", "steady"]
COST = ["cost", "--jobs-per-day", "1"]
DOCTOR = ["doctor"]
ALL = pytest.mark.parametrize("arguments", [VERIFY, SIMULATE, COST, DOCTOR], ids=lambda arguments: arguments[0])


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
