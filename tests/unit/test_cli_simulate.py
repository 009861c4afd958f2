"""`tickwheel simulate` on the command line: how it is asked, what it prints, and how it exits."""

import json
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from simulation.catalogue import SCENARIOS
from simulation.scenario import Goal, Scenario
from tests import command_line
from tests.simulation.small import a_scenario


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(*, is_full: bool) -> Scenario:
        return a_scenario(rate=20.0 if is_full else 5.0)

    monkeypatch.setitem(cast("dict[str, Any]", SCENARIOS), "small", make)


run = partial(command_line.run, "simulate")


@pytest.mark.usefixtures("small")
def test_a_scenario_is_run_and_its_report_is_written(tmp_path: Path) -> None:
    result = run("small", "--out", str(tmp_path))

    assert result.exit_code == 0
    assert "A small load" in result.stdout
    assert "✔ no job is lost" in result.stdout
    assert str(tmp_path / "small.html") in result.stderr
    assert (tmp_path / "small.png").exists()


@pytest.mark.usefixtures("small")
def test_a_script_gets_one_object(tmp_path: Path) -> None:
    found = json.loads(run("small", "--json", "--seed", "3", "--reduced", "--out", str(tmp_path)).stdout)

    (scenario,) = found["scenarios"]
    assert found["report"] == str(tmp_path / "small.html")
    assert (scenario["name"], scenario["seed"], scenario["held"]) == ("small", 3, True)
    assert 200 < scenario["jobs"] < 400


def test_a_missed_target_exits_with_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def make(*, is_full: bool) -> Scenario:
        del is_full
        return a_scenario(rate=5.0, goals=(Goal("lag_p99_s", "lag that nobody can have", at_most=0.001),))

    monkeypatch.setitem(cast("dict[str, Any]", SCENARIOS), "small", make)

    result = run("small", "--out", str(tmp_path))

    assert result.exit_code == 1
    assert "✘ lag that nobody can have" in result.stdout


def test_the_scenarios_are_listed() -> None:
    result = run("--list")

    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(SCENARIOS)


@pytest.mark.parametrize(
    ("arguments", "complaint"), [(["stedy"], "there is no scenario 'stedy'"), (["steady", "--seed", "-1"], "--seed")]
)
def test_wrong_usage_is_refused_before_anything_runs(arguments: list[str], complaint: str) -> None:
    result = run(*arguments)

    assert result.exit_code == 2
    assert complaint in result.stderr
