"""How a route reads its request: the body and the query, each as a model says; who asks, and under which key."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeVar

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from pydantic import BaseModel, ValidationError

from functions.api.http.problems import Misshapen
from functions.api.http.requests import check_key, parse_body
from functions.domain.errors import InvalidInput
from functions.domain.tenants.access import Caller, caller_by_arn, caller_by_token
from functions.domain.trace import Trace, parse_traceparent

_KEY_HEADER = "idempotency-key"

Model = TypeVar("Model", bound=BaseModel)

_UNKNOWN_CALLER = "unknown"


class Request:
    """A request as the access check and its route read it: its body is parsed once. arguments: the variables of its path, unescaped."""

    def __init__(self, event: APIGatewayProxyEventV2, arguments: Mapping[str, str]) -> None:
        self.event = event
        self.arguments = arguments

    @property
    def body(self) -> Any:
        """Its JSON. Raises InvalidInput."""
        body, refusal = self._parsed
        if refusal is not None:
            raise refusal
        return body

    @property
    def has_body(self) -> bool:
        """Whether there is anything to parse."""
        return bool(self.event.body)

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The parameters of its query, by their names."""
        return dict(self.event.query_string_parameters)

    def query_as(self, model: type[Model]) -> Model:
        """Its query. Raises Misshapen, answered as InvalidInput."""
        return read_as(model, self.query)

    def body_as(self, model: type[Model]) -> Model:
        """Its body. Raises InvalidInput, and Misshapen, answered as that."""
        return read_as(model, self.body)

    def optional_body_as(self, model: type[Model]) -> Model:
        """Its body, which may be left out. Raises InvalidInput, and Misshapen, answered as that."""
        return read_as(model, self.body if self.has_body else {})

    @property
    def has_key(self) -> bool:
        """Whether it has an Idempotency-Key header."""
        return _KEY_HEADER in self.event.headers

    def key(self, *, refused_as: type[InvalidInput] = InvalidInput) -> str | None:
        """The Idempotency-Key header; None without one. Raises Misshapen, answered as that."""
        try:
            return check_key(self.event.headers.get(_KEY_HEADER))
        except ValidationError as error:
            raise Misshapen(refused_as, error) from None

    @property
    def trace(self) -> Trace | None:
        """The trace that the caller's own work belongs to; None without a valid traceparent header."""
        return parse_traceparent(self.event.headers.get("traceparent"))

    @property
    def caller(self) -> str:
        """Who asks, for the log: the ARN of who signed the request, or whom its token is of."""
        return self.identity().name

    def identity(self, *, tenant_claim: str = "") -> Caller:
        """Who asks, as the gateway has found out. tenant_claim: of a token, which names its tenant; empty for none."""
        authorizer = self.event.raw_event["requestContext"].get("authorizer") or {}
        if "jwt" in authorizer:
            claims = (authorizer["jwt"] or {}).get("claims") or {}
            return caller_by_token(
                str(claims.get("sub") or _UNKNOWN_CALLER), claims.get(tenant_claim) if tenant_claim else None
            )
        return caller_by_arn((authorizer.get("iam") or {}).get("userArn") or _UNKNOWN_CALLER)

    @cached_property
    def _parsed(self) -> tuple[Any, InvalidInput | None]:
        try:
            return parse_body(self.event.body, is_base64=bool(self.event.is_base64_encoded)), None
        except InvalidInput as refusal:
            return None, refusal


def read_as(model: type[Model], raw: Any) -> Model:
    """What a request brings, as a model of it. Raises Misshapen, answered as InvalidInput."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise Misshapen(InvalidInput, error) from None
