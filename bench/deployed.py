"""How many of what is billed by the piece a stage has: counted in its templates, and kept in a file.

`python -m tests.infra.golden` writes the file with the golden templates, and a test compares it with what is synthesised. To
count here would need a synthesis for each estimate.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

FILE = Path(__file__).with_suffix(".json")
_SERVICE = "POWERTOOLS_SERVICE_NAME"
OF_OTHERS = "prod"
"""Whose counts those are of a stage that the file does not have: one that is somebody's own."""


class Counts(TypedDict):
    """Of a stage.

    alarm_metrics: what CloudWatch bills an alarm by, the metrics that it looks at. metrics_of_a_dashboard: of the one that has
    most. traced: functions that begin traces, by the names that their metrics have. limited_consumers, unlimited_consumers: event
    sources of dead letters with a maximum concurrency, and without one.
    """

    alarm_metrics: int
    composite_alarms: int
    dashboards: int
    metrics_of_a_dashboard: int
    keys: int
    secrets: int
    limited_consumers: int
    unlimited_consumers: int
    traced: list[str]


def counted(templates: Iterable[Mapping[str, Any]]) -> Counts:
    """What templates of CloudFormation make."""
    resources = {name: each for template in templates for name, each in template["Resources"].items()}

    def of(kind: str) -> Mapping[str, Mapping[str, Any]]:
        return {name: each.get("Properties", {}) for name, each in resources.items() if each["Type"] == kind}

    alarms, functions = of("AWS::CloudWatch::Alarm").values(), of("AWS::Lambda::Function")
    dashboards, sources = of("AWS::CloudWatch::Dashboard").values(), of("AWS::Lambda::EventSourceMapping").values()
    services = {name: each["Environment"]["Variables"][_SERVICE] for name, each in functions.items()}
    consumers = [each for each in sources if services.get(_function_of(each)) == "dead_letters"]
    return Counts(
        alarm_metrics=sum(sum("MetricStat" in metric for metric in alarm.get("Metrics", ())) or 1 for alarm in alarms),
        composite_alarms=len(of("AWS::CloudWatch::CompositeAlarm")),
        dashboards=len(dashboards),
        metrics_of_a_dashboard=max((_metrics_of(each["DashboardBody"]) for each in dashboards), default=0),
        keys=len(of("AWS::KMS::Key")),
        secrets=len(of("AWS::SecretsManager::Secret")),
        limited_consumers=sum("ScalingConfig" in each for each in consumers),
        unlimited_consumers=sum("ScalingConfig" not in each for each in consumers),
        traced=sorted(
            services[name] for name, each in functions.items() if each.get("TracingConfig", {}).get("Mode") == "Active"
        ),
    )


def read_counts(stage: str) -> Counts:
    """As they were last written; those of OF_OTHERS for a stage that is not among them."""
    written: Mapping[str, Counts] = json.loads(FILE.read_text())
    return written.get(stage) or written[OF_OTHERS]


def written(counts: Mapping[str, Counts]) -> str:
    """The text of the file. counts: by stage."""
    return json.dumps(counts, indent=2) + "\n"


def _function_of(source: Mapping[str, Any]) -> str:
    """The logical name, which a source has as a reference, or in the ARN of an alias."""
    named = source["FunctionName"]
    return named.get("Ref", "") if isinstance(named, dict) else ""


def _metrics_of(body: Any) -> int:
    """Of a dashboard, whose text has references in it."""
    parts = body["Fn::Join"][1] if isinstance(body, dict) else [body]
    widgets = json.loads("".join(part if isinstance(part, str) else "-" for part in parts))["widgets"]
    listed = [each for widget in widgets for each in widget["properties"].get("metrics", ())]
    # What is no text first is an expression, of metrics that are listed beside it.
    return sum(isinstance(each[0], str) for each in listed)
