"""Check every stage's templates, and those of a stage with a customer's keys: cdk-nag, cfn-lint, roles against recorded calls."""

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks, ServerlessChecks
from cfnlint import ManualArgs
from cfnlint.api import lint_file

root = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root))

from infra.scheduler import Tickwheel  # noqa: E402  a script's folder is on the path, not the repository
from infra.stage import OWN_KEY, STAGES, Stage  # noqa: E402
from scripts.check_example import synthesise_example  # noqa: E402
from scripts.least_privilege.calls import kept  # noqa: E402
from scripts.least_privilege.report import reports_of  # noqa: E402
from scripts.synthesis import Templates  # noqa: E402

IGNORED = ["W3005"]
"""The CDK lets a function depend on the whole of its role, policies included: redundant, and right."""


ALL_STAGES = {stage.name: stage for stage in STAGES} | {
    "dev with a key of its own": replace(Stage.named("dev"), customer_key=OWN_KEY),
    "dev with a given key": replace(
        Stage.named("dev"),
        customer_key="arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab",
        former_keys=("arn:aws:kms:us-east-1:111122223333:key/9876abcd-12ab-34cd-56ef-1234567890ab",),
    ),
}


class Rejected(Exception):
    """The findings, one a line."""


def synthesise(stage: Stage, *, into: Path) -> list[Path]:
    """Return the templates of a stage that cdk-nag accepts, with the context of cdk.json and without bundling."""
    context = json.loads((root / "cdk.json").read_text())["context"] | {"aws:cdk:bundling-stacks": []}
    app = cdk.App(context=context, analytics_reporting=False, outdir=str(into))
    Tickwheel(app, stage.name, stage=stage)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    try:
        app.synth()
    except RuntimeError as error:  # all that jsii tells: the report itself is on stderr
        if "ValidationFailed" not in str(error):
            raise
        raise Rejected("cdk-nag: see the report above") from error
    return sorted(into.glob("*.template.json"))


def lint(templates: list[Path]) -> None:
    """Raise `Rejected` with what cfn-lint finds."""
    findings = [
        f"{match.rule.id} {template.name}:{match.linenumber} {match.message}"
        for template in templates
        for match in lint_file(template, ManualArgs(ignore_checks=IGNORED, regions=["us-east-1"]))
    ]
    if findings:
        raise Rejected("\n".join(findings))


def privileges(templates: list[Path]) -> list[str]:
    """A line for each function. Raises `Rejected` with what its role allows too much, and too little."""
    scheduler, storage = (json.loads(template.read_text()) for template in templates)  # by their names
    reports = reports_of(Templates(storage=storage, scheduler=scheduler), kept())
    findings = [finding for report in reports for finding in report.findings]
    if findings:
        raise Rejected("\n".join([*map(str, reports), *findings]))
    return list(map(str, reports))


def main() -> int:
    """Check each stage; the exit code is the number of stages with findings, and one for the example."""
    rejected = 0
    for name, stage in ALL_STAGES.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                templates = synthesise(stage, into=Path(folder))
                lint(templates)
                reports = privileges(templates)
            except Rejected as findings:
                rejected += 1
                print(f"templates of {name}: rejected\n{findings}", flush=True)
            else:
                count = sum(len(json.loads(template.read_text())["Resources"]) for template in templates)
                print(f"templates of {name}: {count} resources, cdk-nag and cfn-lint clean", flush=True)
                print("\n".join(f"  {report}" for report in reports), flush=True)
    return rejected + example_rejected()


def example_rejected() -> bool:
    """Whether the example of a user's app has findings."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            lint(synthesise_example(Path(folder)))
        except (Rejected, RuntimeError) as findings:
            print(f"templates of the example: rejected\n{findings}", flush=True)
            return True
    print("templates of the example: cdk-nag and cfn-lint clean", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
