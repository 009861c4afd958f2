"""Two stages in one account and region: neither counts for the other, and neither has the other's jobs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from infra.scheduler import Tickwheel
from infra.stage import Stage
from testkit.cloudwatch.datapoints import Datapoints
from testkit.deployment import FUNCTIONS, Deployment
from testkit.polling import eventually
from tests.e2e.sink import Sink
from tests.e2e.waiting import reaches, send
from tickwheel.client import Client
from tickwheel.client.jobs import RetryPolicy
from tickwheel.errors import ApiProblem
from tickwheel.local.checkout import find_checkout
from tickwheel.local.deploy import api_endpoint_of, deploy

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e"), pytest.mark.timeout(900)]

NAME = "second"
ROOT = find_checkout().root

APP = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from dataclasses import replace
import aws_cdk as cdk
from {Tickwheel.__module__} import Tickwheel
from {Stage.__module__} import Stage
app = cdk.App()
Tickwheel(app, {NAME!r}, stage=replace(Stage.named("local"), name={NAME!r}))
app.synth()
"""


@pytest.fixture(scope="module")
def second(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A stage beside the one that is deployed, as somebody has it who adds his own to `infra/stage.py`."""
    folder = tmp_path_factory.mktemp("second")
    (folder / "app.py").write_text(APP)
    settings = json.loads((ROOT / "cdk.json").read_text())
    (folder / "cdk.json").write_text(json.dumps({**settings, "app": f"{sys.executable} app.py"}))
    checkout = find_checkout()
    outputs = deploy(checkout, deployment.stack.aws, folder=folder, app_folder=folder, bootstrap=False)
    stack = replace(
        deployment.stack, api_endpoint=api_endpoint_of(outputs), outputs=outputs, home=checkout, folder=folder
    )
    second = Deployment(stack, stage=NAME)
    yield second
    stack.destroy()
    second.close()


@pytest.fixture(scope="module")
def its_client(second: Deployment) -> Iterator[Client]:
    with Client(second.stack.api_endpoint) as client:
        yield client


def counted_by(stage: Deployment) -> dict[str, set[str]]:
    """Names of metrics by their namespaces, as the functions of a stage emit them."""
    data = Datapoints()
    for function in FUNCTIONS:
        data.read(stage.metrics(function))
    found: dict[str, set[str]] = {}
    for metric in data.values:
        found.setdefault(metric.namespace, set()).add(metric.name)
    return found


def test_a_failure_of_one_stage_is_counted_by_that_stage_alone(
    deployment: Deployment, second: Deployment, client: Client, its_client: Client, sink: Sink
) -> None:
    once = RetryPolicy(strategy="fixed", attempts=1)
    failing = send(client, sink.target(fails=math.inf), seconds=0, retry=once)
    reaches(client, failing.job.id, "failed")
    well = send(its_client, sink.target(), seconds=0)
    reaches(its_client, well.job.id, "succeeded")

    here, there = (
        eventually(
            lambda stage=stage: counted_by(stage),
            lambda found: "attempts" in set().union(*found.values()),
            what="its attempts are counted",
        )
        for stage in (deployment, second)
    )

    # The release before had one namespace for all, and its lines are in the log of the first.
    assert set(here) - {"Tickwheel"} == {"Tickwheel/local"}
    assert set(there) == {f"Tickwheel/{NAME}"}
    assert "failed" in here["Tickwheel/local"]
    assert "failed" not in there[f"Tickwheel/{NAME}"]


def test_a_job_of_one_stage_is_unknown_to_the_other(client: Client, its_client: Client, sink: Sink) -> None:
    sent = send(its_client, sink.target(), seconds=0)
    reaches(its_client, sent.job.id, "succeeded")

    with pytest.raises(ApiProblem) as refused:
        client.get(sent.job.id)

    assert refused.value.status == 404
    assert len(sent.target.arrivals) == 1
