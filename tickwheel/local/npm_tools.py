"""Tools that are on npm, where there is no checkout: npm installs what a lock file of the engine names, once for each lock file."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tickwheel.errors import MissingTool
from tickwheel.local.home import Progress, quietly

_LOCK = "package-lock.json"
_FILES = ("package.json", _LOCK)


def installed(locked: Path, wanted: str, *, cache: Path, node: Path, what: str, progress: Progress = quietly) -> Path:
    """A file of a tool, after an installation where it is not there yet. Raises MissingTool.

    locked: the folder of the lock file, which has the hash of each archive. wanted: the file, below `node_modules`.
    cache: a folder that takes it. node: with its npm beside it. what: the tool, for people.
    """
    digest = hashlib.sha256((locked / _LOCK).read_bytes()).hexdigest()[:16]
    folder = cache / f"{locked.name}-{digest}"
    file = folder / "node_modules" / wanted
    if file.exists():
        return file
    progress(f"installing {what}, once")
    cache.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: under another name until npm is done, also where two commands install at once.
    with tempfile.TemporaryDirectory(dir=cache, prefix="part-", ignore_cleanup_errors=True) as scratch:
        part = Path(scratch, "part")
        part.mkdir()
        for name in _FILES:
            shutil.copy(locked / name, part)
        _install(part, node=node, what=what)
        try:
            part.rename(folder)
        except OSError:
            if not file.exists():  # otherwise the other one was faster
                raise
    return file


def _install(folder: Path, *, node: Path, what: str) -> None:
    # By its script: the wheel's `bin/npm` cannot find its own library.
    npm = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    environment = os.environ | {"PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    done = subprocess.run(  # noqa: S603
        [node, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-400:]
        raise MissingTool(f"{what} could not be installed by npm, which needs its registry: {said}")
