"""What becomes of files of other people in an import: `python -m scripts.import_table FOLDER`.

A line for each source of `tickwheel import`: how many files and schedules, how many are carried over, how many of those fire at another time or have remarks, and the reasons of
those that are not. Nothing is stored. The folder is as `tests/unit/test_import_sources.py` reads it.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from tickwheel.imports.plan import Plan, Wanted, plan_of
from tickwheel.imports.reading import read_files
from tickwheel.imports.registry import SOURCES

FOLDERS: Mapping[str, str] = {
    "crontab": "crontab/*",
    "kubernetes": "kubernetes-cronjob/*",
    "eventbridge": "eventbridge-cloudformation/*",
    "serverless": "serverless/*",
    "django-celery-beat": "django-celery-beat/*",
    "quartz": "quartz-spring.jsonl",
    "spring": "quartz-spring.jsonl",
    "github": "github-workflows.jsonl",
}
_TOGETHER = frozenset({"django-celery-beat"})
"""Sources whose files refer to each other."""

_WORDS = re.compile(r"'[^']*'|\d+|(?<=id )\S+|(?<=of )/\S+")


def main() -> None:
    """Print the table, and below it the reasons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    console = Console(width=160)
    names = ("source", "files", "schedules", "taken", "fire otherwise", "with remarks", "switched off", "refused")
    table = Table(*names, title="Schedules of other people")
    reasons: list[tuple[str, str, int]] = []
    for source, pattern in FOLDERS.items():
        plans = [_plan(source, files) for files in _groups(source, sorted(folder.glob(pattern)))]
        planned = [each for plan in plans for each in plan.planned]
        left_out = [each for plan in plans for each in plan.left_out]
        differ = sum(bool(each.differing or each.there != each.here) for each in planned if each.there)
        remarked = sum(bool(each.remarks) for each in planned)
        off = [each for each in left_out if each.is_expected]
        refused = [each for each in left_out if not each.is_expected]
        counts = (len(planned) + len(left_out), len(planned), differ, remarked, len(off), len(refused))
        table.add_row(source, f"{len(sorted(folder.glob(pattern)))}", *map(str, counts))
        found = Counter(_WORDS.sub("…", each.reason) for each in refused)
        reasons += [(source, reason, count) for reason, count in found.most_common()]
    console.print(table)
    for source, reason, count in reasons:
        console.print(f"{source}: {count} x {reason}", highlight=False, markup=False, soft_wrap=True)


def _groups(source: str, files: list[Path]) -> Iterator[list[Path]]:
    if source == "github" and files:
        with TemporaryDirectory() as place:
            yield from ([each] for each in _workflows(files[0], Path(place)))
    elif source in _TOGETHER:
        yield files
    else:
        yield from ([file] for file in files)


def _workflows(listed: Path, place: Path) -> Iterator[Path]:
    """The expressions of a list, each as a workflow has it."""
    for number, line in enumerate(listed.read_text(encoding="utf-8").splitlines()):
        file = place / f"workflow-{number}.yml"
        file.write_text(json.dumps({"on": {"schedule": [{"cron": json.loads(line)["cron"]}]}}), encoding="utf-8")
        yield file


def _plan(source: str, files: list[Path]) -> Plan:
    wanted = Wanted(tenant="acme", now=datetime.now(UTC), target="handler:run", timezone="Europe/Berlin")
    return plan_of(read_files(files, SOURCES[source]), wanted)


if __name__ == "__main__":
    main()
