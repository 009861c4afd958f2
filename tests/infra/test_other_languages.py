"""What who writes no Python copies: a stack in TypeScript, which Node runs as it is, and a template."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cfnlint import ManualArgs
from cfnlint.api import lint_file

from tests.cdk_for_node import install_cdk

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typescript")
    shutil.copy(EXAMPLES / "cdk-typescript" / "app.ts", folder)
    install_cdk(folder / "node_modules")
    environment = {**os.environ, "CDK_OUTDIR": "out", "CDK_CONTEXT_JSON": json.dumps({"scheduler": "dev"})}
    subprocess.run(["node", "app.ts"], cwd=folder, env=environment, check=True)
    return folder / "out" / "Invoices.template.json"


def resource(template: dict[str, Any], kind: str) -> dict[str, Any]:
    (found,) = (each["Properties"] for each in template["Resources"].values() if each["Type"] == kind)
    return found


def test_a_stack_in_typescript_has_the_resources_that_the_python_constructs_make(made: Path) -> None:
    template = json.loads(made.read_text())

    schedule = resource(template, "Custom::TickwheelSchedule")
    assert schedule["ServiceToken"] == {"Fn::ImportValue": "Tickwheel-dev-Resources"}
    assert (schedule["Tenant"], schedule["ScheduleId"], schedule["ServiceTimeout"]) == ("invoices", "monthly", "600")
    assert json.loads(schedule["Definition"])["max_runs"] == 12
    principal = resource(template, "Custom::TickwheelPrincipal")
    assert set(principal) == {"ServiceToken", "ServiceTimeout", "Tenant", "Principal"}
    policy = json.dumps(resource(template, "AWS::IAM::Policy")["PolicyDocument"])
    assert '{"Fn::ImportValue": "Tickwheel-dev-ApiId"}, "/*/POST/v1/jobs"' in policy


def test_both_are_templates_without_findings(made: Path) -> None:
    for template in (made, EXAMPLES / "template" / "shop.yaml"):
        assert lint_file(template, ManualArgs(ignore_checks=["W3005"], regions=["us-east-1"])) == []
