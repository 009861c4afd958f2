from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from functions.adapters.clients import (
    ATTEMPTS,
    TIMEOUT_SECONDS,
    dynamodb,
    firehose,
    functions,
    is_refused,
    is_transient,
    s3,
    secrets_manager,
    sqs,
)
from functions.adapters.system_clock import SystemClock
from functions.domain.wheel import MIN_LOOKAHEAD


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url="https://x"),
        ConnectTimeoutError(endpoint_url="https://x"),
        ConnectionClosedError(endpoint_url="https://x"),
        EndpointConnectionError(endpoint_url="https://x"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_call_that_found_no_answer_may_be_tried_again(error: Exception):
    assert is_transient(error)


@pytest.mark.parametrize(
    ("code", "status"),
    [("ThrottlingException", 400), ("ProvisionedThroughputExceededException", 400), ("AnyOther", 500), ("X", 503)],
)
def test_a_call_that_was_throttled_or_failed_by_a_fault_of_the_service_may_be_tried_again(code: str, status: int):
    assert is_transient(a_client_error(code, status))


@pytest.mark.parametrize(
    "error",
    [NoCredentialsError(), ParamValidationError(report="x"), ValueError("x")],
    ids=lambda error: type(error).__name__,
)
def test_a_call_that_could_not_be_made_is_not_tried_again(error: Exception):
    assert not is_transient(error)


@pytest.mark.parametrize("code", ["ValidationException", "AccessDeniedException", "ResourceNotFoundException"])
def test_a_call_that_is_wrong_is_not_tried_again(code: str):
    assert not is_transient(a_client_error(code, 400))


@pytest.mark.parametrize("reason", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_transaction_that_collided_with_another_one_may_be_tried_again(reason: str):
    assert is_transient(a_cancelled_transaction("None", reason))
    assert not is_refused(a_cancelled_transaction("None", reason))


def test_a_conditional_write_that_lost_is_refused_alone_or_in_a_transaction():
    assert is_refused(a_client_error("ConditionalCheckFailedException", 400))
    assert is_refused(a_cancelled_transaction("ConditionalCheckFailed", "None"))
    assert not is_transient(a_cancelled_transaction("ConditionalCheckFailed", "None"))


@pytest.mark.parametrize("error", [ValueError("x"), ConnectTimeoutError(endpoint_url="https://x")])
def test_an_error_that_is_no_answer_of_the_store_is_no_refusal(error: Exception):
    assert not is_refused(error)


def test_a_transaction_that_is_wrong_is_neither_refused_nor_tried_again():
    error = a_cancelled_transaction("ValidationError", "None")

    assert (is_refused(error), is_transient(error)) == (False, False)


def test_every_client_gives_up_well_within_a_tick():
    for client in (dynamodb(SystemClock()), sqs(), s3()):
        config: Any = client.meta.config
        assert (config.connect_timeout, config.read_timeout) == (TIMEOUT_SECONDS, TIMEOUT_SECONDS)
        assert config.retries["total_max_attempts"] == ATTEMPTS
    assert MIN_LOOKAHEAD.total_seconds() > 2 * TIMEOUT_SECONDS * ATTEMPTS * ATTEMPTS


@pytest.mark.parametrize("make", [partial(dynamodb, SystemClock()), sqs, s3, secrets_manager, functions, firehose])
def test_a_client_that_is_patient_waits_as_many_times_as_long_for_a_store(make: Callable[..., Any]):
    assert make(patience=4).meta.config.read_timeout == 4 * make().meta.config.read_timeout


def test_a_client_of_a_far_write_makes_one_attempt_because_placing_decides_anew():
    config: Any = dynamodb(SystemClock(), attempts=1).meta.config

    assert config.retries["total_max_attempts"] == 1


def a_client_error(code: str, status: int) -> ClientError:
    answer = {"Error": {"Code": code, "Message": ""}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "PutItem")  # pyright: ignore[reportArgumentType]  # the stubs want every header


def a_cancelled_transaction(*codes: str) -> ClientError:
    answer: Any = {
        "Error": {"Code": "TransactionCanceledException"},
        "CancellationReasons": [{"Code": code} for code in codes],
        "ResponseMetadata": {"HTTPStatusCode": 400},
    }
    return ClientError(answer, "TransactWriteItems")
