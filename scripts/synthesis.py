"""The templates of a stage as data."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import aws_cdk as cdk

from infra.scheduler import Tickwheel
from infra.stage import Stage

ROOT = Path(__file__).resolve().parents[1]
FUNCTIONS = ("api", "scanner", "worker", "sweeper", "operations", "dead_letters")

Template = dict[str, Any]
Resource = dict[str, Any]


@dataclass(frozen=True)
class Templates:
    """Both stacks of a stage."""

    storage: Template
    scheduler: Template

    def of_type(self, kind: str) -> dict[str, Resource]:
        """The resources of a CloudFormation type, by logical id."""
        both = self.storage["Resources"] | self.scheduler["Resources"]
        return {name: resource for name, resource in both.items() if resource["Type"] == kind}

    def functions(self) -> dict[str, Resource]:
        """The functions by their short name."""
        by_handler = {
            function["Properties"]["Handler"].split(".")[1]: function
            for function in self.of_type("AWS::Lambda::Function").values()
        }
        assert set(by_handler) == set(FUNCTIONS)
        return by_handler

    def environment(self, function: str) -> dict[str, Any]:
        """The variables of a function."""
        return self.functions()[function]["Properties"]["Environment"]["Variables"]

    def statements(self, function: str) -> list[dict[str, Any]]:
        """What the role of a function allows."""
        role = self.functions()[function]["Properties"]["Role"]["Fn::GetAtt"][0]
        return [
            statement
            for policy in self.of_type("AWS::IAM::Policy").values()
            if {"Ref": role} in policy["Properties"]["Roles"]
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        ]


def synthesise(
    stage: Stage,
    *,
    handlers: Path | None = None,
    handlers_environment: Mapping[str, str] = MappingProxyType({}),
    **context: str,
) -> Templates:
    """Synthesise as the CDK CLI does, with the context of cdk.json and this, but bundle nothing. handlers: a user's folder of them."""
    kept = json.loads((ROOT / "cdk.json").read_text())["context"]
    with tempfile.TemporaryDirectory() as folder:
        app = cdk.App(
            context={**kept, **context, "aws:cdk:bundling-stacks": []}, analytics_reporting=False, outdir=folder
        )
        tickwheel = Tickwheel(
            app, stage.name, stage=stage, handlers=handlers, handlers_environment=handlers_environment
        )
        assembly = app.synth()
        return Templates(
            storage=assembly.get_stack_by_name(tickwheel.storage.stack_name).template,
            scheduler=assembly.get_stack_by_name(tickwheel.scheduler.stack_name).template,
        )
