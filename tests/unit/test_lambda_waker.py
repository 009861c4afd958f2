import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from functions.adapters.lambda_waker import LambdaWaker

ASKED = {"FunctionName": "operations", "InvocationType": "Event", "Payload": b"{}"}


@pytest.fixture
def client():
    return boto3.client("lambda", region_name="us-east-1")


def test_the_function_is_started_without_waiting_for_what_it_does(client):
    with Stubber(client) as stub:
        stub.add_response("invoke", {"StatusCode": 202}, ASKED)
        LambdaWaker(client, "operations").wake()

        stub.assert_no_pending_responses()


def test_a_call_that_fails_is_the_caller_s_to_judge(client):
    with Stubber(client) as stub:
        stub.add_client_error("invoke", "ResourceNotFoundException", http_status_code=404)
        with pytest.raises(ClientError):
            LambdaWaker(client, "operations").wake()
