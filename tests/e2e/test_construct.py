"""The example of a user's app, deployed as he does: `cdk deploy --all` in its folder, changed, broken, and destroyed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from testkit.deployment import Deployment
from testkit.polling import eventually
from tickwheel.client import Client
from tickwheel.client.schedules import NewSchedule
from tickwheel.errors import ApiProblem, DeployFailed
from tickwheel.local.checkout import find_checkout
from tickwheel.local.deploy import api_endpoint_of, deploy, destroy
from tickwheel.local.settings import AwsSettings

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e"), pytest.mark.timeout(1_800)]

ROOT = find_checkout().root
EXAMPLE = ROOT / "examples" / "cdk" / "app.py"
SECOND = """\
        Schedule(self, "Second", scheduler=scheduler, tenant="shop", target=reports, schedule_id="taken", every=3_600)
"""


@dataclass
class App:
    """The app in a folder of its own, on the local cloud."""

    folder: Path
    aws: AwsSettings
    endpoint: str = ""

    def deploy(self, text: str) -> None:
        (self.folder / "app.py").write_text(text)
        outputs = deploy(find_checkout(), self.aws, folder=self.folder, app_folder=self.folder, bootstrap=False)
        self.endpoint = api_endpoint_of(outputs)

    def destroy(self, *stacks: str) -> None:
        destroy(find_checkout(), self.aws, folder=self.folder, stacks=stacks or ("--all",))

    def aws_client(self, service: Any) -> Any:
        return boto3.client(service, **self.aws.as_kwargs())


@pytest.fixture(scope="module")
def app(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("example")
    settings = json.loads((ROOT / "cdk.json").read_text())
    settings["app"] = f"PYTHONPATH={ROOT} {sys.executable} app.py"
    (folder / "cdk.json").write_text(json.dumps(settings))
    app = App(folder, deployment.stack.aws)
    app.deploy(EXAMPLE.read_text())
    yield app
    app.destroy()


@pytest.fixture(scope="module")
def its_client(app: App) -> Iterator[Client]:
    with Client(app.endpoint) as client:
        yield client


def nightly(client: Client) -> Any:
    return client.schedules.get("nightly-report", tenant="shop")


def test_its_schedule_is_there_and_calls_its_queue(app: App, its_client: Client) -> None:
    assert nightly(its_client).definition["cron"] == "0 3 * * *"

    its_client.schedules.trigger("nightly-report", tenant="shop")

    queue = app.aws_client("sqs")
    url = queue.get_queue_url(QueueName="shop-reports")["QueueUrl"]
    (message,) = eventually(
        lambda: queue.receive_message(QueueUrl=url, WaitTimeSeconds=1).get("Messages", []), bool, what="it was called"
    )
    assert json.loads(message["Body"])["report"] == "sales"


def test_its_function_may_act_for_its_tenant_and_for_no_other(app: App, its_client: Client) -> None:
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
    broken = text.replace('cron="0 3 * * *"', 'cron="0 5 * * *"').replace(
        "        cloudwatch.Alarm(", f"{SECOND}        cloudwatch.Alarm("
    )
    with pytest.raises(DeployFailed) as failed:
        app.deploy(broken)

    assert "there is a schedule taken of tenant shop, which this stack has not made" in "\n".join(failed.value.lines)
    assert nightly(its_client).definition["cron"] == "0 4 * * *"
    assert its_client.schedules.get("taken", tenant="shop").definition["cron"] == "@daily"


def test_with_the_stack_its_schedule_and_its_principal_go(app: App, its_client: Client) -> None:
    app.deploy(EXAMPLE.read_text())

    app.destroy("Shop")

    with pytest.raises(ApiProblem) as missing:
        nightly(its_client)
    assert missing.value.code == "schedule_not_found"
    assert list(its_client.tenants.get("shop").principals) == []
