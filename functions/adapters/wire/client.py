"""A client for the calls that every job makes: botocore's credentials, signer, endpoint rules and retries, without its models.

botocore checks each parameter by a model of the service, writes its headers and finds its connection anew for each call, which
is nine tenths of the processor time of a call. Here a request is what it was given, as JSON, and an answer is what JSON says,
but for bytes. What one calls beside the operations of its service is a botocore client's, made when it is first asked for.
"""

from __future__ import annotations

import copy
import time
import uuid
from binascii import crc32
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ClientError, HTTPClientError, NoCredentialsError
from botocore.hooks import first_non_none_response
from botocore.retries.standard import register_retry_handler
from botocore.session import Session

from functions.adapters.wire.bodies import decode, decode_error, encode
from functions.adapters.wire.connections import Connections
from functions.adapters.wire.endpoints import resolve
from functions.adapters.wire.services import Operation, Service, operations_of
from functions.adapters.wire.signer import Signer, host_of

_REFUSED = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What botocore's clients say of themselves: a ClientMeta, so far as it is asked for."""

    events: Any
    config: Any
    endpoint_url: str
    region_name: str
    service_model: Service


class Request(AWSPreparedRequest):
    """A request that can be signed and sent."""

    params = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.context = {}


class SignedClient:
    """Has the methods of boto3's client, and its events: those that whoever watches, answers or spoils a call relies on.

    These are provide-client-params, before-parameter-build, before-call, before-send, after-call, and of a call that failed
    needs-retry; each with what botocore gives it. config: of timeouts, retries and connections. rest: makes the client of
    other operations.

    It differs from boto3's in this: parameters are not checked before they are sent; members of an answer that the model does
    not know are kept; an error is a ClientError of no class of its own; metadata has no headers; and an answer that is no JSON,
    or whose checksum is wrong to the end, is an error that may be tried again instead of an answer.
    """

    def __init__(self, service: Service, session: Session, config: Any, rest: Any) -> None:
        self._service = service
        self._rest = rest
        operations = operations_of(service)
        self._calls: dict[str, Callable[..., Any]] = {
            method: partial(self._asked, operation.name) for method, operation in operations.items()
        }
        self._operations = {operation.name: operation for operation in operations.values()}
        self._credentials = session.get_credentials()
        self._endpoint = resolve(service, session, credentials=self._credentials)
        self._host = host_of(self._endpoint.url)
        self._connections = Connections(self._endpoint.url, config, bundle=session.get_config_variable("ca_bundle"))
        self._headers = {"User-Agent": _user_agent(session, config), **self._endpoint.headers}
        self.meta = Meta(
            events=copy.copy(session.get_component("event_emitter")),
            config=config,
            endpoint_url=self._endpoint.url,
            region_name=self._endpoint.signing_region,
            service_model=service,
        )
        watched: Any = self
        register_retry_handler(watched, config.retries["total_max_attempts"])

    def __getattr__(self, name: str) -> Any:
        # Not what a copy or a debugger asks for before there is anything.
        if name.startswith("_"):
            raise AttributeError(name)
        return self._calls.get(name) or getattr(self._rest, name)

    def _asked(self, operation_name: str, /, **params: Any) -> Any:
        return self._make_api_call(operation_name, params)

    def _make_api_call(self, operation_name: str, api_params: dict[str, Any]) -> Any:
        """A call, under the name by which botocore's clients make theirs."""
        operation = self._operations[operation_name]
        emit, events = self.meta.events.emit, operation.events
        context: dict[str, Any] = {"client_config": self.meta.config, "client_region": self.meta.region_name}
        given = emit(events["provide-client-params"], params=api_params, model=operation, context=context)
        api_params = first_non_none_response(given, default=api_params)
        emit(events["before-parameter-build"], params=api_params, model=operation, context=context)
        request: dict[str, Any] = {
            "method": "POST",
            "url": self._endpoint.url,
            "headers": {**operation.headers, **self._headers},
            "body": encode(api_params),
            "context": context,
        }
        _, answered = self.meta.events.emit_until_response(
            events["before-call"], model=operation, params=request, request_signer=None, context=context
        )
        reply, parsed = answered or self._sent(operation, request)
        emit(events["after-call"], http_response=reply, parsed=parsed, model=operation, context=context)
        if reply.status_code >= _REFUSED:
            raise ClientError(parsed, operation_name)
        return parsed

    def _sent(self, operation: Operation, request: dict[str, Any]) -> tuple[Any, Any]:
        """What has come of a request in the end: tried as often, and after such pauses, as by botocore's standard mode."""
        call, attempt = str(uuid.uuid4()), 1
        while True:
            reply, parsed, error = self._attempt(operation, request, call=call, attempt=attempt)
            if error is None and reply.status_code < _REFUSED:
                break
            pause = first_non_none_response(
                self.meta.events.emit(
                    operation.events["needs-retry"],
                    response=None if parsed is None else (reply, parsed),
                    endpoint=None,
                    operation=operation,
                    attempts=attempt,
                    caught_exception=error,
                    request_dict=request,
                )
            )
            if pause is None or pause is False:
                break
            time.sleep(pause)
            attempt += 1
        if error is not None:
            raise error
        assert parsed is not None
        parsed["ResponseMetadata"]["RetryAttempts"] = attempt - 1
        return reply, parsed

    def _attempt(
        self, operation: Operation, request: Mapping[str, Any], *, call: str, attempt: int
    ) -> tuple[Any, dict[str, Any] | None, Exception | None]:
        """A reply and what it says, or the error instead of them."""
        signed: Any = Request("POST", request["url"], {**request["headers"]}, request["body"], stream_output=False)
        self._sign(signed)
        signed.headers |= {"amz-sdk-invocation-id": call, "amz-sdk-request": f"attempt={attempt}"}
        try:
            reply = first_non_none_response(self.meta.events.emit(operation.events["before-send"], request=signed))
            if reply is None:
                reply = self._connections.send(signed)
            return reply, self._read(reply), None
        except Exception as error:  # noqa: BLE001  those that may not be tried again are raised behind the attempt
            return None, None, error

    def _sign(self, request: Any) -> None:
        if self._credentials is None:
            raise NoCredentialsError
        credentials = self._credentials.get_frozen_credentials()
        signed_as = self._endpoint.signing_name, self._endpoint.signing_region
        Signer(credentials, *signed_as, host=self._host).add_auth(request)

    def _read(self, reply: Any) -> dict[str, Any]:
        content, headers, has_blobs = reply.content, reply.headers, self._service.has_blobs
        checksum = headers.get("x-amz-crc32")
        if checksum is not None and str(crc32(content)) != checksum:
            raise HTTPClientError(error="its answer is not what was sent, by its checksum")
        if reply.status_code >= _REFUSED:
            return decode_error(content, status=reply.status_code, headers=headers, has_blobs=has_blobs)
        parsed = decode(content, has_blobs=has_blobs)
        parsed["ResponseMetadata"] = {
            "RequestId": headers.get("x-amzn-requestid", ""),
            "HTTPStatusCode": reply.status_code,
        }
        return parsed


def _user_agent(session: Any, config: Any) -> str:
    """As botocore's own, made once: only what it says of single calls is missing."""
    creator = session.get_component("user_agent_creator")
    creator.set_session_config(
        session_user_agent_name=session.user_agent_name,
        session_user_agent_version=session.user_agent_version,
        session_user_agent_extra=session.user_agent_extra,
    )
    return creator.with_client_config(config).to_string()
