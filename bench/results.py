"""The figures as files: what was measured, when, with which versions, on what kind of machine."""

import json
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("results")

_PACKAGES = ("tickwheel", "boto3", "ministack", "aws-lambda-powertools")


def write_result(name: str, result: Mapping[str, Any]) -> None:
    """Writes one file, which replaces the one before."""
    FOLDER.mkdir(exist_ok=True)
    facts = {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), **{package: version(package) for package in _PACKAGES}},
        "machine": {"cpus": os.cpu_count(), "architecture": platform.machine(), "system": platform.system()},
    }
    (FOLDER / name).write_text(json.dumps({**facts, **result}, indent=2) + "\n")
