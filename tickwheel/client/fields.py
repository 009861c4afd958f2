"""Fields of what is sent: read from JSON one by one, and checked so that every problem is named at once."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from tickwheel.client.durations import seconds
from tickwheel.client.instants import format_instant
from tickwheel.errors import FieldProblem, InvalidRequest

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
Parsers = Mapping[str, Callable[[Any], Any]]
"""How fields are read, by their names."""


class Reader:
    """Takes the fields of a JSON object one by one and gathers what is wrong with them. prefix: of their names in that."""

    def __init__(self, body: Mapping[str, Any], *, prefix: str = "") -> None:
        self._left = dict(body)
        self._prefix = prefix
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
            self.problems.append(FieldProblem(self._prefix + field, str(error)))
        return None

    def take_all(self, names: Iterable[str], parsers: Parsers) -> dict[str, Any]:
        """What there is of these fields, each read by its parser, or as it is."""
        return without_none({name: self.take(name, parsers.get(name)) for name in names})

    def refuse_the_rest(self, whole: str) -> None:
        """Notes a problem for each field that has not been taken: there is none of that name in the whole."""
        self.problems += [FieldProblem(self._prefix + field, f"is not a field of {whole}") for field in self._left]

    def make(
        self,
        kind: Callable[..., T],
        values: Mapping[str, Any],
        error: type[InvalidRequest],
        aliases: Mapping[str, str] = MappingProxyType({}),
    ) -> T:
        """The value of what was taken, or raises all problems: those that reading found, and what else the value has.

        aliases: what problems of the value call a field.
        """
        try:
            made = kind(**values)
        except error as invalid:
            unread = {problem.field.partition(".")[0] for problem in self.problems}
            unread |= {aliases[name] for name in unread if name in aliases}
            self.problems += [each for each in invalid.problems if each.field.partition(".")[0] not in unread]
        else:
            if not self.problems:
                return made
        raise error(self.problems)


def read_part(
    name: str,
    body: Any,
    kind: Callable[..., T],
    error: type[InvalidRequest],
    *,
    names: Iterable[str],
    whole: str,
    parsers: Parsers = MappingProxyType({}),
    is_secret: bool = False,
) -> T:
    """A value of the fields of a JSON object that is a part of a request; raises all problems, by their names in it."""
    if not isinstance(body, dict):
        raise error([FieldProblem(name, "is a JSON object", None if is_secret else body)])
    reader = Reader(body, prefix=f"{name}.")
    values = reader.take_all(names, parsers)
    reader.refuse_the_rest(whole)
    if reader.problems:
        raise error(reader.problems)
    return kind(**values)


def names_of(kind: type["DataclassInstance"]) -> list[str]:
    """The names of the fields of a value."""
    return [field.name for field in fields(kind)]


def text_problems(field: str, value: Any) -> list[FieldProblem]:
    """A text that must be there."""
    if isinstance(value, str) and value:
        return []
    return [FieldProblem(field, "is required" if value in (None, "") else "is a string", value or None)]


def choice_problems(field: str, value: Any, choices: Any) -> list[FieldProblem]:
    """One of the texts of a Literal or an enum, or None."""
    allowed = cast("tuple[str, ...]", get_args(choices) or tuple(choices))
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


def duration_list_problems(field: str, value: Any) -> list[FieldProblem]:
    """A sequence of timedeltas that are not negative."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return [FieldProblem(field, "is a list of timedeltas", value)]
    return [problem for each in value for problem in duration_problems(field, each)]


def flag_problems(field: str, value: Any) -> list[FieldProblem]:
    """True, False or None."""
    return [] if value is None or isinstance(value, bool) else [FieldProblem(field, "is true or false", value)]


def count_problems(field: str, value: Any) -> list[FieldProblem]:
    """A whole number, or None."""
    is_count = value is None or (isinstance(value, int) and not isinstance(value, bool))
    return [] if is_count else [FieldProblem(field, "is a whole number", value)]


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


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    """What has been said of these fields."""
    return {name: value for name, value in values.items() if value is not None}


def said(values: Mapping[str, Any]) -> dict[str, Any]:
    """What has been said of these fields, as the API takes it: only a payload may be an empty list or object."""
    found = {name: value if name == "payload" else _as_sent(value) for name, value in values.items()}
    return {
        name: value
        for name, value in found.items()
        if value is not None and (name == "payload" or value not in ([], {}))
    }


def _as_sent(value: Any) -> Any:
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, timedelta):
        return seconds(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return [_as_sent(each) for each in value]
    return value.as_json()


def encode(body: Any) -> bytes:
    """The body of a request in compact JSON."""
    return json.dumps(body, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
