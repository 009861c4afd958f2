"""The formal models of `specs/`: they hold, and each mutant of them is found, where Spin is installed."""

from __future__ import annotations

import re

import pytest

from scripts import model

SPECS = sorted(path.stem for path in model.SPECS.glob("*.pml"))

needs_spin = pytest.mark.skipif(
    bool(model.missing()), reason=f"{model.missing()} is not installed: no model was checked"
)


def _mutants_of(spec: str) -> set[str]:
    return set(re.findall(r"\bBUG_[A-Z_]+", (model.SPECS / f"{spec}.pml").read_text()))


@pytest.mark.parametrize("spec", SPECS)
def test_a_model_is_checked_without_a_mutant_and_with_each_that_it_has(spec) -> None:
    checks = [check for check in model.CHECKS if check.spec == spec]

    assert any(not check.mutant for check in checks)
    assert {check.mutant for check in checks if check.mutant} == _mutants_of(spec)


def test_every_mutant_is_explained_on_the_page_of_the_models() -> None:
    page = (model.SPECS.parent / "docs" / "model.md").read_text()

    assert [check.mutant for check in model.CHECKS if f"`{check.mutant}`" not in page and check.mutant] == []


def test_a_violated_model_an_unfinished_one_and_a_mutant_that_nobody_finds_are_faults() -> None:
    whole = model.Found(states=10, depth=3)

    assert model.fault_of(model.Check("ledger"), whole) == ""
    assert "violated" in model.fault_of(model.Check("ledger"), model.Found(10, 3, violation="a > b"))
    assert "not all" in model.fault_of(model.Check("ledger"), model.Found(10, 3, is_whole=False))
    mutant = model.Check("ledger", mutant="BUG_X", finds="fence")
    assert "not found" in model.fault_of(mutant, whole)
    assert "another rule" in model.fault_of(mutant, model.Found(10, 3, violation="!(confirmed)"))
    assert model.fault_of(mutant, model.Found(10, 3, violation="(f>last_fence)")) == ""


def test_what_a_checker_prints_is_read() -> None:
    output = """pan:1: assertion violated  !(confirmed) (at depth 24)
State-vector 84 byte, depth reached 25, errors: 1
       23 states, stored
"""

    found = model.read(output)

    assert (found.states, found.depth, found.violation) == (23, 25, "!(confirmed)")
    with pytest.raises(RuntimeError, match="no result"):
        model.read("Segmentation fault")


def test_a_machine_without_spin_says_loudly_that_nothing_was_checked(monkeypatch, capsys) -> None:
    monkeypatch.setenv("PATH", "")

    assert model.main(()) == 0

    assert "THE MODELS WERE NOT CHECKED: spin and gcc" in capsys.readouterr().out


@needs_spin
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("check", model.CHECKS, ids=lambda check: check.name)
def test_spin_agrees_that(check) -> None:
    found = model.explore(check)

    assert model.fault_of(check, found) == "", found.output
