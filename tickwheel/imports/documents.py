"""Files of other people, within bounds: their text, and JSON and YAML whose objects know the line on which they begin."""

import json
import sys
from bisect import bisect_right
from datetime import date, datetime
from json import decoder, scanner
from pathlib import Path
from typing import Any

from tickwheel.imports.fields import Unreadable

MOST_BYTES = 8_000_000
MOST_FILES = 2_000
MOST_NODES = 400_000
MOST_DEPTH = 60
STANDARD_INPUT = Path("-")


class Lined(dict[str, Any]):
    """An object of a document. line: on which it begins, from 1."""

    line: int = 0


def line_of(value: Any, default: int = 0) -> int:
    """The line of an object; that of the thing around it where it knows none."""
    return (value.line or default) if isinstance(value, Lined) else default


def files_of(paths: list[Path], suffixes: tuple[str, ...]) -> list[Path]:
    """The files themselves, and those of folders that have one of these suffixes. Raises Unreadable."""
    found: list[Path] = []
    for path in paths:
        inside = (each for each in sorted(path.rglob("*")) if each.suffix in suffixes) if path.is_dir() else (path,)
        for each in inside:
            found.append(each)
            if len(found) > MOST_FILES:
                raise Unreadable(f"{path} has more than {MOST_FILES} files: name fewer")
    return found


def read_bytes(path: Path) -> bytes:
    """What is in a file, or standard input for `-`. Raises Unreadable for what cannot be read, or is too large."""
    try:
        if path == STANDARD_INPUT:
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error}") from None
    if len(data) > MOST_BYTES:
        raise Unreadable(f"is larger than {MOST_BYTES:,} bytes")
    return data


def text_of(data: bytes) -> str:
    """The text of a file. Raises Unreadable."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not UTF-8: {error}") from None


def read_json(text: str) -> Any:
    """A JSON document. Raises Unreadable."""
    try:
        return _LinedDecoder(text).decode(text)
    except RecursionError:
        raise Unreadable("is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"is not JSON: {error}") from None


def plain(value: Any) -> Any:
    """A value as JSON has it, however often a document refers to a part of it. Raises Unreadable where that is too large."""
    return _plain(value, [MOST_NODES], 0)


def _plain(value: Any, left: list[int], depth: int) -> Any:
    left[0] -= 1
    if left[0] < 0 or depth > MOST_DEPTH:
        raise Unreadable(f"has a value with more than {MOST_NODES:,} parts, or nested more than {MOST_DEPTH} deep")
    if isinstance(value, dict):
        return {str(name): _plain(each, left, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, left, depth + 1) for each in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise Unreadable(f"has a value that JSON does not have: {type(value).__name__}")


class _LinedDecoder(json.JSONDecoder):
    """Notes of each object where it begins: the decoder in C does not tell."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._ends = [place for place, letter in enumerate(text) if letter == "\n"]
        self.parse_object = self._object
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]

    def _object(self, place: tuple[str, int], *rest: Any) -> tuple[Lined, int]:
        values, end = decoder.JSONObject(place, *rest)  # type: ignore[attr-defined]
        found = Lined(values)
        found.line = bisect_right(self._ends, place[1] - 1) + 1
        return found, end
