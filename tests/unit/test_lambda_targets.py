"""Lambda functions as targets: the very requests, what each answer means, and what becomes of an AWS that fails."""

import base64
import io
import json
import socket
import time
import zipfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import boto3
import pytest
from moto import mock_aws

from functions.adapters.targets.aws import AwsCaller
from functions.domain.instants import SECOND
from functions.domain.targets.options import USUAL, TargetOptions
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Succeeded
from testkit.builders import NOON
from tests.http_sink import HttpSink, answering, cut_off, half_of, http_sink, saying
from tests.unit.calling import INVOCATION, TOLD, busy, wait_for_calls

FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:billing"
_WITHOUT_DOCKER: Any = {"core": {"reset_boto3_session": False}, "lambda": {"use_docker": False}}

_client: Callable[..., Any] = boto3.client


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpSink]:
    """Every service that is called is this server."""
    with http_sink() as sink:
        monkeypatch.setenv("AWS_ENDPOINT_URL", sink.url)
        yield sink


def test_a_function_gets_the_payload_for_its_event_and_the_rest_in_its_client_context(aws: HttpSink):
    aws.respond = saying(b'{"total":7}')

    assert call(FUNCTION, payload='{"n":"\u00e9"}') == Succeeded('{"status":200,"body":{"total":7}}')

    (request,) = aws.requests
    assert request.path == f"/2015-03-31/functions/{FUNCTION.replace(':', '%3A')}/invocations"
    assert (request.body, request.headers["x-amz-invocation-type"]) == ('{"n":"\u00e9"}', "RequestResponse")
    assert json.loads(base64.b64decode(request.headers["x-amz-client-context"])) == {
        "custom": {**TOLD, "deadline": "2027-03-01T12:00:10.000Z"}
    }


def test_the_longest_context_is_one_that_lambda_takes(aws: HttpSink):
    longest = Invocation(
        job_id="j" * 900,
        tenant="t" * 64,
        idempotency_key="t" * 64 + "#" + "i" * 200,
        attempt=10**9,
        fence=10**12,
        scheduled_at=NOON,
        deadline=NOON,
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    )

    AwsCaller().call(FUNCTION, None, longest, options=USUAL, timeout=10 * SECOND)

    assert len(aws.requests[0].headers["x-amz-client-context"]) <= 3_583


def test_a_job_without_a_payload_sends_null(aws: HttpSink):
    call(FUNCTION, payload=None)

    assert aws.requests[0].body == "null"


def test_a_version_or_an_alias_is_called_by_its_own_arn(aws: HttpSink):
    call(f"{FUNCTION}:live")

    assert aws.requests[0].path.endswith("%3Abilling%3Alive/invocations")


def test_an_asynchronous_function_has_done_its_part_when_lambda_has_taken_its_event(aws: HttpSink):
    aws.respond = answering(202)

    assert call(FUNCTION, options=TargetOptions(is_async=True)) == Succeeded('{"status":202}')
    assert aws.requests[0].headers["x-amz-invocation-type"] == "Event"


def test_a_function_that_says_202_goes_on_by_itself(aws: HttpSink):
    aws.respond = saying(b'{"statusCode": 202, "body": "later"}')

    assert call(FUNCTION) == Pending()


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (b"", '{"status":200}'),
        (b"null", '{"status":200,"body":null}'),
        (b"not json", '{"status":200,"body":"not json"}'),
        (b'{"statusCode": 500}', '{"status":200,"body":{"statusCode":500}}'),
    ],
)
def test_what_a_function_says_is_kept(aws: HttpSink, said: bytes, kept: str):
    aws.respond = saying(said)

    assert call(FUNCTION) == Succeeded(kept)


@pytest.mark.parametrize(("size", "is_whole"), [(1_000, True), (200_000, True), (300_000, False)])
def test_a_long_answer_is_read_up_to_256_kb_and_stays_json(aws: HttpSink, size: int, is_whole: bool):
    aws.respond = saying(json.dumps("x" * size).encode())

    outcome = call(FUNCTION)

    assert isinstance(outcome, Succeeded)
    answer = json.loads(outcome.result)
    assert answer.get("truncated", False) is not is_whole
    assert answer["body"] == "x" * size if is_whole else answer["body"].startswith('"xxx')


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (b'{"errorType":"KeyError","errorMessage":"secret","stackTrace":["secret"]}', "KeyError"),
        (b'{"errorType":"secret message","errorMessage":"x"}', "Unhandled"),
        (b'{"errorMessage":"secret"}', "Unhandled"),
        (b'{"errorType":7}', "Unhandled"),
        (b'["secret"]', "Unhandled"),
        (b"secret", "Unhandled"),
        (b"[" * 100_000, "Unhandled"),
        (b'{"statusCode":202}', "Unhandled"),
    ],
)
def test_a_function_that_fails_is_reported_by_the_type_of_its_error_alone(aws: HttpSink, said: bytes, kind: str):
    aws.respond = saying(said, X_Amz_Function_Error="Unhandled")

    outcome = call(FUNCTION)

    assert outcome == Failed(f"{kind}: the function failed; its log says why", error_class="function_error")


@pytest.mark.parametrize(
    ("status", "code", "error_class", "is_permanent", "is_its_own"),
    [
        (429, "TooManyRequestsException", "throttled", False, False),
        (429, "AnythingElse", "throttled", False, False),
        (400, "KMSThrottling", "throttled", False, False),
        (400, "ExecutionLimitExceeded", "throttled", False, False),
        (502, "EC2ThrottledException", "throttled", False, False),
        (500, "ServiceException", "service_error", False, False),
        (503, "AnythingElse", "service_error", False, False),
        (409, "ResourceConflictException", "service_error", False, False),
        (408, "EFSMountConnectivityException", "service_error", False, False),
        (403, "ExpiredTokenException", "service_error", False, False),
        (403, "InvalidSignatureException", "service_error", False, False),
        (403, "UnrecognizedClientException", "service_error", False, False),
        (400, "ThrottlingException", "throttled", False, False),
        (403, "AccessDeniedException", "access_denied", True, False),
        (403, "AnythingElse", "access_denied", True, False),
        (502, "KMSAccessDeniedException", "access_denied", True, False),
        (400, "KMSDisabled", "access_denied", True, False),
        (403, "AuthorizationError", "access_denied", True, False),
        (404, "ResourceNotFoundException", "not_found", True, False),
        (404, "AnythingElse", "not_found", True, False),
        (400, "StateMachineDoesNotExist", "not_found", True, False),
        (400, "AWS.SimpleQueueService.NonExistentQueue", "not_found", True, False),
        (400, "InvalidRequestContentException", "invalid", True, True),
        (413, "RequestTooLargeException", "invalid", True, True),
        (400, "ValidationException", "invalid", True, True),
    ],
)
def test_a_refusal_of_aws_is_a_failure_of_a_kind(
    aws: HttpSink, status: int, code: str, error_class: str, is_permanent: bool, is_its_own: bool
):
    body = b'{"message":"secret"}'
    aws.respond = saying(body, status, X_Amzn_ErrorType=code, Content_Type="application/json")

    outcome = call(FUNCTION)

    assert isinstance(outcome, Failed)
    assert (outcome.error_class, outcome.is_permanent, outcome.is_its_own) == (error_class, is_permanent, is_its_own)
    assert outcome.error.startswith(f"{code}: ")
    assert "secret" not in outcome.error
    assert len(aws.requests) == 1, "an attempt is one request"


def test_a_forbidden_call_says_where_it_is_allowed(aws: HttpSink):
    aws.respond = saying(b"{}", 403, X_Amzn_ErrorType="AccessDeniedException")

    assert error_of(call(FUNCTION)) == (
        f"AccessDeniedException: the worker may not call lambda:InvokeFunction on {FUNCTION}: add it to the stage's "
        "`targets` in infra/stage.py and deploy; when it is there, its own policy or its key refuses the worker's role"
    )


def test_a_call_ends_at_its_timeout_whatever_its_client_waits_for(aws: HttpSink):
    aws.respond = lambda _: aws.released.wait(60)  # pyright: ignore[reportAttributeAccessIssue]  what it returns is unused
    started_at = time.monotonic()

    outcome = call(FUNCTION, timeout=timedelta(milliseconds=200))

    assert outcome == Failed("Timeout: no answer within 0.2 s", error_class="timeout")
    assert time.monotonic() - started_at < 30


def test_a_thread_ends_soon_after_its_call(aws: HttpSink):
    def hang(_: BaseHTTPRequestHandler) -> None:
        aws.released.wait(60)

    aws.respond = hang
    before = busy()

    call(FUNCTION, timeout=timedelta(milliseconds=100))

    wait_for_calls(since=before)


def test_an_answer_whose_body_breaks_off_has_succeeded_all_the_same(aws: HttpSink):
    aws.respond = half_of(b'"half', cut_off)

    assert call(FUNCTION) == Succeeded('{"status":200,"truncated":true}')


def test_an_answer_whose_body_stalls_has_succeeded_all_the_same(aws: HttpSink):
    aws.respond = half_of(b"", lambda _: aws.released.wait(60))
    started_at = time.monotonic()

    assert call(FUNCTION, timeout=timedelta(seconds=60)) == Succeeded('{"status":200,"truncated":true}')
    assert time.monotonic() - started_at < 30


def test_no_connection_is_a_failure_that_may_be_tried_again(monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")

    outcome = call(FUNCTION)

    assert outcome == Failed(f"EndpointConnectionError: no connection for {FUNCTION}", error_class="connection")


def test_a_connection_that_breaks_is_a_failure_that_may_be_tried_again(aws: HttpSink):
    aws.respond = lambda request: request.connection.shutdown(socket.SHUT_RDWR)

    outcome = call(FUNCTION)

    assert isinstance(outcome, Failed)
    assert (outcome.error_class, outcome.is_permanent) == ("connection", False)
    assert len(aws.requests) == 1


def test_a_function_of_moto_s_is_called():
    with mock_aws(config=_WITHOUT_DOCKER):
        a_function("billing")

        assert call(FUNCTION, payload='{"n":1}') == Succeeded('{"status":200,"body":{"n":1}}')
        assert call(FUNCTION, options=TargetOptions(is_async=True)) == Succeeded('{"status":202}')


def call(
    target: str, *, payload: str | None = "{}", options: TargetOptions = USUAL, timeout: timedelta = 10 * SECOND
) -> Outcome:
    return AwsCaller().call(target, payload, INVOCATION, options=options, timeout=timeout)


def error_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed)
    return outcome.error


def a_function(name: str) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as package:
        package.writestr("index.py", "def handler(event, context):\n    return event\n")
    iam = _client("iam")
    role = iam.create_role(RoleName="role", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    _client("lambda", region_name="eu-west-1").create_function(
        FunctionName=name,
        Runtime="python3.13",
        Role=role,
        Handler="index.handler",
        Code={"ZipFile": archive.getvalue()},
    )
