"""The comparison is part of every test run, however pytest was started."""

import os
import subprocess
import sys
from pathlib import Path

from tests.least_privilege.plugin import FOLDER

ROOT = Path(__file__).resolve().parents[2]


def test_a_run_without_pytest_s_cache_comes_to_its_end() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/unit/test_instants.py"]
    # Its own run, and no part of this one.
    environment = {name: value for name, value in os.environ.items() if name != FOLDER}

    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stdout + run.stderr
