"""Python functions that jobs call as `handler:NAME`: they run inside the worker.

    @handler("invoice")
    def send_invoice(payload: Order, invocation: Invocation) -> dict[str, int]:
        ...

A handler raises to fail its attempt, and what it returns, a JSON value, is the job's result. It may be called again for the
same job: `invocation.idempotency_key` is the same then, and `invocation.fence` larger.

This module is copied into the worker's package, where nothing else of `tickwheel` is. It needs the standard library, and
pydantic where a handler says of which type its payload is.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar, get_type_hints, overload

__all__ = ["HANDLERS", "Handler", "InvalidPayload", "Invocation", "PermanentFailure", "handler"]

F = TypeVar("F", bound=Callable[..., Any])

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
"""What the name of a handler may be."""

MOST_TAKEN = 2
"""Parameters of a handler: the payload and the invocation."""

_MOST_FIELDS = 10
_UNTYPED = (inspect.Parameter.empty, Any, object)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What a handler receives about the attempt that calls it.

    idempotency_key: the same for every attempt of a job. attempt: from 1. fence: grows with each claim of the job.
    scheduled_at, deadline: aware, in UTC. traceparent: of W3C Trace Context, with the attempt as the parent.
    """

    job_id: str
    tenant: str
    idempotency_key: str
    attempt: int
    fence: int
    scheduled_at: datetime
    deadline: datetime
    traceparent: str


class PermanentFailure(Exception):
    """Raise it where another attempt cannot help: the job becomes a dead letter at once."""

    tickwheel_error_class = "handler_refused"
    """Read by the worker, of whatever exception has it: the failure is not retried."""


class InvalidPayload(PermanentFailure):
    """A payload that is not of the type that its handler takes. fields: what is wrong, by the paths of fields."""

    tickwheel_error_class = "invalid_payload"

    def __init__(self, fields: Mapping[str, str]) -> None:
        self.fields = fields
        super().__init__("; ".join(f"{field}: {message}" for field, message in fields.items()))


class Handler:
    """A registered function. Called as a worker calls it: with the payload as parsed JSON, and the invocation."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        """Raises TypeError for a function that takes more than the payload and the invocation."""
        self.name = name
        self.function = function
        parameters = inspect.signature(function).parameters.values()
        taken = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        needs = [each for each in taken[MOST_TAKEN:] if each.default is each.empty]
        needs += [each for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
        if needs:
            raise TypeError(
                f"handler {name!r} needs {', '.join(each.name for each in needs)}: it is called with a payload and an "
                "invocation, and with nothing else"
            )
        self._takes = MOST_TAKEN if any(each.kind is each.VAR_POSITIONAL for each in parameters) else len(taken)
        self._first = taken[0] if taken else None

    def __call__(self, payload: Any, invocation: Any) -> Any:
        """Its value, or what to await for it. Raises InvalidPayload before the function is called."""
        given = (self._read(payload), invocation)
        value = self.function(*given[: self._takes])
        return _awaited(value) if inspect.isawaitable(value) else _plain(value)

    def _read(self, payload: Any) -> Any:
        if self._adapter is None:
            return payload
        from pydantic import ValidationError

        try:
            # As JSON: in its strictest types a date is a text there, and a tuple a list.
            return self._adapter.validate_json(json.dumps(payload))
        except ValidationError as error:
            raise InvalidPayload(dict(_problems_of(error))) from None

    @cached_property
    def _adapter(self) -> Any:
        """What checks the payload; None where the function does not say of which type it is."""
        if self._first is None or self._first.annotation in _UNTYPED:
            return None
        annotation = get_type_hints(self.function, include_extras=True).get(self._first.name, Any)
        if annotation in _UNTYPED:
            return None
        from pydantic import TypeAdapter

        return TypeAdapter(annotation)


_handlers: dict[str, Handler] = {}

HANDLERS: Mapping[str, Handler] = MappingProxyType(_handlers)
"""What is registered in this process, by name."""


@overload
def handler(name: F, /) -> F: ...
@overload
def handler(name: str | None = None, /) -> Callable[[F], F]: ...
def handler(name: Any = None, /) -> Any:
    """Register a function, or a coroutine function, as `handler:NAME`; without a name, under its own.

    It takes the payload and the invocation, the payload alone, or nothing. An annotated payload is checked: by pydantic, of any
    type that it knows. The function stays as it is, to be called in tests.

    Write the name as a literal: a deployment reads it without running the code. Raises ValueError for a name that is taken or
    cannot be one, TypeError for a function that cannot be called as a handler.
    """
    if callable(name):
        return handler()(name)

    def register(function: F) -> F:
        given = name if name is not None else getattr(function, "__name__", "")
        if not NAME.fullmatch(given):
            raise ValueError(f"a handler cannot be called {given!r}: use {NAME.pattern}")
        known = _handlers.get(given)
        if known is not None and not _is_again(known.function, function):
            raise ValueError(
                f"there are two handlers called {given!r}: {_place(known.function)} and {_place(function)}"
            )
        _handlers[given] = Handler(given, function)
        return function

    return register


def _is_again(before: Callable[..., Any], now: Callable[..., Any]) -> bool:
    """Whether a module that is loaded again registers what it has registered before."""
    return _place(before) == _place(now)


def _place(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', '?')}"


async def _awaited(value: Awaitable[Any]) -> Any:
    return _plain(await value)


def _plain(value: Any) -> Any:
    """A value as JSON has it, where it is a model of pydantic."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if dump is not None else value


def _problems_of(error: Any) -> Iterator[tuple[str, str]]:
    """By field. Without the values: what a payload holds belongs into no error."""
    for found in error.errors(include_url=False, include_input=False)[:_MOST_FIELDS]:
        yield ".".join(map(str, found["loc"])) or "payload", found["msg"]
    if (left := error.error_count() - _MOST_FIELDS) > 0:
        yield "…", f"{left} more"
