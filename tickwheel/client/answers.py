"""Values of what the scheduler answered, read by the names and the types of their fields."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import date, datetime, timedelta
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from tickwheel.client.instants import parse_instant
from tickwheel.client.words import Word
from tickwheel.errors import Unreachable

T = TypeVar("T")
_ABSENT = object()


@dataclass(frozen=True)
class Wire:
    """Annotates a field that has another name in the answer than in its value, or is read otherwise than by its type.

    path: names with dots between, or "" for the whole answer; None for the field's own name. or_else: where nothing stands there.
    """

    path: str | None = None
    or_else: str | None = None
    read: Callable[[Any], Any] | None = None


class Answer:
    """Base of a dataclass that is read from what the scheduler answered."""

    @classmethod
    def from_json(cls, body: Any) -> Self:
        """Reads the scheduler's answer; fields of a newer scheduler are ignored, and what may be None may be missing.

        Raises KeyError, TypeError, AttributeError or ValueError where a field is missing or is none of its type.
        """
        return cls(**{name: read(body) for name, read in _readers_of(cls)})


def read_answer(read: Callable[[Any], T], body: Any, *, is_secret: bool = False) -> T:
    """What `read` makes of an answer; raises Unreachable when it makes nothing of it, without repeating a secret one."""
    try:
        return read(body)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        message = "the scheduler's answer is not understood"
        if is_secret:
            raise Unreachable(message, may_have_been_applied=True) from None
        message += f" ({error!r}): {json.dumps(body)[:200]}"
        raise Unreachable(message, may_have_been_applied=True) from error


def wires_of(kind: type[Answer]) -> Iterator[tuple[Field[Any], Any, Wire]]:
    """The fields of a value with their types, and where they stand in the answer."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):  # type: ignore[arg-type]  # those that are read are dataclasses
        hint, wire = hints[field.name], Wire()
        if get_origin(hint) is Annotated:
            hint, wire = get_args(hint)
        yield field, hint, wire


@cache
def _readers_of(kind: type[Answer]) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    return tuple((field.name, _reader_of(field, hint, wire)) for field, hint, wire in wires_of(kind))


def _reader_of(field: Field[Any], hint: Any, wire: Wire) -> Callable[[Any], Any]:
    paths = [field.name if wire.path is None else wire.path, *([wire.or_else] if wire.or_else else [])]
    names = [path.split(".") if path else [] for path in paths]
    convert = wire.read or _converter_of(hint)
    may_be_none = hint is Any or NoneType in get_args(hint)

    def read(body: Any) -> Any:
        for path in names:
            value = _at(body, path)
            if value is not _ABSENT:
                return None if value is None and may_be_none else convert(value)
        return _default_of(field, may_be_none=may_be_none, path=paths[0])

    return read


def _at(body: Any, path: list[str]) -> Any:
    for name in path:
        if body is None or name not in body:
            return _ABSENT
        body = body[name]
    return body


def _default_of(field: Field[Any], *, may_be_none: bool, path: str) -> Any:
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    if may_be_none:
        return None
    raise KeyError(path)


def _converter_of(hint: Any) -> Callable[[Any], Any]:
    """How JSON becomes a value of a type; a text, and what may be of several types, is taken as it is."""
    kinds = [kind for kind in get_args(hint) if kind is not NoneType] if _is_union(hint) else [hint]
    kind = get_origin(kinds[0]) or kinds[0]
    if len(kinds) > 1:
        return _as_it_is
    if kind is tuple:
        each = _converter_of(get_args(kinds[0])[0])
        return lambda values: tuple(each(value) for value in values)
    if kind is Mapping:
        key, value = map(_converter_of, get_args(kinds[0]))
        return lambda entries: {key(name): value(each) for name, each in entries.items()}
    if isinstance(kind, type) and issubclass(kind, Answer):
        return kind.from_json
    if isinstance(kind, type) and issubclass(kind, Word):
        return kind
    return _CONVERTERS.get(kind, _as_it_is)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _as_it_is(value: Any) -> Any:
    return value


def _seconds(value: Any) -> timedelta:
    return timedelta(seconds=value)


_CONVERTERS: Mapping[Any, Callable[[Any], Any]] = {
    datetime: parse_instant,
    date: date.fromisoformat,
    timedelta: _seconds,
    bool: bool,
    int: int,
    float: float,
}
