"""`tickwheel verify` on the command line: how it is asked, what it prints, and how it exits."""

import itertools
import json
import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from functions.domain.far_ring.cursor import oldest_bucket, set_back
from testkit.fakes import InMemoryShardStore
from testkit.world.stores import in_memory
from tests import command_line
from tests.properties import mutations
from verification import engine
from verification.acts import Act
from verification.checker import Invariant
from verification.faults import FROM_OUTSIDE, Fault
from verification.run import seeds_of


@pytest.fixture
def a_scanner_that_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """At times its cursors are recorded as they were: no job comes to harm, and the world that it runs in sees it."""
    checkpoint, calls = InMemoryShardStore.checkpoint, itertools.count()

    def checkpoint_behind(shards: Any, lease: Any, cursors: Any, **given: Any) -> bool:
        back = set_back(cursors, oldest_bucket(cursors) - 600) if next(calls) % 3 == 0 else cursors
        return checkpoint(shards, lease, back, **given)

    monkeypatch.setattr(InMemoryShardStore, "checkpoint", checkpoint_behind)


run = partial(command_line.run, "verify")


def test_the_same_episode_is_the_same_run() -> None:
    first, second = run("--episode", "77", "--json"), run("--episode", "77", "--json")

    assert first.exit_code == 0
    assert first.stdout == second.stdout
    found = json.loads(first.stdout)
    assert found["jobs"] == 100
    assert found["all"]["checks"].keys() == set(Invariant)
    assert found["all"]["struck"] > 0


def test_an_episode_does_not_depend_on_the_process_that_it_runs_in() -> None:
    command = [sys.executable, "-m", "tickwheel.cli", "verify", "--episode", "77", "--json"]
    reports = [
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        for seed in ("1", "2")
    ]

    assert reports[0].stdout == reports[1].stdout == run("--episode", "77", "--json").stdout


@pytest.mark.long
def test_only_the_faults_that_are_named_strike() -> None:
    found = json.loads(run("--jobs", "500", "--seed", "1", "--faults", "skew, stalls", "--json").stdout)

    assert found["episodes"] == 5
    assert found["faults"].keys() == {"skew", "stalls", "none", "all"}
    assert found["faults"]["skew"]["struck"] > 0


def test_the_table_names_faults_and_invariants_and_the_seed() -> None:
    result = run("--jobs", "100", "--seed", "1")

    assert result.exit_code == 0
    assert "100 jobs" in result.stdout
    words = ("fault", "struck", "nothing", "effect", "fences", "letters", "all")
    assert all(word in result.stdout for word in words)
    assert "every promise was kept; seed 1" in result.stdout
    assert "resubmissions" in result.stdout


def test_a_broken_promise_is_reported_with_the_command_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mutations.fails_without_a_letter(monkeypatch)

    result = run("--jobs", "100", "--seed", "1", "--faults", "none")

    (seed,) = seeds_of(1, jobs=100)
    assert result.exit_code == 1
    assert "✘ dead_letters_accounted: " in result.stdout
    assert f"repeat it with: tickwheel verify --faults none --episode {seed}" in result.stdout
    assert "every promise was kept" not in result.stdout


def test_an_episode_that_is_repeated_says_its_story(monkeypatch: pytest.MonkeyPatch) -> None:
    mutations.fails_without_a_letter(monkeypatch)

    result = run("--episode", str(seeds_of(1, jobs=100)[0]), "--faults", "none")

    assert result.exit_code == 1
    assert ": ledger.fail " in result.stdout or ": dead_letters.put " in result.stdout


def test_a_broken_promise_is_reported_to_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    mutations.fails_without_a_letter(monkeypatch)

    result = run("--jobs", "100", "--seed", "1", "--faults", "none", "--json")

    found = json.loads(result.stdout)
    assert result.exit_code == 1
    named = [violation["invariant"] for violation in found["violations"]]
    assert "dead_letters_accounted" in named
    assert found["all"]["violations"]["dead_letters_accounted"] == named.count("dead_letters_accounted")
    assert found["violations"][0]["command"].endswith(f"--episode {found['violations'][0]['seed']}")


@pytest.mark.usefixtures("a_scanner_that_goes_back")
def test_a_doubt_of_the_world_fails_a_run_as_a_violation_does() -> None:
    result = run("--jobs", "100", "--seed", "1", "--faults", "none")

    (seed,) = seeds_of(1, jobs=100)
    assert result.exit_code == 1
    assert "✘ doubt: a cursor went back: shard " in result.stdout
    assert f"repeat it with: tickwheel verify --faults none --episode {seed}" in result.stdout
    assert "doubts" in result.stdout
    assert "every promise was kept" not in result.stdout


@pytest.mark.usefixtures("a_scanner_that_goes_back")
def test_a_doubt_is_reported_to_a_script() -> None:
    result = run("--jobs", "100", "--seed", "1", "--faults", "none", "--json")

    found = json.loads(result.stdout)
    (seed,) = seeds_of(1, jobs=100)
    assert result.exit_code == 1
    assert found["violations"] == []
    assert found["doubts"][0]["text"].startswith("a cursor went back: shard ")
    assert found["doubts"][0]["command"].endswith(f"--episode {seed}")
    assert found["all"]["doubts"] == len(found["doubts"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--faults", "skew,gremlins"], "'gremlins'"),
        (["--faults", "skew", "--on", "local"], "'skew'"),
        (["--episode", "1", "--jobs", "5"], "--episode repeats one episode"),
        (["--episode", "1", "--on", "local"], "--episode repeats one episode"),
        (["--jobs", "0"], "--jobs"),
        (["--on", "mars"], "--on"),
    ],
)
def test_wrong_usage_is_refused_before_anything_runs(arguments: list[str], complaint: str) -> None:
    result = run(*arguments)

    assert result.exit_code == 2
    assert complaint in result.stderr


def test_an_episode_of_dynamodb_is_repeated_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "dynamodb", lambda _tell: nullcontext(in_memory))
    mutations.fails_without_a_letter(monkeypatch)

    result = run("--on", "dynamodb", "--jobs", "100", "--seed", "1", "--faults", "none")

    (seed,) = seeds_of(1, jobs=100)
    assert result.exit_code == 1
    assert f"repeat it with: tickwheel verify --faults none --on dynamodb --episode {seed}" in result.stdout


def test_without_java_it_says_what_dynamodb_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)

    result = run("--on", "dynamodb", "--jobs", "100")

    assert result.exit_code == 1
    assert "there is no `java` on PATH: install Java 17, and in a checkout run `make setup` again" in result.stderr


def test_neighbouring_seeds_have_no_episode_in_common() -> None:
    assert len({*seeds_of(1, jobs=1_000), *seeds_of(2, jobs=1_000)}) == 20
    assert len(seeds_of(1, jobs=101)) == 2


def test_the_page_explains_every_fault_and_every_invariant() -> None:
    page = (Path(__file__).parents[2] / "docs" / "verification.md").read_text()

    rows = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert rows == {*Fault, *Act, *Invariant}
    local = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `") and line.endswith("| yes |")]
    assert local == list(FROM_OUTSIDE)
