"""What a log may contain of an exception: its kind and its place, and no text that somebody else wrote.

Libraries put into their texts what they were given: a body that is not JSON, the value of a header, a URL with its query,
the parameters of a request. Which of them do so changes with their versions, so that no pattern would find it all.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

from functions.domain.errors import InvalidInput, TickwheelError, Undecodable

_QUOTING = (InvalidInput, Undecodable)
"""Errors of Tickwheel whose texts repeat what they are about."""

_OWN = __name__.removesuffix("domain.faults")
_MOST_FRAMES = 50


def fault_of(error: BaseException) -> str:
    """An exception in a line: `ClientError ThrottlingException of UpdateItem at functions.services.telemetry.usage:107`.

    The text of Tickwheel's own errors is included, where it repeats no input.
    """
    where = next(
        (_place(frame, line) for frame, line in reversed(_frames(error)) if _module(frame).startswith(_OWN)), ""
    )
    return f"{_what(error)}{f' at {where}' if where else ''}"


def places_of(error: BaseException) -> list[str]:
    """How it came to be, outermost call first: each exception, then what it was raised because of."""
    lines: list[str] = []
    for each in _chain(error):
        lines.append(_what(each))
        lines += [f"{_place(frame, line)} {frame.f_code.co_name}" for frame, line in _frames(each)]
    return lines[:_MOST_FRAMES]


def _what(error: BaseException) -> str:
    name = type(error).__name__
    if isinstance(error, TickwheelError):
        return name if isinstance(error, _QUOTING) else f"{name}: {error}"
    return " ".join([name, *_reported_by_aws(error)])


def _reported_by_aws(error: BaseException) -> Iterator[str]:
    """The codes in an error of botocore, which stand in a response beside its text; and the call that it answers."""
    response: Any = getattr(error, "response", None)
    if not isinstance(response, dict):
        return
    yield str(response.get("Error", {}).get("Code", ""))
    yield from (str(reason.get("Code")) for reason in response.get("CancellationReasons", ()))
    yield f"of {getattr(error, 'operation_name', '')}"


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    return list(traceback.walk_tb(error.__traceback__))


def _place(frame: FrameType, line: int) -> str:
    return f"{_module(frame)}:{line}"


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
