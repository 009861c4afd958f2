"""What nobody should send, for every parameter of an API: made from its own description, always the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from tests.described import Known

LONG, WIDE = 1_100, 1_000
"""Characters: more than a sort key of DynamoDB has bytes; and fewer, but of two bytes each."""

DEEP = (101, 900, 980, 50_000)
"""Brackets in each other."""

PATCHES = {"JobPatch": "JobBody", "SchedulePatch": "ScheduleBody"}
"""Models whose fields are those of another, and are read by the same rules once they are merged."""

_DEPTH = 4
"""Of fields in fields that are looked at."""

Keys = tuple[str | int, ...]
"""Where something is in a body."""


class Raw(str):
    """JSON as it is written: numbers that Python has no value for, and halves of surrogate pairs."""

    __slots__ = ()


_INSTANTS = (
    *("0001-01-01", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00-14:00"),
    *("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59-14:00", "2199-12-31T23:59:59Z", "1900-01-01T00:00:00Z"),
    *("1969-12-31T23:59:59.999Z", "2027-02-30T00:00:00Z", "2027-01-31T09:00:00", "2027-01-31T09:00:00+99:99"),
)
_LOCAL_TIMES = (
    "0001-01-01T00:00",
    "1899-12-31T23:59:59",
    "1900-01-01T00:00",
    "2200-01-01T00:00",
    "9999-12-31T23:59:59",
)
_DURATIONS = ("P0D", "P999999W", "-P999999W", "PT9999999999M", "PT0.0000001S", "P1Y")
_NUMBERS = ("0", "-1", "1e400", "-1e400", "1e-400", "9" * 400, "nan", "inf", "0x10", "1_000", "٣")
_NAMES = ("", " ", ".", "..", "../..", "a" * LONG, "ü" * WIDE, "😀" * 300, "a#b", "a~b", "a:b", "a/b", "?", "~")
_BYTES = ("\x00", "\x1b[31m", "a\nb", "\u2028", "\ufffe", "%", "%zz", "%00", "%2e%2e", "&a=b", "'\"")
_BOOKMARKS = (
    *("~~~", "0~0~0~", "zzzzzz~zzzzzz~~x", "zzzzzzzzzzzzzzzzzzzz~zzzzzzzzzzzzz~zzzzzzzzzzzz~x", "-1~-1~-1~x"),
    *(f"1~mz3q8w00~~{identity}" for identity in ("a" * 999, "a" * 1_000, "ü" * 500)),
    *("////", "!!!!", "eyJhIjoxfQ==", "eyJhIjox", "null"),
)
_IDS = (
    *(
        "j1~acme~2e~0~0~0~x",
        "j1~acme~2e~zzzzzzzzzzzzzzzz~zzzz~2a~x",
        "j1~acme~2l~zzzzzzzzzzz~zzzz~1rw5tq00~x",
        "j2~a~b",
    ),
    *("j1~acme~9e~1~0~1~x", "j1~..~2e~1~0~1~x", f"j1~acme~2e~1~0~mz3q8w00~{'x' * 200}"),
    *(f"d1~acme~mz3q8w00~{identity}" for identity in ("a" * 999, "a" * 1_000, "ü" * 499, "ü" * 500, "#")),
    *("d1~~mz3q8w00~\x00", "d1~acme~0~x", "d1~acme~1rw5tq00~x", "d1~acme~zzzzzzzzzz~x", "d1~..~1~x"),
    *("o" + "0" * 25, "o" + "z" * 25),
)
TEXTS = (*_NAMES, *_BYTES, *_NUMBERS, *_INSTANTS, *_DURATIONS, *_BOOKMARKS, *_IDS)
"""For what stands in a path, a query or a header."""

_ANY = (
    *(Raw(text) for text in ("NaN", "-1e400", "-1", "1.5", "9" * 40, "9" * 400, '"\\ud800"', "[" * 900 + "]" * 900)),
    *(None, True, [], {}, {"": ""}, {"a" * LONG: "ü" * WIDE}, ["a"] * 1_000, "", "a" * LONG, "ü" * WIDE, "\x00"),
)
_TARGETS = (f"https://{'a' * 900}.example/", "handler:", "arn:aws:sqs:::", "https://[::1", "https://ü.example")
_RULES = ("99 99 * * *", "* * * * * * *", "FREQ=SECONDLY", "FREQ=YEARLY;BYMONTH=13", "America/Nowhere", "🕐")
_BY_TYPE: Mapping[str, Sequence[Any]] = {
    "date-time": _INSTANTS,
    "duration": _DURATIONS,
    "number": [Raw(text) for text in ("Infinity", "1e400", "1e-400", "-0.0", "0", "9223372036854775808", "1e15")],
    "string": (*_NAMES[1:], *_BYTES[1:8], *_BOOKMARKS[:4], *_TARGETS, *_RULES, *_LOCAL_TIMES, Raw('"\\udc00\\ud800"')),
}
"""For a field of a body that may be of a type, or a format, beside what is for any."""

BODIES = (
    *("", " ", "{", "null", "0", '"x"', "[]", "[{}]", "{}", '{"":{}}', "NaN", "\x00", "\ufeff{}", '{"a":1,"a":2}'),
    *(json.dumps({"a" * LONG: 1}), "9" * 5_000, '"\\ud800"', '{"\\ud800":1}'),
    *(text for depth in DEEP for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth, "[" * depth)),
)
"""For a whole body."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request, and in a word what is wrong with it."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    what: str = ""


def requests_of(document: dict[str, Any], operation: str, known: Known) -> Iterator[Request]:
    """Requests of an operation (`GET /v1/jobs/{id}`): one that is as it should be, then each with one hostile value.

    Texts that are known of other operations are hostile too.
    """
    asked = _Operation(document, operation, known)
    yield asked.request()
    foreign = {each for values in known.values() for each in values if isinstance(each, str)}
    for place, name in asked.usual:
        for text in (*TEXTS, *sorted(foreign)):
            yield asked.request({(place, name): text}, what=f"{place} {name} is {text[:40]!r}")
    for text in BODIES:
        yield asked.request(body=text, what=f"the body is {text[:40]!r}")
    for keys, types in asked.fields().items():
        for value in (*_ANY, *(each for kind in sorted(types & set(_BY_TYPE)) for each in _BY_TYPE[kind])):
            yield asked.request(
                body=_written(_with(asked.body_with(keys), keys, value)), what=f"{keys} is {value!r:.40}"
            )


class _Operation:
    """An operation, with something that can be asked for in each of its places.

    usual: by place and name of each parameter. body: None where there is none.
    """

    def __init__(self, document: dict[str, Any], operation: str, known: Known) -> None:
        self._method, self._path = operation.split()
        self._models, self._known = document["components"]["schemas"], known
        item = document["paths"][self._path]
        described = item[self._method.lower()]
        parameters = [*item.get("parameters", ()), *described.get("parameters", ())]
        self.usual = {(each["in"], each["name"]): self._value_of(each) for each in parameters}
        self._required = {(each["in"], each["name"]) for each in parameters if each["required"]}
        contents = [*described.get("requestBody", {}).get("content", {}).values()]
        self._schema: Any = contents[0]["schema"] if contents else {}
        self.body = self._example_of(self._schema) if contents else None

    def request(
        self, hostile: Mapping[tuple[str, str], str] | None = None, *, body: str | None = None, what: str = ""
    ) -> Request:
        """A request in which only this is not as it should be."""
        given = {place: self.usual[place] for place in self.usual if place in self._required} | dict(hostile or {})
        path = self._path
        for (place, name), text in given.items():
            if place == "path":
                path = path.replace(f"{{{name}}}", quote(text, safe=""))
        if body is None and self.body is not None:
            body = _written(self.body)
        queried = {name: text for (place, name), text in given.items() if place == "query"}
        headers = {name.lower(): text for (place, name), text in given.items() if place == "header"}
        return Request(self._method, path, queried, headers, body, what)

    def body_with(self, keys: Keys) -> Any:
        """A body that is as it should be, of those that are known one that has the field: it may exclude others."""
        model = self._schema.get("$ref", "").rpartition("/")[2]
        return next((body for body in self._known.get(model, ()) if keys and keys[0] in body), self.body)

    def fields(self) -> dict[Keys, set[str]]:
        """Where a body has fields, as the description tells, and of which types and formats each may be."""
        found: dict[Keys, set[str]] = {}
        is_patch = self._schema.get("$ref", "").rpartition("/")[2] in PATCHES
        self._find_fields(self._schema, (), found, depth=1 if is_patch else _DEPTH)
        return found

    def _find_fields(self, schema: dict[str, Any], place: Keys, found: dict[Keys, set[str]], *, depth: int) -> None:
        if place:
            types = {schema.get("type", "string"), schema.get("format", "string")}
            found.setdefault(place, set()).update("number" if each == "integer" else each for each in types)
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            self._find_fields(self._models[PATCHES.get(name, name)], place, found, depth=depth)
        for each in schema.get("anyOf", ()):
            self._find_fields(each, place, found, depth=depth)
        if len(place) < depth:
            for name, described in schema.get("properties", {}).items():
                self._find_fields(described, (*place, name), found, depth=depth)
            if "items" in schema:
                self._find_fields(schema["items"], (*place, 0), found, depth=depth)

    def _value_of(self, parameter: dict[str, Any]) -> str:
        ids = next((ids for beginning, ids in self._known.items() if self._path.startswith(f"{beginning}/")), ())
        values = self._known.get(parameter["name"], ids if parameter["in"] == "path" else ())
        return str(values[0] if values else self._example_of(parameter["schema"]))

    def _example_of(self, schema: dict[str, Any]) -> Any:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._known[name][0] if name in self._known else self._example_of(self._models[name])
        if "anyOf" in schema:
            return self._example_of(schema["anyOf"][0])
        if schema.get("type") == "object":
            fields = schema.get("properties", {})
            return {
                name: self._known[name][0] if name in self._known else self._example_of(fields[name])
                for name in schema.get("required", ())
            }
        if schema.get("type") == "array":
            return [self._example_of(schema["items"])]
        return 1 if schema.get("type") in ("integer", "number") else schema.get("enum", ["x"])[0]


def _with(body: Any, keys: Keys, value: Any) -> Any:
    """The body with a value in a place; what is missing on the way there is made."""
    if not keys:
        return value
    key, behind = keys[0], keys[1:]
    if isinstance(key, int):
        return [_with(body[0] if isinstance(body, list) and body else None, behind, value)]
    fields: dict[str, Any] = body if isinstance(body, dict) else {}
    return {**fields, key: _with(fields.get(key), behind, value)}


def _written(body: Any) -> str:
    """As JSON, with what is raw as it is."""
    if isinstance(body, Raw):
        return str(body)
    if isinstance(body, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_written(each)}" for name, each in body.items()) + "}"
    if isinstance(body, list):
        return "[" + ",".join(map(_written, body)) + "]"
    return json.dumps(body)
