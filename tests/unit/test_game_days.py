"""docs/game-days.md: what its exercises name exists, and the commands that rehearse them hold."""

import re
import shlex

import pytest
from typer.testing import CliRunner

from infra.metrics import EMITTED
from scripts.synthesis import ROOT
from simulation.catalogue import SCENARIOS
from tickwheel.cli import app
from verification.faults import IN_MEMORY

PAGE = (ROOT / "docs" / "game-days.md").read_text()
TITLES = re.findall(r"^## (.+)$", PAGE, flags=re.MULTILINE)
BODIES = dict(zip(TITLES, re.split(r"^## .+$", PAGE, flags=re.MULTILINE)[1:], strict=True))
METRICS = {name for names in EMITTED.values() for name in names}
NOT_METRICS = {"job_returned", "worker_died", "at_least_once", "ready_capacity", "spread", "revived", "paused"}
"""Other words of the expectations that stand as code."""


def part(title: str, name: str) -> str:
    return re.split(r"^\*\*\w[\w ]*\.\*\* ", BODIES[title], flags=re.MULTILINE)[
        1 + ["Do", "Expect", "Rehearse", "Over when"].index(name)
    ]


def commands(title: str) -> list[list[str]]:
    return [shlex.split(command) for command in re.findall(r"`([^`]+)`", part(title, "Rehearse"))]


VERIFICATIONS = [words for title in TITLES for words in commands(title) if words[:2] == ["tickwheel", "verify"]]
SIMULATIONS = [words for title in TITLES for words in commands(title) if words[:2] == ["tickwheel", "simulate"]]
TESTS = [words for title in TITLES for words in commands(title) if words[0] == "pytest"]


@pytest.mark.parametrize("title", TITLES)
def test_an_exercise_says_what_to_do_what_to_expect_how_to_rehearse_it_and_when_it_is_over(title: str) -> None:
    names = re.findall(r"^\*\*(\w[\w ]*)\.\*\* \S", BODIES[title], flags=re.MULTILINE)

    assert names == ["Do", "Expect", "Rehearse", "Over when"]
    assert commands(title)


@pytest.mark.parametrize("title", TITLES)
def test_what_is_expected_names_metrics_that_are_emitted(title: str) -> None:
    words = set(re.findall(r"`(\w+)`", part(title, "Expect") + part(title, "Over when")))

    assert words - METRICS <= NOT_METRICS


def test_every_command_is_one_that_is_checked_here() -> None:
    assert len(VERIFICATIONS) + len(SIMULATIONS) + len(TESTS) == sum(len(commands(title)) for title in TITLES)


def test_every_fault_is_rehearsed_by_some_exercise() -> None:
    named = {name for words in VERIFICATIONS for name in words[words.index("--faults") + 1].split(",")}

    assert set(IN_MEMORY) == named


@pytest.mark.parametrize("words", VERIFICATIONS, ids=" ".join)
def test_a_verification_holds(words: list[str]) -> None:
    done = CliRunner().invoke(app, [*words[1:], "--jobs", "100"], catch_exceptions=False)

    assert done.exit_code == 0, done.output
    assert "every promise was kept" in done.output


@pytest.mark.parametrize("words", SIMULATIONS, ids=" ".join)
def test_a_simulation_is_one_that_there_is(words: list[str]) -> None:
    # The tests of the simulation run each of them, at a reduced size too.
    assert words[-1] == "--reduced"
    assert words[2:-1]
    assert set(words[2:-1]) <= set(SCENARIOS)


@pytest.mark.parametrize("words", TESTS, ids=" ".join)
def test_a_test_is_one_that_there_is(words: list[str]) -> None:
    assert (ROOT / words[1]).is_file()
