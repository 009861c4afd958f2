"""The licences of everything that is installed: `python scripts/licences.py` lists them in docs/licences.md.

`--check` refuses a licence that is not allowed, and a list that is not of the pins.
"""

import json
import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import NamedTuple

root = Path(__file__).resolve().parent.parent
PAGE = root / "docs" / "licences.md"

ALLOWED = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "CNRI-Python",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "MPL-2.0",
        "PSF-2.0",
        "Python-2.0",
        "Zlib",
    }
)
"""Licences that ask no more than a notice, or, of MPL-2.0, the source of its own files, which nobody changes here."""

CALLED = {
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "Python-2.0",
}
"""What packages without an SPDX expression call a licence, by its SPDX identifier."""

OF_WHAT_IS_INSTALLED = {"docutils": "BSD"}
"""Of packages whose classifiers also name the licence of a file that their wheel does not have (docutils: a mode for Emacs)."""

_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ \\]+)", re.MULTILINE)
_OPERATORS = re.compile(r"\s+(?:AND|OR|WITH)\s+|[()]")
_CLASSIFIER = "License :: OSI Approved :: "


class Package(NamedTuple):
    """A pinned package: where it comes from and runs, and its licence as an SPDX expression, or what it says instead."""

    name: str
    version: str
    licence: str
    source: str
    runs_in_lambda: bool = False

    @property
    def refused(self) -> list[str]:
        """Licences of it that are not allowed; of alternatives all must be, which spares a choice."""
        return sorted(set(filter(None, _OPERATORS.split(self.licence))) - ALLOWED) if self.licence else ["none"]


def licence_of(package: Distribution) -> str:
    """Its SPDX expression; else what its classifiers, or at last its words, come to."""
    expression = package.metadata.get("License-Expression") or OF_WHAT_IS_INSTALLED.get(package.name)
    if expression:
        return expression
    classifiers = package.metadata.get_all("Classifier") or []
    names = [each.removeprefix(_CLASSIFIER) for each in classifiers if each.startswith(_CLASSIFIER)]
    words = [package.metadata.get("License", "")]
    return " OR ".join(sorted({CALLED.get(name, name) for name in names or words if name}))


def pins(file: Path) -> dict[str, str]:
    """The versions that a compiled file of requirements names."""
    return dict(_PIN.findall(file.read_text()))


def installed() -> list[Package]:
    """Everything that `make setup` and a deployment install. Raises PackageNotFoundError before the setup."""
    in_lambda = pins(root / "functions" / "requirements.txt")
    python = [
        Package(name, version, licence_of(distribution(name)), "PyPI", runs_in_lambda=name in in_lambda)
        for name, version in (pins(root / "requirements.txt") | pins(root / "scripts" / "uv.txt")).items()
        if name != "uv"
    ]
    lock = json.loads((root / "scripts" / "npm" / "package-lock.json").read_text())["packages"]
    tools = [
        Package(path.removeprefix("node_modules/"), each["version"], each.get("license", ""), "npm")
        for path, each in lock.items()
        if path
    ]
    return sorted(python + tools)


def page(packages: Iterable[Package]) -> str:
    """The list as a page."""
    rows = "\n".join(
        f"| {each.name} | {each.version} | {each.licence} | {each.source} | {'yes' if each.runs_in_lambda else ''} |"
        for each in packages
    )
    return f"""# Licences

Made by `python scripts/licences.py` from what the packages say of themselves; `make check` compares it with the pins and
refuses a licence that is not in the list of that script. Not in the table, because they are no part of what is built:
uv (Apache-2.0 OR MIT), which installs the packages, and DynamoDB Local (DynamoDB Local License Agreement of AWS), on which tests run.
Dates and English names in functions/domain/schedules/holidays.jsonl are those of the package holidays (MIT), written by scripts/holiday_dates.py.

| package | version | licence | from | in Lambda |
|---|---|---|---|---|
{rows}
"""


def findings(packages: Iterable[Package], *, stored: str) -> list[str]:
    """What is wrong, one a line. stored: the page as it is in the repository."""
    listed = list(packages)
    refused = [
        f"{each.name} {each.version}: {', '.join(each.refused)} is not allowed" for each in listed if each.refused
    ]
    stale = (
        [] if stored == page(listed) else ["docs/licences.md is not of these pins: run `python scripts/licences.py`"]
    )
    return refused + stale


def main() -> int:
    """Write the page, or check it; the exit code is 1 for a finding."""
    packages = installed()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(packages))
    found = findings(packages, stored=PAGE.read_text())
    print("\n".join(found) or f"licences of {len(packages)} packages: all allowed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
