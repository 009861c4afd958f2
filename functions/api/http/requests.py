"""What the fields of requests are made of: shapes and texts here, meaning in the domain."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Annotated, Any, LiteralString

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from functions.domain.errors import InvalidInput, InvalidSchedule, UnknownHandler
from functions.domain.instants import EARLIEST, LATEST, format_instant, parse_duration, parse_instant
from functions.domain.jobs.job import TENANT, check_tags, check_tenant
from functions.domain.targets.handler_names import HandlerNames
from functions.domain.targets.targets import DEFAULT_TARGETS, AllowedTargets

HORIZON = timedelta(days=3_653)
"""How far ahead a job may be due: ten years."""

UNKNOWN_HANDLER = "unknown_handler"
"""The type of a problem of a field that names a handler which the stage does not have."""

MAX_DEPTH = 100
"""How many lists and objects may be inside each other in a body. Readers may limit it (RFC 8259, 9), and targets do."""


class StrictModel(BaseModel):
    """What a request brings: what is not a field is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    def by_name(self, *names: str) -> dict[str, Any]:
        """The values of these fields, for what calls them the same."""
        return {name: getattr(self, name) for name in names}


class Rules(BaseModel):
    """What a stage allows, and the time of the request: the context that a body is validated in."""

    model_config = ConfigDict(frozen=True, defer_build=True, arbitrary_types_allowed=True)

    now: datetime
    allow_plain_http: bool
    max_timeout: timedelta
    allowed: AllowedTargets = AllowedTargets(DEFAULT_TARGETS)
    handlers: HandlerNames | None = None
    """What may stand behind `handler:`; None where nobody knows."""
    has_key: bool = False
    """The request has an Idempotency-Key header: a repeat may come after its time, and is answered with its first job."""


def read_instant(value: Any) -> datetime:
    """An instant, also for fields of other types that hold one. Raises what pydantic reports as an error of the field."""
    if not isinstance(value, str):
        raise PydanticCustomError("instant", "must be an RFC 3339 text such as 2027-01-31T09:00:00+01:00")
    instant = checked(parse_instant, value)
    if instant < EARLIEST:
        raise PydanticCustomError("earliest", "is earlier than {earliest}", {"earliest": format_instant(EARLIEST)})
    # Behind it there is an end to what a calendar can add.
    if instant > LATEST:
        raise PydanticCustomError("latest", "is later than {latest}", {"latest": format_instant(LATEST)})
    return instant


def _duration(value: Any) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise PydanticCustomError("duration", "must be seconds, or an ISO 8601 duration such as PT90S")
    return checked(parse_duration, value)


def checked(rule: Any, value: Any, /, **options: Any) -> Any:
    """A rule of the domain as a validator: what it refuses becomes a problem of the field."""
    try:
        return rule(value, **options)
    except InvalidInput as error:
        if isinstance(error, UnknownHandler):
            raise PydanticCustomError(UNKNOWN_HANDLER, "{reason}", {"reason": str(error)}) from error
        instead = error.instead if isinstance(error, InvalidSchedule) else ()
        raise PydanticCustomError("rule", "{reason}", {"reason": str(error), "instead": instead}) from error


def obeying(rule: Callable[[Any], object]) -> AfterValidator:
    """Takes what a rule of the domain lets through, as it is; what the rule refuses becomes a problem of the field."""

    def obey(value: Any) -> Any:
        checked(rule, value)
        return value

    return AfterValidator(obey)


def between(least: timedelta, most: timedelta, reason: LiteralString) -> AfterValidator:
    """Takes durations from least to most."""

    def bound(value: timedelta) -> timedelta:
        if not least <= value <= most:
            raise PydanticCustomError("range", reason)
        return value

    return AfterValidator(bound)


def _key(value: str) -> str:
    if not value.isprintable():
        raise PydanticCustomError("idempotency_key", "must be printable characters")
    return value


Tenant = Annotated[
    str,
    obeying(check_tenant),
    WithJsonSchema({"type": "string", "pattern": f"^{TENANT.pattern}$"}),
]
NewTenant = Annotated[Tenant, WithJsonSchema({"type": "string", "pattern": rf"^(?!\.{{1,2}}$){TENANT.pattern}$"})]
"""A tenant's id as the description has it; whether it is new is looked at where it may be."""

IdempotencyKey = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_key)]
Instant = Annotated[
    datetime,
    BeforeValidator(read_instant),
    PlainSerializer(format_instant, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2027-01-31T09:00:00+01:00"]}),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    WithJsonSchema(
        {
            "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "format": "duration"}],
            "description": "A number of seconds, or an ISO 8601 duration without years and months.",
            "examples": [90, "PT1H30M"],
        }
    ),
]

Tag = Annotated[str, obeying(lambda tag: check_tags((tag,)))]


def parse_body(body: str | None, *, is_base64: bool = False) -> Any:
    """The JSON of a request, whatever its content type made of it on the way. Raises InvalidInput."""
    try:
        parsed = json.loads(base64.b64decode(body or "").decode() if is_base64 else body or "")
    except ValueError as error:
        raise InvalidInput(f"the body is not JSON: {error}") from None
    except RecursionError as error:
        raise InvalidInput(f"the body is not JSON that can be read: {error}") from None
    _check_depth(parsed)
    return parsed


def check_key(header: str | None) -> str | None:
    """The Idempotency-Key header, under the rules of the body's. Raises ValidationError."""
    return None if header is None else _KEY.validate_python(header)


_KEY = TypeAdapter(IdempotencyKey)


def _check_depth(value: Any) -> None:
    if not is_flat(value):
        raise InvalidInput(
            f"the body has more than {MAX_DEPTH} lists and objects inside each other: send a flatter one"
        )


def is_flat(value: Any) -> bool:
    """Whether it has at most MAX_DEPTH lists and objects inside each other. Without recursion: how much of that is left depends on who calls."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [each for each in level if isinstance(each, dict | list)]
        if not level:
            return True
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return False


def compact_json(value: Any) -> str:
    """JSON without spaces. NaN, infinities and half of a surrogate pair are not JSON."""
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        text.encode()
    except (ValueError, RecursionError) as error:
        raise PydanticCustomError("payload", "is not JSON: {reason}", {"reason": str(error)}) from error
    return text


def rules_of(info: ValidationInfo) -> Rules:
    """What a validator is given as its context."""
    rules = info.context
    assert isinstance(rules, Rules)
    return rules
