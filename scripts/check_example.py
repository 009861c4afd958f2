"""Check the example of a user's app as the stages are: cdk-nag and cfn-lint over its own stack and both of Tickwheel's."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "cdk" / "app.py"

OF_ITS_OWN = (
    "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]",
    "AwsSolutions-L1",
    "AwsSolutions-SQS3",
    "Serverless-LambdaDLQ",
    "Serverless-LambdaTracing",
    "Serverless-LambdaLatestVersion",
    "Serverless-LambdaDefaultMemorySize",
    "Serverless-LambdaDefaultTimeout",
    "Serverless-SQSRedrivePolicy",
)
"""Findings about the function and the queue of the example, which are short on purpose."""


def synthesise_example(into: Path, *, stage: str = "dev") -> list[Path]:
    """Write the templates of the example, without bundling, and return them. Raises what the synthesis raises, for findings too."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    context |= {"aws:cdk:bundling-stacks": [], "stage": stage}
    usual = cdk.App

    class Checked(usual):
        def __init__(self) -> None:
            super().__init__(context=context, analytics_reporting=False, outdir=str(into))

        def synth(self, **options: Any) -> Any:
            cdk.Validations.of(self).add_plugins(AwsSolutionsChecks(self), ServerlessChecks(self))
            its_own = self.node.find_child("Shop")
            for name in ("Reports", "Orders"):
                for rule in OF_ITS_OWN:
                    finding = cdk.Acknowledgment(id=rule, reason="An example, as short as it can be.")
                    cdk.Validations.of(its_own.node.find_child(name)).acknowledge(finding)
            return super().synth(**options)

    with patch.object(cdk, "App", Checked):
        runpy.run_path(str(EXAMPLE), run_name="__main__")
    return sorted(into.glob("*.template.json"))
