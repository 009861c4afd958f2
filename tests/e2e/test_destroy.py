"""`cdk destroy` of a throw-away stage. It runs last; what is left of processes is asserted when the cloud has stopped."""

import httpx
import pytest
from botocore.credentials import Credentials

from testkit.deployment import Deployment
from tickwheel.client.endpoint import LoopbackTransport
from tickwheel.client.signing import SigV4

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]


def test_destroy_removes_the_stage_and_leaves_the_rest_of_the_account_alone(deployment: Deployment) -> None:
    deployment.stack.destroy()

    stacks = deployment.client("cloudformation").describe_stacks()["Stacks"]
    names = {stack["StackName"] for stack in stacks if stack["StackStatus"] != "DELETE_COMPLETE"}
    assert "CDKToolkit" in names
    assert not names & set(deployment.stacks)
    assert deployment.client("dynamodb").list_tables()["TableNames"] == []
    assert deployment.client("sqs").list_queues().get("QueueUrls", []) == []
    assert deployment.client("lambda").list_functions()["Functions"] == []
    signed = SigV4(Credentials("test", "test"), region="us-east-1")
    with httpx.Client(transport=LoopbackTransport(httpx.HTTPTransport()), timeout=30) as http:
        address = f"{deployment.stack.api_endpoint}/openapi.json"
        assert http.get(address, auth=signed).status_code in (403, 404)
