"""The example of a user's app, deployed as he does: `cdk deploy --all` in its folder, changed, broken, and destroyed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from testkit.deployment import Deployment
from testkit.polling import eventually
from tests.cdk_for_node import install_cdk
from tickwheel.client import Client
from tickwheel.client.schedules import NewSchedule
from tickwheel.errors import ApiProblem, DeployFailed
from tickwheel.local.checkout import find_checkout
from tickwheel.local.deploy import api_endpoint_of, deploy, destroy
from tickwheel.local.settings import AwsSettings

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e"), pytest.mark.timeout(1_800)]

ROOT = find_checkout().root
EXAMPLES = ROOT / "examples"
EXAMPLE = EXAMPLES / "cdk" / "app.py"
_client: Callable[..., Any] = boto3.client

SECOND = """\
        Schedule(self, "Second", scheduler=scheduler, tenant="shop", target=reports, schedule_id="taken", every=3_600)
"""


@dataclass
class App:
    """The app in a folder of its own, on the local cloud."""

    folder: Path
    aws: AwsSettings
    endpoint: str = ""
    deployed: str = ""

    def stand(self) -> None:
        """Have the example deployed as it is, whatever tests before have done to it."""
        text = EXAMPLE.read_text()
        if self.deployed != text:
            self.deploy(text)

    def deploy(self, text: str) -> None:
        self.deployed = ""
        (self.folder / "app.py").write_text(text)
        outputs = deploy(find_checkout(), self.aws, folder=self.folder, app_folder=self.folder, bootstrap=False)
        self.endpoint, self.deployed = api_endpoint_of(outputs), text

    def destroy(self, *stacks: str) -> None:
        self.deployed = ""
        destroy(find_checkout(), self.aws, folder=self.folder, stacks=stacks or ("--all",))

    def aws_client(self, service: Any) -> Any:
        return _client(service, **self.aws.as_kwargs())


@pytest.fixture(scope="module")
def app(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("example")
    settings = json.loads((ROOT / "cdk.json").read_text())
    settings["app"] = f"PYTHONPATH={ROOT} {sys.executable} app.py"
    (folder / "cdk.json").write_text(json.dumps(settings))
    app = App(folder, deployment.stack.aws)
    app.stand()
    yield app
    app.destroy()


@pytest.fixture(scope="module")
def its_client(app: App) -> Iterator[Client]:
    with Client(app.endpoint) as client:
        yield client


def nightly(client: Client) -> Any:
    return client.schedules.get("nightly-report", tenant="shop")


def test_its_schedule_is_there_and_calls_its_queue(app: App, its_client: Client) -> None:
    app.stand()
    assert nightly(its_client).definition["cron"] == "0 3 * * *"

    its_client.schedules.trigger("nightly-report", tenant="shop")

    queue = app.aws_client("sqs")
    url = queue.get_queue_url(QueueName="shop-reports")["QueueUrl"]
    (message,) = eventually(
        lambda: queue.receive_message(QueueUrl=url, WaitTimeSeconds=1).get("Messages", []), bool, what="it was called"
    )
    assert json.loads(message["Body"])["report"] == "sales"


def test_its_function_may_act_for_its_tenant_and_for_no_other(app: App, its_client: Client) -> None:
    app.stand()
    (function,) = (
        each for each in app.aws_client("lambda").list_functions()["Functions"] if each["Handler"] == "index.handler"
    )

    assert list(its_client.tenants.get("shop").principals) == [function["Role"]]
    assert function["Environment"]["Variables"]["TICKWHEEL_ENDPOINT"].rstrip("/") == app.endpoint


def test_a_change_of_the_app_changes_its_schedule_and_one_that_fails_takes_everything_back(
    app: App, its_client: Client
) -> None:
    text = EXAMPLE.read_text()
    app.deploy(text.replace('cron="0 3 * * *"', 'cron="0 4 * * *"'))
    assert nightly(its_client).definition["cron"] == "0 4 * * *"

    its_client.schedules.put(NewSchedule("taken", tenant="shop", cron="@daily", target="https://example.com"))
    broken = text.replace('cron="0 3 * * *"', 'cron="0 5 * * *"').replace("        late = ", f"{SECOND}        late = ")
    with pytest.raises(DeployFailed) as failed:
        app.deploy(broken)

    assert "there is a schedule taken of tenant shop, which this stack has not made" in "\n".join(failed.value.lines)
    assert nightly(its_client).definition["cron"] == "0 4 * * *"
    assert its_client.schedules.get("taken", tenant="shop").definition["cron"] == "@daily"


def test_a_stack_in_typescript_has_the_same(app: App, its_client: Client, tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "cdk-typescript" / "app.ts", tmp_path)
    (tmp_path / "cdk.json").write_text(json.dumps({"app": "node app.ts", "context": {"scheduler": "shop"}}))
    install_cdk(tmp_path / "node_modules")
    checkout, out = find_checkout(), tmp_path / "out"
    out.mkdir()

    deploy(checkout, app.aws, folder=out, app_folder=tmp_path, bootstrap=False)

    monthly = its_client.schedules.get("monthly", tenant="invoices").definition
    assert (monthly["max_runs"], monthly["job"]["retry"]["attempts"]) == (12, 3)
    assert len(its_client.tenants.get("invoices").principals) == 1
    destroy(checkout, app.aws, folder=out)
    with pytest.raises(ApiProblem):
        its_client.schedules.get("monthly", tenant="invoices")


def test_with_the_stack_its_schedule_and_its_principal_go(app: App, its_client: Client) -> None:
    app.stand()

    app.destroy("Shop")

    with pytest.raises(ApiProblem) as missing:
        nightly(its_client)
    assert missing.value.code == "schedule_not_found"
    assert list(its_client.tenants.get("shop").principals) == []


def test_without_the_cdk_a_scheduler_is_two_templates_and_a_stack_uses_it(app: App, tmp_path: Path) -> None:
    """`cdk synth`, the uploads, and what `aws cloudformation create-stack` does."""
    s3, cloudformation = app.aws_client("s3"), app.aws_client("cloudformation")
    s3.create_bucket(Bucket="my-artifacts")
    text = (EXAMPLES / "template" / "app.py").read_text()
    of_its_own = text.replace("stage=stage,", 'stage=__import__("dataclasses").replace(stage, name="plain"),')
    (tmp_path / "app.py").write_text(of_its_own)
    context = {**json.loads((ROOT / "cdk.json").read_text())["context"], "stage": "local"}
    environment = {
        **os.environ,
        **app.aws.as_environment(),
        "PATH": find_checkout().search_path,
        "PYTHONPATH": str(ROOT),
        "BUCKET": "my-artifacts",
        "CDK_OUTDIR": str(tmp_path / "cdk.out"),
        "CDK_CONTEXT_JSON": json.dumps(context),
    }
    subprocess.run([sys.executable, "app.py"], cwd=tmp_path, env=environment, check=True)
    publish = [sys.executable, EXAMPLES / "template" / "publish.py", "cdk.out"]
    told = subprocess.run(publish, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True).stdout
    templates = [line for line in told.splitlines() if line.endswith(".json")]
    assert len(templates) == 2

    def create(name: str, **template: Any) -> dict[str, str]:
        cloudformation.create_stack(StackName=name, Capabilities=["CAPABILITY_IAM"], **template)
        cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 2})
        (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}

    def url_of(part: str) -> str:
        # Templates are named after their stacks; the uploads have hashes for names.
        (template,) = (tmp_path / "cdk.out").glob(f"*{part}*.template.json")
        keys = {
            place["objectKey"]
            for assembly in (tmp_path / "cdk.out").glob("*.assets.json")
            for file in json.loads(assembly.read_text())["files"].values()
            if file["source"]["path"] == template.name
            for place in file["destinations"].values()
        }
        (url,) = (
            url for url in templates if url.rpartition("/tickwheel/")[2] in {key.rpartition("/")[2] for key in keys}
        )
        # The local cloud reads addresses with the bucket in the path alone.
        return url.replace("my-artifacts.s3.amazonaws.com", "s3.amazonaws.com/my-artifacts")

    create("Tickwheel-plain-Storage", TemplateURL=url_of("Storage"))
    scheduler = create("Tickwheel-plain-Scheduler", TemplateURL=url_of("Scheduler"))
    shop = create(
        "shop",
        TemplateBody=(EXAMPLES / "template" / "shop.yaml").read_text(),
        Parameters=[{"ParameterKey": "Stage", "ParameterValue": "plain"}],
    )

    assert shop["Schedule"] == "shop/nightly"
    with Client(scheduler["ApiEndpoint"]) as client:
        assert client.schedules.get("nightly", tenant="shop").definition["job"]["retry"] == {"attempts": 3}
        assert len(client.tenants.get("shop").principals) == 1
    for name in ("shop", "Tickwheel-plain-Scheduler", "Tickwheel-plain-Storage"):
        cloudformation.delete_stack(StackName=name)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 2})
