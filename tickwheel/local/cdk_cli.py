"""The CDK CLI where there is no checkout: npm installs what the engine's lock file names, once for each lock file."""

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


def installed_cli(cache: Path, *, node: Path, locked: Path, progress: Progress = quietly) -> Path:
    """The program `cdk`, after an installation where it is not there yet. Raises MissingTool.

    cache: a folder that takes it. node: with its npm beside it. locked: the folder of the lock file.
    """
    digest = hashlib.sha256((locked / _LOCK).read_bytes()).hexdigest()[:16]
    folder = cache / f"cdk-{digest}"
    cli = folder / "node_modules" / ".bin" / "cdk"
    if cli.exists():
        return cli
    progress("installing the CDK CLI, once")
    cache.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: under another name until npm is done, also where two commands install at once.
    with tempfile.TemporaryDirectory(dir=cache, prefix="part-", ignore_cleanup_errors=True) as scratch:
        part = Path(scratch, "cdk")
        part.mkdir()
        for name in _FILES:
            shutil.copy(locked / name, part)
        _npm(node, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=part)
        try:
            part.rename(folder)
        except OSError:
            if not cli.exists():  # otherwise the other one was faster
                raise
    return cli


def _npm(node: Path, *arguments: str, cwd: Path) -> None:
    # By its script: the wheel's `bin/npm` cannot find its own library.
    npm = node.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    environment = os.environ | {"PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    done = subprocess.run(  # noqa: S603
        [node, npm, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[-400:]
        raise MissingTool(f"the CDK CLI could not be installed by npm, which needs its registry: {said}")
