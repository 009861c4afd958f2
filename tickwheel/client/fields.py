"""Fields of what is sent: read from JSON one by one, and checked so that every problem is named at once."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Protocol, cast, get_args, runtime_checkable

from tickwheel.client.durations import seconds
from tickwheel.client.instants import format_instant
from tickwheel.errors import FieldProblem, InvalidRequest


@runtime_checkable
class _Part(Protocol):
    def as_json(self) -> dict[str, Any]: ...


class Reader:
    """Takes the fields of a JSON object one by one and gathers what is wrong with them."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._left = dict(body)
        self.problems: list[FieldProblem] = []

    def take(self, field: str, parse: Callable[[Any], Any] | None = None) -> Any:
        """The value of a field, parsed; None where there is none, or where it is noted as a problem."""
        value = self._left.pop(field, None)
        if value is None or parse is None:
            return value
        try:
            return parse(value)
        except InvalidRequest as invalid:
            self.problems += invalid.problems
        except ValueError as error:
            self.problems.append(FieldProblem(field, str(error)))
        return None

    def refuse_the_rest(self, whole: str) -> None:
        """Notes a problem for each field that has not been taken: there is none of that name in the whole."""
        self.problems += [FieldProblem(field, f"is not a field of {whole}") for field in self._left]


def text_problems(field: str, value: Any) -> list[FieldProblem]:
    """A text that must be there."""
    if isinstance(value, str) and value:
        return []
    return [FieldProblem(field, "is required" if value in (None, "") else "is a string", value or None)]


def choice_problems(field: str, value: Any, choices: Any) -> list[FieldProblem]:
    """One of the texts of a Literal, or None."""
    allowed = cast("tuple[str, ...]", get_args(choices))
    return [] if value is None or value in allowed else [FieldProblem(field, f"is one of {', '.join(allowed)}", value)]


def instant_problems(field: str, value: Any) -> list[FieldProblem]:
    """An aware datetime, or None."""
    if value is None:
        return []
    if not isinstance(value, datetime):
        return [FieldProblem(field, "is a datetime", value)]
    if value.tzinfo is None or value.utcoffset() is None:
        message = "has no time zone: use an aware datetime, such as datetime.now(UTC)"
        return [FieldProblem(field, message, value.isoformat())]
    return []


def duration_problems(field: str, value: Any) -> list[FieldProblem]:
    """A timedelta that is not negative, or None."""
    if value is None:
        return []
    if not isinstance(value, timedelta):
        return [FieldProblem(field, "is a timedelta", value)]
    return [FieldProblem(field, "is not negative", str(value))] if value < timedelta(0) else []


def flag_problems(field: str, value: Any) -> list[FieldProblem]:
    """True, False or None."""
    return [] if value is None or isinstance(value, bool) else [FieldProblem(field, "is true or false", value)]


def list_problems(field: str, value: Any, kind: type[str | int], what: str) -> list[FieldProblem]:
    """A sequence of values of a kind; what: they are, for people."""
    # A text is a sequence too, and a bool a whole number.
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if is_list and all(isinstance(each, kind) and not isinstance(each, bool) for each in value):
        return []
    return [FieldProblem(field, f"is a list of {what}", value)]


def header_problems(field: str, value: Any) -> list[FieldProblem]:
    """Texts by their names; neither is repeated, because a value may be a secret."""
    if isinstance(value, Mapping) and all(isinstance(text, str) for header in value.items() for text in header):
        return []
    return [FieldProblem(field, "is a mapping of names to texts")]


def payload_problems(payload: Any) -> list[FieldProblem]:
    """Anything that JSON can say."""
    try:
        json.dumps(payload, allow_nan=False)
    except (TypeError, ValueError) as error:
        return [FieldProblem("payload", f"is not JSON: {error}")]
    return []


def optional_seconds(duration: timedelta | None) -> int | float | None:
    """A duration as the API takes it, or None."""
    return None if duration is None else seconds(duration)


def without_none(fields: dict[str, Any]) -> dict[str, Any]:
    """What has been said of these fields."""
    return {name: value for name, value in fields.items() if value is not None}


def said(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What has been said of these fields, as the API takes it: only a payload may be an empty list or object."""
    found = {name: value if name == "payload" else _as_sent(value) for name, value in fields.items()}
    return {
        name: value
        for name, value in found.items()
        if value is not None and (name == "payload" or value not in ([], {}))
    }


def _as_sent(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return seconds(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return [_as_sent(each) for each in value]
    return value.as_json() if isinstance(value, _Part) else value
