"""`python -m scripts.distribution`: both wheels in dist/, as they are published."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.distribution.engine import ROOT, relocate, write_source

FOLDER = ROOT / "dist"
_EPOCH = "1577836800"
"""Of each file in a wheel, so that the same sources make the same bytes."""


def main(folder: Path = FOLDER) -> int:
    """Build, check what an index would refuse, and name what was built."""
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        engine, client = Path(scratch, "engine"), Path(scratch, "client")
        engine.mkdir()
        write_source(engine)
        shutil.copytree(ROOT / "tickwheel", client / "tickwheel", ignore=shutil.ignore_patterns("__pycache__"))
        relocate(client)  # `tickwheel.cdk` and `tickwheel.testing` are doors to the engine
        for name in ("LICENSE", "README.md", "pyproject.toml"):
            shutil.copy(ROOT / name, client)
        for source in (client, engine):
            _build(source, folder)
    built = sorted(folder.glob("*.whl"))
    for wheel in built:
        print(
            f"{wheel.relative_to(Path.cwd()) if wheel.is_relative_to(Path.cwd()) else wheel}  {wheel.stat().st_size:,} bytes"
        )
    return subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *built], check=False).returncode


def _build(source: Path, folder: Path) -> None:
    uv = ROOT / ".tools" / "bin" / "uv"
    command = [
        uv,
        "build",
        "--quiet",
        "--wheel",
        "--no-build-isolation",
        "--python",
        sys.executable,
        "--out-dir",
        folder,
        source,
    ]
    subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": _EPOCH})


if __name__ == "__main__":
    sys.exit(main())
