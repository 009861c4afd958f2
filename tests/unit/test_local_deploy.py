"""The CDK CLI as the local cloud calls it, played by a script that writes down how it was called."""

import json
import os
import re
import sys
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tickwheel.demo.deployment import following
from tickwheel.demo.narrator import Narrator
from tickwheel.errors import DeployFailed, MissingTool, NotACheckout, NotLoopback
from tickwheel.local.checkout import Checkout, find_checkout
from tickwheel.local.deploy import api_endpoint_of, deploy
from tickwheel.local.settings import AwsSettings

LOOPBACK = AwsSettings("http://127.0.0.1:4566")

CDK = f"""#!{sys.executable}
import json, os, pathlib, sys
called = pathlib.Path(os.environ["CALLED"])
call = {{"arguments": sys.argv[1:], "environment": dict(os.environ), "cwd": os.getcwd()}}
called.write_text(called.read_text() + json.dumps(call) + "\\n" if called.exists() else json.dumps(call) + "\\n")
print("working", file=sys.stderr)
if "deploy" in sys.argv:
    if os.environ.get("FAILS"):
        sys.exit("the stack does not like it")
    outputs = {{"Storage": {{"Table": "t"}}, "Scheduler": {{"ApiEndpoint": "http://a.execute-api.localhost:1/"}}}}
    pathlib.Path(sys.argv[sys.argv.index("--outputs-file") + 1]).write_text(json.dumps(outputs))
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    for name in (".venv/bin/python", ".tools/node/bin/node", ".tools/node_modules/.bin/cdk"):
        tool = tmp_path / name
        tool.parent.mkdir(parents=True, exist_ok=True)
        tool.write_text(CDK)
        tool.chmod(0o755)
    monkeypatch.setenv("CALLED", str(tmp_path / "called.jsonl"))
    return Checkout(tmp_path)


def calls(checkout: Checkout) -> list[dict]:
    file = checkout.root / "called.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_the_outputs_of_all_stacks_are_returned(checkout: Checkout) -> None:
    outputs = deploy(checkout, LOOPBACK, folder=checkout.root)

    assert outputs["Table"] == "t"
    assert api_endpoint_of(outputs) == "http://a.execute-api.localhost:1"


def test_the_account_is_bootstrapped_and_then_every_stack_deployed_as_the_local_stage(checkout: Checkout) -> None:
    deploy(checkout, LOOPBACK, folder=checkout.root)

    bootstrap, deployment = (call["arguments"] for call in calls(checkout))
    assert bootstrap[-2:] == ["bootstrap", "aws://000000000000/us-east-1"]
    assert " ".join(deployment).find("deploy --all --require-approval never --context stage=local") >= 0


def test_a_single_stack_is_deployed_without_those_that_it_needs(checkout: Checkout) -> None:
    deploy(checkout, LOOPBACK, folder=checkout.root, bootstrap=False, stack="local/Scheduler")

    (deployment,) = (call["arguments"] for call in calls(checkout))
    assert "--all" not in deployment
    assert " ".join(deployment).find("deploy local/Scheduler --exclusively --require-approval never") >= 0


def test_each_line_of_the_cli_is_progress(checkout: Checkout) -> None:
    lines: list[str] = []

    deploy(checkout, LOOPBACK, folder=checkout.root, progress=lines.append)

    assert lines.count("working") == 2


def test_a_person_sees_each_step_with_its_seconds(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    said = StringIO()
    with Narrator(Console(file=said, width=100)) as narrator:
        deploy(checkout, LOOPBACK, folder=checkout.root, progress=following(narrator))
        monkeypatch.setenv("FAILS", "1")
        with pytest.raises(DeployFailed):
            deploy(checkout, LOOPBACK, folder=checkout.root, progress=following(narrator), bootstrap=False)

    steps = re.findall(r"^✔ (.+?) +\d+\.\d s", said.getvalue(), re.MULTILINE)
    assert steps[:2] == ["cdk bootstrap", "cdk deploy"]


def test_a_step_that_takes_long_says_where_it_is() -> None:
    said = StringIO()
    with Narrator(Console(file=said, width=100), beat_seconds=0.05) as narrator:
        tell = following(narrator)
        tell("deploying the stacks")
        tell("Tickwheel-local-Storage |  3/23 | 12:00:00 PM | CREATE_COMPLETE | AWS::DynamoDB::Table | Timers")
        while "3/23" not in said.getvalue():
            time.sleep(0.01)

    assert re.search(r"cdk deploy +\d+\.\d s  Tickwheel-local-Storage 3/23 AWS::DynamoDB::Table", said.getvalue())


def test_a_real_account_cannot_be_reached_whatever_the_environment_says(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("AWS_PROFILE", "AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "CDK_DEFAULT_ACCOUNT"):
        monkeypatch.setenv(variable, "production")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://production.example.com")

    deploy(checkout, LOOPBACK, folder=checkout.root)

    for call in calls(checkout):
        environment = {name: value for name, value in call["environment"].items() if name.startswith(("AWS_", "CDK_"))}
        assert "production" not in " ".join(environment.values())
        assert environment["AWS_ENDPOINT_URL"] == LOOPBACK.endpoint_url
        assert not Path(environment["AWS_CONFIG_FILE"]).exists()


@pytest.mark.parametrize(
    "address", ["https://sts.amazonaws.com", "http://10.0.0.1:4566", "http://localhost.example.com", "http://localhost"]
)
def test_an_address_that_is_not_a_number_of_the_loopback_is_refused_before_anything_runs(
    checkout: Checkout, address: str
) -> None:
    with pytest.raises(NotLoopback, match="loopback"):
        deploy(checkout, AwsSettings(address), folder=checkout.root)

    assert calls(checkout) == []


def test_a_failed_deployment_shows_the_last_lines(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILS", "1")

    with pytest.raises(DeployFailed, match="`cdk deploy` failed with code 1") as failed:
        deploy(checkout, LOOPBACK, folder=checkout.root)

    assert "the stack does not like it" in failed.value.lines


def test_stacks_without_an_api_are_an_error_that_names_what_there_is() -> None:
    with pytest.raises(DeployFailed, match="they have Table"):
        api_endpoint_of({"Table": "t"})


def test_a_missing_tool_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(MissingTool, match="make setup"):
        deploy(Checkout(tmp_path), LOOPBACK, folder=tmp_path)


def test_the_checkout_is_found_from_a_folder_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cdk.json").touch()
    for name in ("tickwheel", "infra", "deep/er"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "er")

    assert find_checkout().root == tmp_path


def test_outside_a_checkout_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tickwheel.local.checkout.__file__", str(tmp_path / "a" / "b" / "c.py"))

    with pytest.raises(NotACheckout, match=r"clone the repository.*make setup"):
        find_checkout()


def test_the_pinned_tools_come_first_on_the_path(checkout: Checkout) -> None:
    first, *_ = checkout.search_path.split(os.pathsep)

    assert first == str(checkout.root / ".venv" / "bin")
