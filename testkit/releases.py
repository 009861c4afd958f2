"""Another release beside this one: out of the repository's own history, with the tools of this checkout."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

from tickwheel.local.checkout import Checkout

PREVIOUS = Path("tests") / "e2e" / "previous_release.txt"
"""The commit of the release before. Moved when a release is made: docs/upgrading.md tells how."""

_TOOLS = (".venv", ".tools")


def previous_release(ours: Checkout) -> str:
    """The full id of the commit that the release before was made of."""
    return (ours.root / PREVIOUS).read_text().strip()


def check_out(revision: str, folder: Path, *, ours: Checkout) -> str | None:
    """Put the files of a revision below a folder, without history; or say why the repository does not have it."""
    archive, why_not = archive_of(revision, ours.root)
    if archive is None:
        return why_not
    unpack(archive, folder)
    link_tools(ours, folder)
    return None


def archive_of(revision: str, repository: Path, *, paths: Sequence[str] = ()) -> tuple[bytes | None, str | None]:
    """A revision's files as a tar archive; or none, and why, where the repository does not have its history."""
    # `--end-of-options`: a name that begins with a dash is none of git's options.
    command = ["git", "-C", str(repository), "archive", "--format=tar", "--end-of-options", revision, *paths]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode == 0:
        return done.stdout, None
    said = done.stderr.decode(errors="replace").strip()
    return None, f"the release before, {revision[:12]}, is not in this repository's history ({said})"


def link_tools(ours: Checkout, root: Path) -> None:
    """Let a copy be deployed with what is installed here."""
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
