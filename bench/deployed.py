"""How many of what is billed by the piece a stage has: counted in its templates, and kept in a file.

`python -m tests.infra.golden` writes the file with the golden templates, and a test compares it with what is synthesised. To
count here would need a synthesis for each estimate.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

FILE = Path(__file__).with_suffix(".json")


class Counts(TypedDict):
    """Of the stage `prod`, which is watched fully.

    alarm_metrics: what CloudWatch bills an alarm by, the metrics that it looks at.
    """

    alarm_metrics: int
    composite_alarms: int
    dashboards: int
    keys: int
    secrets: int


def counted(templates: Iterable[Mapping[str, Any]]) -> Counts:
    """What templates of CloudFormation make."""
    resources = [resource for template in templates for resource in template["Resources"].values()]
    alarms = [resource["Properties"] for resource in resources if resource["Type"] == "AWS::CloudWatch::Alarm"]

    def number_of(kind: str) -> int:
        return sum(resource["Type"] == kind for resource in resources)

    return Counts(
        alarm_metrics=sum(sum("MetricStat" in metric for metric in alarm.get("Metrics", ())) or 1 for alarm in alarms),
        composite_alarms=number_of("AWS::CloudWatch::CompositeAlarm"),
        dashboards=number_of("AWS::CloudWatch::Dashboard"),
        keys=number_of("AWS::KMS::Key"),
        secrets=number_of("AWS::SecretsManager::Secret"),
    )


def read_counts() -> Counts:
    """As they were last written."""
    return json.loads(FILE.read_text())


def written(counts: Counts) -> str:
    """The text of the file."""
    return json.dumps(counts, indent=2) + "\n"
