"""`python -m bench.customer_key`: what a customer's key costs a month, from the templates of a stage that has one.

Services keep what they have opened for a while, for each role: so a month has at most so many requests, whatever the
number of jobs. SQS's sum is from its developer guide: (month / reuse) * (2 * producers + consumers) for a queue; whoever sends counts
here as a consumer too.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from rich.console import Console
from rich.table import Table

from bench.prices import read_prices
from infra.encryption import DATA_KEY_REUSE
from infra.scheduler import Tickwheel
from infra.stage import OWN_KEY, Stage

MONTH_S = 30 * 24 * 3_600
CACHED_S = 300
"""How long DynamoDB keeps a table's key for a caller, and CloudWatch Logs that of a group; taken for S3 and the secret too."""

Count = Mapping[str, float]


def main() -> None:
    """Print the requests of a month and their price, each kind of thing apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", default="prod")
    parser.add_argument(
        "--environments", type=int, default=100, help="of workers that run all month: each reads the secret"
    )
    asked = parser.parse_args()
    stage = replace(Stage.named(asked.stage), customer_key=OWN_KEY)
    requests, prices = requests_a_month(_resources(stage), environments=asked.environments), read_prices()
    table = Table("what", "requests a month", "USD a month", title=f"A customer's key, stage {stage.name}")
    for what, count in requests.items():
        table.add_row(what, f"{count:,.0f}", f"{count * prices['kms_request'] / 1e6:.2f}")
    total = sum(requests.values())
    table.add_row("the key itself", "", f"{prices['kms_key'] / 1e6:.2f}")
    usd = (total * prices["kms_request"] + prices["kms_key"]) / 1e6
    table.add_row("all, at most", f"{total:,.0f}", f"{usd:.2f}", style="bold")
    Console().print(table)
    Console().print(f"{total / MONTH_S:.2f} requests a second on average")


def requests_a_month(resources: Mapping[str, Any], *, environments: int) -> Count:
    """At most so many requests: with every function busy all the time."""
    uses = list(_uses(resources))
    often = MONTH_S / CACHED_S
    queues = MONTH_S / DATA_KEY_REUSE.to_seconds()
    log_groups = sum(each["Type"] == "AWS::Logs::LogGroup" for each in resources.values())
    return {
        "tables": often * len({(role, thing) for role, service, _, thing in uses if service == "dynamodb"}),
        "queues": queues
        * sum(2 if use == "kms:GenerateDataKey" else 1 for _, service, use, _ in uses if service == "sqs"),
        "payloads": often * len({(role, thing) for role, service, _, thing in uses if service == "s3"}),
        "secret": often * environments,
        "log groups": often * log_groups,
    }


def _uses(resources: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Role, service, action and thing of each use that a role has for the key."""
    for policy in resources.values():
        if policy["Type"] != "AWS::IAM::Policy":
            continue
        role = json.dumps(policy["Properties"]["Roles"])
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            condition = statement.get("Condition", {}).get("StringEquals", {})
            service = json.dumps(condition.get("kms:ViaService", "")).partition(".")[0].rpartition('"')[2]
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            for key, things in condition.items():
                if key.startswith("kms:EncryptionContext:"):
                    yield from (
                        (role, service, action, json.dumps(thing))
                        for action in actions
                        for thing in (things if isinstance(things, list) else [things])
                    )


def _resources(stage: Stage) -> Mapping[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        app = cdk.App(context={"aws:cdk:bundling-stacks": []}, analytics_reporting=False, outdir=folder)
        Tickwheel(app, stage.name, stage=stage)
        app.synth()
        found: dict[str, Any] = {}
        for template in Path(folder).glob("*.template.json"):
            found |= json.loads(template.read_text())["Resources"]
        return found


if __name__ == "__main__":
    main()
