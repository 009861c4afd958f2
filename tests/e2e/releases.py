"""The two releases that these tests deploy: the one before, out of the repository's own history, and this one."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tickwheel.local.checkout import Checkout, find_checkout

PREVIOUS = Path(__file__).with_name("previous_release.txt")
"""The commit of the release before. Moved when a release is made: docs/upgrading.md tells how."""

SLOW_MACHINE = (
    ("functions/adapters/clients.py", "TIMEOUT_SECONDS = 2", "TIMEOUT_SECONDS = 8"),
    ("functions/domain/wheel.py", "FIRST_TICK_REACH = timedelta(hours=24)", "FIRST_TICK_REACH = timedelta(minutes=10)"),
)
"""What the release before is given that this one has by itself: on a busy machine it would give stores up that stand still, and
refuse jobs while it looks through a day of empty buckets. A release that has it too is left as it is."""

_TOOLS = (".venv", ".tools")


@dataclass(frozen=True)
class Releases:
    """Two checkouts without history, with the tools of this one.

    previous: this release too where the one before cannot be had; why_not tells the reason then.
    """

    previous: Checkout
    this: Checkout
    why_not: str | None


def check_out_releases(folder: Path) -> Releases:
    """Put both releases below a folder."""
    ours = find_checkout()
    this = _copy_of(ours, folder / "this")
    archive, why_not = archive_of(previous_release(), ours.root)
    if archive is None:
        return Releases(this, this, why_not)
    previous = folder / "previous"
    unpack(archive, previous)
    _link_tools(ours, previous)
    if not (previous / "functions" / "domain" / "far_ring" / "written_shards.py").exists():
        for file, constant, instead in SLOW_MACHINE:
            source = previous / file
            source.write_text(source.read_text().replace(f"\n{constant}\n", f"\n{instead}\n"))
    return Releases(Checkout(previous), this, None)


def previous_release() -> str:
    """The full id of the commit that the release before was made of."""
    return PREVIOUS.read_text().strip()


def archive_of(commit: str, repository: Path, *, paths: Sequence[str] = ()) -> tuple[bytes | None, str | None]:
    """A commit's files as a tar archive; or none, and why, where the repository does not have its history."""
    done = subprocess.run(
        ["git", "-C", str(repository), "archive", "--format=tar", commit, *paths], capture_output=True, check=False
    )
    if done.returncode == 0:
        return done.stdout, None
    said = done.stderr.decode(errors="replace").strip()
    return None, f"NOT TESTED: THE RELEASE BEFORE, {commit[:12]}, IS NOT IN THIS REPOSITORY'S HISTORY ({said})"


def _copy_of(ours: Checkout, root: Path) -> Checkout:
    """A copy of what is deployed, because one of the tests changes it."""
    root.mkdir(parents=True)
    for file in ("app.py", "cdk.json"):
        shutil.copy(ours.root / file, root / file)
    for folder in ("functions", "infra"):
        shutil.copytree(ours.root / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    _link_tools(ours, root)
    return Checkout(root)


def _link_tools(ours: Checkout, root: Path) -> None:
    for tools in _TOOLS:
        (root / tools).symlink_to(ours.root / tools)


def unpack(archive: bytes, folder: Path) -> None:
    """Put the files of an archive below a folder."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, filter="data")
        else:
            # Python 3.11.0 to 3.11.3 (Debian 12 has 3.11.2) know no filter; what is unpacked is our own either way.
            tar.extractall(folder)
