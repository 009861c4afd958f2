"""The AWS clients, with timeouts and retries that the closed-bucket rule can bear.

botocore's own (60 s, up to ten tries) would let a far write land minutes after it was decided on. patience, of each client that
waits for a store: how many times as long.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import cache, cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NotConnected

from functions.adapters.system_clock import SystemClock
from functions.adapters.wire.client import SignedClient
from functions.adapters.wire.services import DYNAMODB, FIREHOSE, SQS, Service
from functions.domain.errors import Busy

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_firehose import FirehoseClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_sqs import SQSClient

TIMEOUT_SECONDS = 2
ATTEMPTS = 3
CONNECTIONS = 32

_REGIONAL = Config(signature_version="s3v4", s3={"addressing_style": "virtual"})

Answer = TypeVar("Answer")

TRIES = 5
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.06, 0.5

REFUSED = "ConditionalCheckFailed"
"""The reason why a transaction is cancelled, of a part whose condition is not met."""

_TRACE_HEADER = "X-Amzn-Trace-Id"

_TRANSIENT = frozenset(
    {
        "InternalServerError",
        "InternalFailure",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "SlowDown",
        "ThrottledRequestException",
        "Throttling",
        "ThrottlingException",
    }
)

_TRANSIENT_REASONS = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


def code_of(error: ClientError) -> str:
    """The code by which a service refuses a call."""
    return error.response.get("Error", {}).get("Code", "")


def is_transient(error: Exception) -> bool:
    """Whether a call may succeed, or may have succeeded, although this error was seen."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if _reasons_of(error) & _TRANSIENT_REASONS:
            return True
        return code_of(error) in _TRANSIENT or status >= 500  # noqa: PLR2004
    return isinstance(error, HTTPClientError | NotConnected)


def is_conflict(error: Exception) -> bool:
    """Whether a call collided with a transaction on one of its rows, and may be made again. Not when a condition was refused too."""
    if not isinstance(error, ClientError) or is_refused(error):
        return False
    return code_of(error) == "TransactionConflictException" or "TransactionConflict" in _reasons_of(error)


def is_refused(error: Exception) -> bool:
    """Whether a conditional write, or a transaction with one, was refused by what stands in a row."""
    if not isinstance(error, ClientError):
        return False
    if code_of(error) != "TransactionCanceledException":
        return code_of(error) == "ConditionalCheckFailedException"
    return REFUSED in _reasons_of(error)


def _reasons_of(error: ClientError) -> set[str | None]:
    """Why a transaction was cancelled, part by part."""
    return {reason.get("Code") for reason in error.response.get("CancellationReasons", [])}


def tried(call: Callable[[], Answer]) -> Answer | None:
    """What a call answers; None where it may succeed later, or may have succeeded. Raises any other error."""
    try:
        return call()
    except (ClientError, BotoCoreError) as error:
        if not is_transient(error):
            raise
        return None


def patiently(call: Callable[[], Answer], *, tries: int = TRIES) -> Answer:
    """Make a call again that collided with a transaction on its row: the SDK does not. Raises Busy after so many tries.

    Between them with full jitter (Brooker, "Exponential Backoff And Jitter", 2015,
    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/): those that collided would collide again.
    """
    for attempt in range(tries):
        if attempt:
            ceiling = min(_LONGEST_PAUSE_SECONDS, _PAUSE_SECONDS * 2 ** (attempt - 1))
            time.sleep(random.uniform(0, ceiling))  # noqa: S311  # spreads load, guards nothing
        try:
            return call()
        except ClientError as error:
            if not is_conflict(error):
                raise
    raise Busy


def dynamodb(clock: SystemClock, *, attempts: int = ATTEMPTS, patience: int = 1) -> DynamoDBClient:
    """A DynamoDB client whose answers give the clock the time of the store."""
    client = _lean(DYNAMODB, _config(attempts, seconds=TIMEOUT_SECONDS * patience))
    client.meta.events.register("after-call.dynamodb", clock.observe_response)
    return client


def sqs(*, attempts: int = ATTEMPTS, patience: int = 1) -> SQSClient:
    """An SQS client."""
    return _lean(SQS, _config(attempts, seconds=TIMEOUT_SECONDS * patience))


def s3(*, patience: int = 1) -> S3Client:
    """An S3 client. What it presigns holds in every region: it names the host of the bucket's own."""
    return _client("s3", _config(ATTEMPTS, seconds=TIMEOUT_SECONDS * patience).merge(_REGIONAL))


def s3_in_haste(*, patience: int = 1) -> S3Client:
    """An S3 client that asks once, and not for long: the lease of an attempt does not wait for it."""
    return _client("s3", _config(attempts=1, seconds=1 * patience).merge(_REGIONAL))


def secrets_manager(*, patience: int = 1) -> SecretsManagerClient:
    """A Secrets Manager client. It asks once: the attempt of a job waits for the answer, and its lease does not."""
    return _client("secretsmanager", _config(attempts=1, seconds=TIMEOUT_SECONDS * patience))


def functions(*, patience: int = 1) -> Any:
    """A Lambda client. It asks once: whoever calls does not depend on the answer."""
    return _client("lambda", _config(attempts=1, seconds=TIMEOUT_SECONDS * patience))


def sts() -> Any:
    """An STS client, of the region's own endpoint."""
    return _client("sts", _config(ATTEMPTS, seconds=TIMEOUT_SECONDS))


def firehose(*, patience: int = 1) -> FirehoseClient:
    """A Firehose client. It asks once, and not for long: the jobs of an invocation are acknowledged behind it."""
    return _lean(FIREHOSE, _config(attempts=1, seconds=1 * patience))


class Late:
    """A client that is made when it is first used.

    Most environments never need those of S3, Lambda and Secrets Manager, whose models a cold start would read.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    @cached_property
    def _client(self) -> Any:
        with _MAKING:
            return self._make()


_MAKING = Lock()
"""A session makes one client at a time (https://docs.aws.amazon.com/boto3/latest/guide/session.html#multithreading-or-multiprocessing-with-sessions)."""


def target(service: str, region: str, *, seconds: float) -> Any:
    """A client of a service that jobs call, in any region. An attempt is one request, which may take its time."""
    return _client(service, _config(attempts=1, seconds=seconds), region=region)


@cache
def session() -> botocore.session.Session:
    """What all clients are made from. Not boto3's: at a cold start that also imports what S3's transfers and resources need."""
    return botocore.session.get_session()


def _lean(service: Service, config: Config) -> Any:
    """A client that makes the calls of every job by itself, and has botocore's make the others."""
    rest = Late(lambda: _client(service.service_name, config))
    return _telling_no_lineage(SignedClient(service, session(), config, rest))


def _client(service: str, config: Config, *, region: str | None = None) -> Any:
    return _telling_no_lineage(session().create_client(service, region_name=region, config=config))


def _telling_no_lineage(client: Any) -> Any:
    # Among the handlers of "before-call" the last: botocore adds the header there.
    client.meta.events.register_last("before-call", _without_lineage)
    return client


def _without_lineage(params: dict[str, Any], **_: Any) -> None:
    """Leave out of the trace header how often Lambda was invoked in this chain of requests.

    Lambda stops the next invocation of a chain of about 16, of any service in between
    (https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html). With us such a chain is no accident: a
    worker sends the next attempt, the next fire, or a job that waits for a permit, to the queue that invokes it. Their
    number is bounded by retries, caps and expiry. A target's functions would be stopped in our chain, too.
    """
    header = params["headers"].get(_TRACE_HEADER)
    if header:
        parts = (part for part in header.split(";") if not part.startswith("Lineage="))
        params["headers"][_TRACE_HEADER] = ";".join(parts)


def _config(attempts: int, *, seconds: float) -> Config:
    return Config(
        connect_timeout=min(TIMEOUT_SECONDS, seconds),
        read_timeout=seconds,
        retries={"total_max_attempts": attempts, "mode": "standard"},
        max_pool_connections=CONNECTIONS,
        tcp_keepalive=True,
    )
