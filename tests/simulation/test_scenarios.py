"""Every scenario at reduced size, against its targets."""

from pathlib import Path

import pytest

from simulation.catalogue import SCENARIOS
from simulation.suite import LONGEST_FIRST, run_all, run_one

SHORT = {"creation", "executions_fresh", "front_door", "steady_fresh", "sweep"}
"""Those of a second or two."""


@pytest.mark.parametrize(
    "name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in SCENARIOS]
)
def test_a_scenario_holds_its_targets(name: str) -> None:
    result = run_one(name, is_full=False, seed=1)

    missed = {verdict.goal.fact: verdict.value for verdict in result.verdicts if not verdict.holds}
    assert not missed


@pytest.mark.parametrize("name", SCENARIOS)
def test_full_size_is_described_like_reduced_size(name: str) -> None:
    full, reduced = SCENARIOS[name](is_full=True), SCENARIOS[name](is_full=False)

    assert (full.name, reduced.name) == (name, name)
    assert [goal.fact for goal in full.goals] == [goal.fact for goal in reduced.goals]
    assert len(set(full.sampled)) == len(full.sampled)
    assert max(full.sampled) < full.size.shards
    assert full.window[1] <= full.until


@pytest.mark.long
def test_processes_give_the_same_results_in_the_order_that_was_asked_for() -> None:
    shares: dict[str, float] = {}

    found = run_all(
        ["herd_smear", "herd_spread"], is_full=False, seed=1, advance=lambda name, share: shares.update({name: share})
    )

    assert [result.name for result in found] == ["herd_smear", "herd_spread"]
    assert found[1].facts == run_one("herd_spread", is_full=False, seed=1).facts
    assert shares.keys() == {"herd_smear", "herd_spread"}
    assert all(0.8 < share <= 1 for share in shares.values())


def test_what_is_begun_first_exists() -> None:
    assert {*LONGEST_FIRST, *SHORT} <= set(SCENARIOS)


def test_the_page_of_the_docs_names_every_scenario() -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text()

    rows = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert rows == list(SCENARIOS)
