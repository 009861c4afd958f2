"""The golden templates: what is deployed changes on purpose, and a reviewer sees it.

Refresh them with `python -m tests.infra.golden`.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

from bench.deployed import FILE, Counts, counted, written
from infra.stage import STAGES, Stage
from scripts.synthesis import Template, Templates, synthesise

FOLDER = Path(__file__).parent / "templates"
ASSET_HASH = re.compile(r"[0-9a-f]{64}")


def rendered(template: Template) -> str:
    """A template as text, without what changes with every line of code."""
    return ASSET_HASH.sub("<asset>", json.dumps(template, indent=1, sort_keys=True)) + "\n"


def golden_files(synthesised: Callable[[Stage], Templates]) -> dict[Path, str]:
    """The golden files and what they should hold.

    All of `dev`, which is watched for the essential; what watches `prod`; what each stage is billed for by the piece; and of `scale`
    what is made for its load.
    """
    dev, prod, scale = (synthesised(Stage.named(name)) for name in ("dev", "prod", "scale"))
    return {
        FOLDER / "dev-storage.json": rendered(dev.storage),
        FOLDER / "dev-scheduler.json": rendered(dev.scheduler),
        FOLDER / "scale-throughput.json": rendered(
            scale.of_type("AWS::DynamoDB::Table") | scale.of_type("AWS::Lambda::EventSourceMapping")
        ),
        FOLDER / "prod-watching.json": rendered(
            prod.of_type("AWS::CloudWatch::Alarm")
            | prod.of_type("AWS::CloudWatch::CompositeAlarm")
            | prod.of_type("AWS::CloudWatch::Dashboard")
        ),
        FILE: written({stage.name: _counts(synthesised(stage)) for stage in STAGES if not stage.emulated}),
    }


def _counts(templates: Templates) -> Counts:
    return counted([templates.storage, templates.scheduler])


if __name__ == "__main__":
    for file, text in golden_files(synthesise).items():
        file.write_text(text)
        print(f"wrote {file.relative_to(Path.cwd())}")  # noqa: T201
