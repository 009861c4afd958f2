"""`make test` is what a newcomer runs: it leaves out what takes long, and still looks at every part."""

import re
from pathlib import Path

import pytest

from tests.conftest import LEFT_OUT, WITHOUT_LONG

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
WHOLLY_LEFT_OUT = {
    "tests/infra/test_synthesis_is_stable.py": "tests/infra/test_golden.py",
    "tests/integration/test_hostile_requests.py": "tests/unit/test_requests.py",
    "tests/integration/test_openapi.py": "tests/unit/test_openapi.py",
    "tests/integration/test_walks.py": "tests/integration/test_whole_way.py",
}
"""Files of which `make test` runs nothing, and what looks at the same, less thoroughly, in their place."""

MOST = {"tests/contract": 0.35, "tests/integration": 0.2, "tests/simulation": 0.15}
"""The share of a folder's tests that may be left out, where it is not a tenth: contract tests on moto, hostile requests to each route, herds."""


def _files(config: pytest.Config) -> dict[str, tuple[int, int]]:
    """Those that were collected, without the deployments."""
    found = config.stash[LEFT_OUT].items()
    return {file: counts for file, counts in found if not file.startswith(("tests/e2e/", "tests/live/"))}


def test_the_short_run_leaves_out_what_is_marked_and_the_whole_one_nothing() -> None:
    recipes = dict(re.findall(r"^(test|test-all): .*\n\t@(.*)$", MAKEFILE, re.MULTILINE))

    assert f'-m "{WITHOUT_LONG}"' in recipes["test"]
    assert recipes["test-all"].split()[0] == "pytest"
    assert not {"-m", "-k", "--deselect", "--ignore"} & set(recipes["test-all"].split())
    assert "make test-all" in (ROOT / ".ci" / "run").read_text()


def test_the_short_run_has_something_of_every_file(request: pytest.FixtureRequest) -> None:
    whole = {file for file, (long, count) in _files(request.config).items() if long == count}

    assert whole <= WHOLLY_LEFT_OUT.keys()
    assert all((ROOT / instead).is_file() for instead in WHOLLY_LEFT_OUT.values())


def test_the_short_run_has_nearly_all_tests(request: pytest.FixtureRequest) -> None:
    """More of them would hide what a newcomer breaks: make them cheap."""
    by_folder: dict[str, tuple[int, int]] = {}
    for file, (long, count) in _files(request.config).items():
        folder = "/".join(file.split("/")[:2])
        before = by_folder.get(folder, (0, 0))
        by_folder[folder] = before[0] + long, before[1] + count

    is_whole = len(by_folder) > 8  # not of a run of some files
    too_many = {
        folder: f"{long} of {count}"
        for folder, (long, count) in by_folder.items()
        if is_whole and count > 100 and long > count * MOST.get(folder, 0.1)
    }
    assert too_many == {}
