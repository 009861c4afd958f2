"""The two releases that these tests deploy: the one before, out of the repository's own history, and this one."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from testkit.releases import check_out, link_tools, previous_release
from tickwheel.local.checkout import Checkout, find_checkout

SLOW_MACHINE = (
    ("functions/adapters/clients.py", "TIMEOUT_SECONDS = 2", "TIMEOUT_SECONDS = 8"),
    ("functions/domain/wheel.py", "FIRST_TICK_REACH = timedelta(hours=24)", "FIRST_TICK_REACH = timedelta(minutes=10)"),
)
"""What the release before is given that this one has by itself: on a busy machine it would give stores up that stand still, and
refuse jobs while it looks through a day of empty buckets. A release that has it too is left as it is."""


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
    previous = folder / "previous"
    why_not = check_out(previous_release(ours), previous, ours=ours)
    if not why_not and not (previous / "functions" / "domain" / "far_ring" / "written_shards.py").exists():
        for file, constant, instead in SLOW_MACHINE:
            source = previous / file
            source.write_text(source.read_text().replace(f"\n{constant}\n", f"\n{instead}\n"))
    return Releases(this if why_not else Checkout(previous), this, why_not and f"NOT TESTED: {why_not.upper()}")


def _copy_of(ours: Checkout, root: Path) -> Checkout:
    """A copy of what is deployed, because one of the tests changes it."""
    root.mkdir(parents=True)
    for file in ("app.py", "cdk.json"):
        shutil.copy(ours.root / file, root / file)
    for folder in ("functions", "infra"):
        shutil.copytree(ours.root / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "*.part"))
    link_tools(ours, root)
    return Checkout(root)
