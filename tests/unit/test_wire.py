"""The lean client beside botocore's: what both send to the last header, what both make of any answer, and where they find a service."""

import io
import itertools
import json
import ssl
import uuid
from binascii import crc32
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import botocore.auth
import pytest
from botocore.awsrequest import AWSResponse
from botocore.credentials import RefreshableCredentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    NoRegionError,
    ReadTimeoutError,
    SSLError,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from functions.adapters import clients
from functions.adapters.system_clock import SystemClock
from functions.adapters.wire.bodies import decode, decode_error, encode
from functions.adapters.wire.services import DYNAMODB, FIREHOSE, SQS, Service, operations_of
from tickwheel.demo.loopback_server import KeptAliveRequest, LoopbackServer

SERVICES = {service.service_name: service for service in (DYNAMODB, SQS, FIREHOSE)}
LEAN: dict[str, Callable[[int], Any]] = {
    "dynamodb": lambda attempts: clients.dynamodb(SystemClock(), attempts=attempts),
    "sqs": lambda attempts: clients.sqs(attempts=attempts),
    "firehose": lambda attempts: clients.firehose(),
}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "dynamodb": ("get_item", {"TableName": "rows", "Key": {"k": {"S": "é"}}}),
    "sqs": ("send_message", {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/1/ready", "MessageBody": "x"}),
    "firehose": ("put_record_batch", {"DeliveryStreamName": "audit", "Records": [{"Data": b"x"}]}),
}
TYPE = "com.amazonaws.dynamodb.v20120810#"
REQUEST_ID = {"x-amzn-RequestId": "R1", "Content-Type": "application/x-amz-json-1.0"}


def pair(service: str, attempts: int = 1) -> tuple[Any, Any]:
    """botocore's client and the lean one, both as the functions have theirs."""
    seconds = 1 if service == "firehose" else 2
    return clients._client(service, clients._config(attempts, seconds=seconds)), LEAN[service](attempts)


def answering(*answers: Any) -> Callable[..., Any]:
    """Answers a request with each of these in turn, and with the last from then on; raises those that are errors."""
    left = list(answers)

    def answer(request: Any, **_: Any) -> Any:
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, Exception):
            raise found
        status, headers, body = found
        all_headers: Any = {**REQUEST_ID, **headers}
        return AWSResponse(request.url, status, all_headers, Raw(body))

    return answer


class Raw(io.BytesIO):
    def stream(self) -> Iterator[bytes]:
        yield self.read()


def outcome(client: Any, service: str, *answers: Any) -> Any:
    """What a call answers or raises, and how many requests it takes."""
    requests: list[Any] = []
    client.meta.events.register_first("before-send", lambda request, **_: requests.append(request))
    client.meta.events.register("before-send", answering(*answers))
    method, params = CALLS[service]
    try:
        return known(getattr(client, method)(**params)), len(requests)
    except ClientError as error:
        return known(error.response), error.operation_name, str(error), len(requests)
    except (BotoCoreError, ValueError) as error:
        return type(error), len(requests)


def known(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Without what nobody reads, and without the text of an error where it stands a second time."""
    kept = {name: value for name, value in answer.items() if name not in ("message", "Message")}
    metadata = {name: value for name, value in answer["ResponseMetadata"].items() if name not in _UNREAD}
    return {**kept, "ResponseMetadata": metadata}


_UNREAD = ("HTTPHeaders", "MaxAttemptsReached")


def error(code: str, **beside: Any) -> bytes:
    return json.dumps({"__type": code, "message": "Said.", **beside}).encode()


def checked(body: bytes, wrong_by: int = 0) -> dict[str, str]:
    return {"x-amz-crc32": str((crc32(body) + wrong_by) & 0xFFFFFFFF)}


FOUND = b'{"Item":{"k":{"S":"\\u00e9"},"b":{"B":"AAE="},"n":{"N":"7"}}}'
LEFT = {"k": {"S": "a"}, "b": {"B": "AAE="}, "m": {"M": {"bs": {"BS": ["AA==", ""]}}}}

ANSWERS: dict[str, tuple[str, tuple[int, dict[str, str], bytes]]] = {
    "a row": ("dynamodb", (200, checked(FOUND), FOUND)),
    "no row": ("dynamodb", (200, {}, b"{}")),
    "nothing": ("dynamodb", (200, {}, b"")),
    "null": ("dynamodb", (200, {}, b'{"Item":null}')),
    "refused": ("dynamodb", (400, {}, error(f"{TYPE}ConditionalCheckFailedException", Item=LEFT))),
    "refused without a row": ("dynamodb", (400, {}, error(f"{TYPE}ConditionalCheckFailedException"))),
    "cancelled": (
        "dynamodb",
        (
            400,
            {},
            json.dumps(
                {
                    "__type": f"{TYPE}TransactionCanceledException",
                    "Message": "Cancelled.",
                    "CancellationReasons": [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Item": LEFT}],
                }
            ).encode(),
        ),
    ),
    "invalid": ("dynamodb", (400, {}, error("com.amazon.coral.validate#ValidationException"))),
    "denied": ("dynamodb", (400, {}, error("AccessDeniedException:http://internal"))),
    "throttled": ("dynamodb", (400, {}, error(f"{TYPE}ProvisionedThroughputExceededException"))),
    "a failure": ("dynamodb", (500, {}, error(f"{TYPE}InternalServerError"))),
    "a failure without a word": ("dynamodb", (503, {}, b"")),
    "a page": ("dynamodb", (502, {}, b"<html><body>Bad gateway</body></html>")),
    "an error without a code": ("dynamodb", (400, {}, b'{"message":"Said."}')),
    "an error of plain text": ("dynamodb", (400, {}, b"Too much.")),
    "elsewhere": ("dynamodb", (307, {}, b"")),
    "no such queue": (
        "sqs",
        (
            400,
            {"x-amzn-query-error": "AWS.SimpleQueueService.NonExistentQueue;Sender"},
            error("com.amazonaws.sqs#QueueDoesNotExist"),
        ),
    ),
    "an odd header": ("sqs", (400, {"x-amzn-query-error": ";"}, error("com.amazonaws.sqs#OverLimit"))),
    "a message": ("sqs", (200, {}, b'{"MessageId":"1","MD5OfMessageBody":"2"}')),
    "records": ("firehose", (200, {}, b'{"FailedPutCount":0,"RequestResponses":[{"RecordId":"1"}]}')),
    "no such stream": ("firehose", (400, {}, error("ResourceNotFoundException"))),
}


@pytest.mark.parametrize("which", ANSWERS)
def test_an_answer_is_read_as_botocore_reads_it(which: str) -> None:
    service, answer = ANSWERS[which]
    theirs, ours = pair(service)

    assert outcome(ours, service, answer) == outcome(theirs, service, answer)


def lost(error: Callable[..., Exception]) -> Exception:
    return error(endpoint_url="https://x", error="x")


SERIES: dict[str, list[Any]] = {
    "throttled, then taken": [ANSWERS["throttled"][1], ANSWERS["a row"][1]],
    "failures to the end": [ANSWERS["a failure"][1]],
    "lost, then taken": [lost(ConnectionClosedError), ANSWERS["a row"][1]],
    "lost to the end": [lost(ReadTimeoutError)],
    "not there": [lost(EndpointConnectionError), lost(HTTPClientError), ANSWERS["no row"][1]],
    "refused once": [ANSWERS["refused"][1]],
    "invalid": [ANSWERS["invalid"][1], ANSWERS["a row"][1]],
    "lost, then refused": [lost(ReadTimeoutError), ANSWERS["refused"][1]],
    "a broken answer, then a whole one": [(200, checked(FOUND, 1), FOUND), ANSWERS["a row"][1]],
}


@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("which", SERIES)
def test_a_call_is_tried_as_often_as_by_botocore(which: str, attempts: int, pauses: list[float]) -> None:
    theirs, ours = pair("dynamodb", attempts)

    expected = outcome(theirs, "dynamodb", *SERIES[which])
    paused = len(pauses)
    found = outcome(ours, "dynamodb", *SERIES[which])

    if (which, attempts) == ("a broken answer, then a whole one", 1):
        assert found == (HTTPClientError, 1)  # botocore gives it away as it is
        return
    assert found == expected
    assert len(pauses) - paused == paused


@pytest.mark.parametrize("body", [b"nonsense", b"[]", b'"text"', b"[" * 100_000, b'{"Item":{"b":{"B":"!"}}}', b"\xff"])
def test_what_is_no_answer_may_be_asked_for_again_and_is_never_no_row(body: bytes, pauses: list[float]) -> None:
    _, ours = pair("dynamodb", 3)

    assert outcome(ours, "dynamodb", (200, {}, body)) == (HTTPClientError, 3)
    assert clients.is_transient(HTTPClientError(error="x"))


def test_an_answer_that_is_broken_to_the_end_is_an_error(pauses: list[float]) -> None:
    _, ours = pair("dynamodb", 3)

    assert outcome(ours, "dynamodb", (200, checked(FOUND, 1), FOUND)) == (HTTPClientError, 3)


def test_a_store_that_fails_for_long_is_not_asked_again_for_each_call(pauses: list[float]) -> None:
    """botocore's quota of retries, which a client has for all its calls."""
    for client in pair("dynamodb", 3):
        client.meta.events.register("before-send", answering(ANSWERS["a failure"][1]))
        before = len(pauses)
        for _ in range(60):
            with pytest.raises(ClientError):
                client.get_item(**CALLS["dynamodb"][1])
        assert len(pauses) - before == 100


def test_a_transaction_that_is_tried_again_has_the_same_token(pauses: list[float]) -> None:
    _, ours = pair("dynamodb", 3)
    tokens: list[str] = []
    ours.meta.events.register_first(
        "before-send", lambda request, **_: tokens.append(json.loads(request.body)["ClientRequestToken"])
    )
    ours.meta.events.register("before-send", answering(lost(ReadTimeoutError), (200, {}, b"{}")))

    ours.transact_write_items(TransactItems=[])
    ours.transact_write_items(TransactItems=[])

    first, again, second = tokens
    assert first == again != second
    assert uuid.UUID(first).version == 4


class Aws(LoopbackServer):
    """Takes everything, and keeps what it was sent, header for header."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[tuple[str, str]], bytes]] = []
        self.connections: set[Any] = set()
        outer = self

        class Handler(KeptAliveRequest):
            def do_POST(self) -> None:
                outer.connections.add(self.client_address)
                body = self.read_body()
                outer.asked.append((self.path, self.headers.items(), body))
                self.answer(200, b"{}")

        super().__init__(Handler, poll_seconds=0.05)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    with Aws() as aws:
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url)
        yield aws


@pytest.mark.parametrize("service", SERVICES)
def test_a_request_has_the_headers_and_the_signature_of_botocores(
    service: str, aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: datetime(2027, 3, 1, 12))  # noqa: DTZ001  as botocore has it
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(int=1))
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "worker")
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-a-b;Lineage=1:43e12f0f:15;Sampled=1")
    token = RefreshableCredentials("key", "secret", "token", datetime.now(UTC) + timedelta(hours=1), dict, "test")
    monkeypatch.setattr(clients.session(), "_credentials", token)
    method, params = CALLS[service]
    # As both write it: what is signed is what is sent.
    theirs, ours = pair(service)
    ours.meta.events.register_last("before-call", lambda params, **_: params.update(body=spaced(params["body"])))

    getattr(theirs, method)(**params)
    getattr(ours, method)(**params)

    (path, expected, body), (our_path, found, our_body) = aws.asked
    assert (our_path, our_body) == (path, body)
    assert headers_of(found) == headers_of(expected)
    assert "x-amz-security-token" in headers_of(found)


def spaced(body: bytes) -> bytes:
    return json.dumps(json.loads(body)).encode()


def headers_of(items: list[tuple[str, str]]) -> dict[str, str]:
    found = {name.lower(): value for name, value in items}
    # Which of botocore's features a call uses.
    # Powertools adds its own to every client of botocore's, once a process has imported it.
    of_single_calls = ("m/", "PT/", "PTEnv/")
    found["user-agent"] = " ".join(part for part in found["user-agent"].split() if not part.startswith(of_single_calls))
    return found


def test_requests_share_a_connection(aws: Aws) -> None:
    _, ours = pair("dynamodb")

    for _ in range(5):
        ours.get_item(**CALLS["dynamodb"][1])

    assert len(aws.asked) == 5
    assert len(aws.connections) == 1


def test_a_request_is_signed_by_the_credentials_of_its_moment(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = map(str, itertools.count())
    soon = datetime.now(UTC) + timedelta(minutes=5)

    def refresh() -> dict[str, str]:
        return {
            "access_key": "key",
            "secret_key": "secret",
            "token": next(tokens),
            "expiry_time": (datetime.now(UTC) + timedelta(minutes=5)).isoformat(),
        }

    credentials = RefreshableCredentials("key", "secret", "first", soon, refresh, "test")
    monkeypatch.setattr(clients.session(), "_credentials", credentials)
    _, ours = pair("dynamodb")

    ours.get_item(**CALLS["dynamodb"][1])
    ours.get_item(**CALLS["dynamodb"][1])

    found = [dict(headers)["X-Amz-Security-Token"] for _, headers, _ in aws.asked]
    assert len(set(found)) == 2
    assert "first" not in found


def test_without_credentials_or_a_region_nothing_is_sent(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients.session(), "get_credentials", lambda: None)
    _, ours = pair("sqs")
    with pytest.raises(NoCredentialsError):
        ours.send_message(**CALLS["sqs"][1])
    monkeypatch.setattr(clients.session(), "get_config_variable", lambda name: None)
    with pytest.raises(NoRegionError):
        clients.sqs()

    assert aws.asked == []


@pytest.mark.parametrize("name", ["localhost", "elsewhere"])
@pytest.mark.parametrize("is_trusted", [True, False])
def test_nothing_is_sent_to_whoever_cannot_prove_to_be_the_service(
    name: str, is_trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key_file, certificate = a_certificate(tmp_path, name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key_file)
    with Aws() as aws:
        aws.socket = context.wrap_socket(aws.socket, server_side=True)
        aws.handle_error = lambda request, client_address: None  # whoever hangs up is no news here
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws.url.replace("http://127.0.0.1", "https://localhost"))
        monkeypatch.delenv("REQUESTS_CA_BUNDLE", raising=False)
        if is_trusted:
            monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
        else:
            monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
        theirs, ours = pair("dynamodb")

        for client in (ours, theirs):
            with nullcontext() if (name, is_trusted) == ("localhost", True) else pytest.raises(SSLError):
                client.get_item(**CALLS["dynamodb"][1])

    assert len(aws.asked) == (2 if (name, is_trusted) == ("localhost", True) else 0)


def a_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A key, and a certificate of that name that it has signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "key.pem").write_bytes(private)
    (folder / "certificate.pem").write_bytes(made.public_bytes(Encoding.PEM))
    return folder / "key.pem", folder / "certificate.pem"


REGIONS = ["us-east-1", "eu-west-1", "cn-north-1", "us-gov-west-1", "us-iso-east-1", "eusc-de-east-1", "ap-new-9"]
VARIABLES: list[dict[str, str]] = [
    {},
    {"AWS_USE_FIPS_ENDPOINT": "true"},
    {"AWS_USE_DUALSTACK_ENDPOINT": "true"},
    {"AWS_ENDPOINT_URL": "http://127.0.0.1:9/path/"},
    {"AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:9", "AWS_ENDPOINT_URL_SQS": "https://queues.example"},
    {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
    {"AWS_ACCOUNT_ID": "123456789012"},
    {"AWS_ACCOUNT_ID": "123456789012", "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled"},
]


@pytest.mark.parametrize("variables", VARIABLES, ids=lambda each: ",".join(each) or "none")
@pytest.mark.parametrize("region", REGIONS)
def test_a_service_is_found_where_botocore_finds_it(
    region: str, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**variables, "AWS_DEFAULT_REGION": region}.items():
        monkeypatch.setenv(name, value)
    clients.session.cache_clear()
    try:
        for service in SERVICES:
            found = []
            for client in pair(service):
                client.meta.events.register_first(
                    "before-send", lambda request, found=found, **_: found.append(request)
                )
                client.meta.events.register("before-send", answering((200, {}, b"{}")))
                method, params = CALLS[service]
                getattr(client, method)(**params)
            theirs, ours = found
            assert ours.url.rstrip("/") == theirs.url.rstrip("/")
            scopes = [scope_of(request.headers["Authorization"]) for request in found]
            assert scopes[0] == scopes[1]
    finally:
        clients.session.cache_clear()


def scope_of(authorization: bytes | str) -> str:
    text = authorization.decode() if isinstance(authorization, bytes) else authorization
    return text.split(",")[0]


@pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
def test_what_is_known_of_a_service_is_what_its_model_says(service: Service) -> None:
    client, _ = pair(service.service_name)
    model = client.meta.service_model

    assert model.metadata["targetPrefix"] == service.target
    assert model.metadata["jsonVersion"] == service.json_version
    assert model.resolved_protocol == "json"
    assert model.is_query_compatible == service.is_query_compatible
    assert model.service_id == service.service_id
    for method, operation in operations_of(service).items():
        described = model.operation_model(operation.name)
        assert client.meta.method_to_api_mapping[method] == operation.name
        assert tuple(described.idempotent_members) == operation.idempotent_members
        retryable = {shape.name for shape in described.error_shapes if shape.metadata.get("retryable")}
        assert retryable == {shape.name for shape in operation.error_shapes}
        assert described.http == {"method": "POST", "requestUri": "/"}
        assert not described.is_endpoint_discovery_operation
        assert not described.http_checksum
        assert bool(blobs_in(described.output_shape)) <= service.has_blobs


def blobs_in(shape: Any, seen: frozenset[str] = frozenset()) -> list[str]:
    """The names of the shapes in an answer that are bytes."""
    if shape is None or shape.name in seen:
        return []
    seen |= {shape.name}
    match shape.type_name:
        case "blob":
            return [shape.name]
        case "structure":
            return [name for each in shape.members.values() for name in blobs_in(each, seen)]
        case "list":
            return blobs_in(shape.member, seen)
        case "map":
            return blobs_in(shape.value, seen)
        case _:
            return []


VALUES: Any = st.recursive(
    st.one_of(
        st.fixed_dictionaries({"S": st.text()}),
        st.fixed_dictionaries({"N": st.integers().map(str)}),
        st.fixed_dictionaries({"B": st.binary()}),
        st.fixed_dictionaries({"BS": st.lists(st.binary(), min_size=1, max_size=3)}),
        st.fixed_dictionaries({"BOOL": st.booleans()}),
        st.fixed_dictionaries({"NULL": st.just(True)}),  # noqa: FBT003  a value
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"M": st.dictionaries(st.sampled_from(["B", "BS", "k", "é"]), inner, max_size=3)}),
        st.fixed_dictionaries({"L": st.lists(inner, max_size=3)}),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["B", "BS", "a", "S"]), VALUES))
def test_what_is_sent_is_what_an_answer_of_it_says(item: dict[str, Any]) -> None:
    assert decode(encode({"Item": item}), has_blobs=True) == {"Item": item}


@given(
    st.binary(),
    st.sampled_from([300, 301, 400, 413, 500, 503]),
    st.dictionaries(st.just("x-amzn-query-error"), st.text()),
)
def test_any_bytes_are_an_answer_or_an_error_of_the_call(body: bytes, status: int, headers: dict[str, str]) -> None:
    with suppress(HTTPClientError):
        assert isinstance(decode(body, has_blobs=True), dict)
    found: Any = decode_error(body, status=status, headers=headers, has_blobs=True)

    assert isinstance(ClientError(found, "GetItem").response["Error"]["Code"], str)
