"""A release: what it writes, and what it refuses before it writes anything."""

import tomllib
from datetime import date

import pytest

from scripts.distribution.engine import ROOT
from scripts.distribution.release import NotReleasable, released, with_version

DAY = date(2027, 3, 1)


def test_what_was_unreleased_stands_under_its_version_and_day() -> None:
    changelog = "# Changelog\n\n## Unreleased\n\n### Added\n- A wheel.\n\n## 0.1.0 - 2026-01-01\n- It began.\n"

    assert released(changelog, "0.2.0", on=DAY) == (
        "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2027-03-01\n\n### Added\n- A wheel.\n\n## 0.1.0 - 2026-01-01\n- It began.\n"
    )


@pytest.mark.parametrize("changelog", ["# Changelog\n", "## Unreleased\n\n## 0.1.0 - 2026-01-01\n- It began.\n"])
def test_a_release_of_nothing_is_refused(changelog: str) -> None:
    with pytest.raises(NotReleasable, match="says nothing below `## Unreleased`"):
        released(changelog, "0.2.0", on=DAY)


def test_a_version_is_written_wherever_one_wheel_asks_for_the_other() -> None:
    before = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    after = tomllib.loads(with_version((ROOT / "pyproject.toml").read_text(), "9.8.7"))["project"]

    assert after["version"] == "9.8.7"
    own = [needed for needs in after["optional-dependencies"].values() for needed in needs if "tickwheel" in needed]
    assert own
    assert all(needed.endswith("==9.8.7") for needed in own)
    assert after["dependencies"] == before["dependencies"]


@pytest.mark.parametrize("new", ["0.0.9", "0.1.0", "1", "v1.0.0", "1.0.0rc1", "01.0.0", ""])
def test_a_version_that_is_none_or_not_higher_is_refused(new: str) -> None:
    with pytest.raises(NotReleasable, match=r"use three numbers such as 1\.2\.3, higher than 0\.1\.0"):
        with_version('version = "0.1.0"\n', new)
