"""The same code gives the same templates and the same assets, byte for byte: else each deployment would change something."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from infra.stage import STAGES
from scripts.synthesis import ROOT

COMPARED = ("*.template.json", "*.assets.json")


def checked_out(folder: Path) -> Path:
    """The application in a folder of its own, without anything that running it leaves behind."""
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "app.py", folder)
    for part in ("functions", "infra"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.part"))
    return folder


def synthesising(checkout: Path, stage: str, *, hash_seed: str) -> subprocess.Popen[bytes]:
    """As the CDK CLI runs the application, in a process of its own, but without bundling."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    context |= {"stage": stage, "aws:cdk:bundling-stacks": []}
    environment = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "CDK_CONTEXT_JSON": json.dumps(context),
        "CDK_OUTDIR": str(checkout / "out"),
    }
    return subprocess.Popen([sys.executable, "app.py"], cwd=checkout, env=environment)


def files_of(checkout: Path) -> dict[str, bytes]:
    """What was written. Where nothing is bundled, the layer's source stays where it is, and its place is named."""
    here = str(checkout).encode()
    return {
        file.name: file.read_bytes().replace(here, b"") for kind in COMPARED for file in (checkout / "out").glob(kind)
    }


@pytest.mark.long
@pytest.mark.parametrize("stage", [stage.name for stage in STAGES])
def test_another_process_folder_and_order_of_hashes_make_no_difference(stage: str, tmp_path: Path) -> None:
    checkouts = [checked_out(tmp_path / "a"), checked_out(tmp_path / "somewhere" / "else")]
    running = [synthesising(checkout, stage, hash_seed=str(seed)) for seed, checkout in enumerate(checkouts, 1)]
    assert [process.wait() for process in running] == [0, 0]

    first, second = map(files_of, checkouts)
    assert len(first) == 2 * len(COMPARED)
    assert b'"S3Key"' in b"".join(first.values())
    assert first == second
