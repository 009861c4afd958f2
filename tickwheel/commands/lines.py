"""Files with one JSON object a line, each of whose lines ends in exactly one account of it."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tickwheel.commands.terminal import usage
from tickwheel.errors import FieldProblem, InvalidRequest, TickwheelError

T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """A line of the file, with its number from 1."""

    number: int
    text: str


@dataclass(frozen=True)
class Failed:
    """A line that was not taken, or may not have been."""

    line: Line
    error: TickwheelError


def read_lines(file: Path) -> list[Line]:
    """The lines of the file, or of standard input for `-`, that say something.

    A file that cannot be read, or in which no line says anything, is wrong usage.
    """
    try:
        raw = sys.stdin.buffer.read() if file == Path("-") else file.read_bytes()
        texts = raw.decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        usage(f"{file} cannot be read: {error}")
    lines = [Line(number, text) for number, text in enumerate(texts, start=1) if text.strip()]
    if not lines:
        usage(f"{file} has no lines")
    return lines


def parse_line(line: Line, read: Callable[[Any], T], error: type[InvalidRequest]) -> T:
    """What is read of the JSON of a line; raises the error, of what is no JSON too."""
    try:
        body = json.loads(line.text)
    except ValueError as wrong:
        raise error([FieldProblem("line", f"is not JSON: {wrong}")]) from None
    return read(body)
