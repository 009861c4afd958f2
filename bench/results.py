"""The figures as files: what was measured, when, with which versions, on what kind of machine.

A run leaves the checkout as it was: `NEWEST` is no part of it. What the pages and the cost model quote is `FOLDER`.
"""

import json
import os
import platform
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

FOLDER = Path(__file__).with_name("results")
NEWEST = FOLDER.parent.parent / ".build" / "bench"

_PACKAGES = ("tickwheel", "boto3", "ministack", "aws-lambda-powertools")


def write_result(name: str, result: Mapping[str, Any]) -> None:
    """Write one file of the newest run."""
    NEWEST.mkdir(parents=True, exist_ok=True)
    facts = {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), **{package: version(package) for package in _PACKAGES}},
        "machine": {"cpus": os.cpu_count(), "architecture": platform.machine(), "system": platform.system()},
    }
    (NEWEST / name).write_text(json.dumps({**facts, **result}, indent=2) + "\n")


def print_table(console: Console, title: str, *, of: str, figure: str, rows: Mapping[str, str]) -> None:
    """A figure a row. of, figure: the headings."""
    table = Table(title=title, box=SIMPLE)
    table.add_column(of)
    table.add_column(figure, justify="right")
    for row in rows.items():
        table.add_row(*row)
    console.print(table)


def forget() -> None:
    """Remove what the run before has written."""
    shutil.rmtree(NEWEST, ignore_errors=True)


def keep() -> list[str]:
    """Let the newest figures replace those of the repository; the names of their files."""
    written = sorted(NEWEST.glob("*.json"))
    for file in written:
        shutil.copy(file, FOLDER / file.name)
    return [file.name for file in written]
