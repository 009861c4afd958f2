"""`make release VERSION=0.2.0`: a version, its section of the changelog, its wheels and bills of materials, and a tag. Nothing is published."""

import re
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

from scripts.distribution.engine import ROOT, version

_VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)", re.ASCII)
_UNRELEASED = "## Unreleased\n"


class NotReleasable(ValueError):
    """What stands in the way of a release, and what to do."""


def released(changelog: str, new: str, *, on: date) -> str:
    """The changelog with what was unreleased under a version and a day. Raises NotReleasable."""
    _, found, rest = changelog.partition(_UNRELEASED)
    if not found or not re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0].strip():
        raise NotReleasable("CHANGELOG.md says nothing below `## Unreleased`: write what is new")
    return changelog.replace(_UNRELEASED, f"{_UNRELEASED}\n## {new} - {on}\n", 1)


def with_version(pyproject: str, new: str) -> str:
    """The project file with another version, also where one wheel asks for the other. Raises NotReleasable."""
    old = re.search(r'^version = "(.*)"$', pyproject, re.MULTILINE)
    if old is None or not _VERSION.fullmatch(new) or _numbers(new) <= _numbers(old[1]):
        raise NotReleasable(f"VERSION is {new!r}: use three numbers such as 1.2.3, higher than {old and old[1]}")
    return pyproject.replace(old[0], f'version = "{new}"', 1).replace(f'=={old[1]}"]', f'=={new}"]')


def release(new: str) -> None:
    """Write, build, commit and tag. Raises NotReleasable before anything is written."""
    if _git("status", "--porcelain"):
        raise NotReleasable("there are changes that are not committed: commit them first, or `git stash`")
    if _git("tag", "--list", f"v{new}"):
        raise NotReleasable(f"there is a tag v{new} already: choose a higher VERSION")
    pyproject, changelog = ROOT / "pyproject.toml", ROOT / "CHANGELOG.md"
    texts = {
        pyproject: with_version(pyproject.read_text(), new),
        changelog: released(changelog.read_text(), new, on=datetime.now(UTC).date()),
    }
    for path, text in texts.items():
        path.write_text(text)
    try:
        subprocess.run(["make", "--no-print-directory", "dist", "sbom"], cwd=ROOT, check=True)
    except (subprocess.CalledProcessError, KeyboardInterrupt):
        _git("checkout", "--", *map(str, texts))
        raise
    for bill in (ROOT / ".build" / "sbom").glob("*.cdx.json"):
        shutil.copy(bill, ROOT / "dist" / f"tickwheel-{new}-{bill.name}")
    _git("commit", "--quiet", "--message", f"release: {new}", *map(str, texts))
    _git("tag", "--annotate", f"v{new}", "--message", f"Tickwheel {new}")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def main() -> int:
    """Release the version that the command names."""
    if len(sys.argv) != 2:  # noqa: PLR2004
        print("use `make release VERSION=1.2.3`", file=sys.stderr)
        return 2
    before, new = version(), sys.argv[1]
    try:
        release(new)
    except NotReleasable as error:
        print(f"not released: {error}", file=sys.stderr)
        return 1
    print(
        f"{before} -> {new}: committed and tagged v{new}, with wheels and bills of materials in dist/. To publish it:"
    )
    print(f"  git push --follow-tags && twine upload {Path('dist', '*.whl')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
