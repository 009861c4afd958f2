"""Jobs or schedules one a line: JSON Lines and CSV, from a file or standard input, read as they are sent and never held as a whole."""

import csv
import json
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Literal

from tickwheel.commands.lines import Line
from tickwheel.commands.terminal import usage

Format = Literal["jsonl", "csv"]
STANDARD_INPUT = Path("-")

_BOM = b"\xef\xbb\xbf"
_LARGEST_CELL = 10_000_000  # above what a request may have
_TEXTS = frozenset(
    (
        *("target", "tenant", "run_at", "delay", "idempotency_key", "priority", "delivery", "precision"),
        *("timeout", "expires_after", "run_deadline", "on_success", "on_failure", "on_end"),
    )
)
"""Fields whose cells are texts, whatever they look like."""


@dataclass(frozen=True)
class Mark:
    """A place in a file: behind so many lines, with a digest of them."""

    lines: int
    digest: str


class Reading:
    """How far a file has been read. begun: where the line begins that was read last."""

    def __init__(self) -> None:
        self.byte_count = 0
        self.line_count = 0
        self._digest = sha256()
        self.begun = self.mark()
        self._marked: Mark | None = None
        self._line = 0

    def mark(self) -> Mark:
        """Where it stands."""
        return Mark(self.line_count, self._digest.hexdigest())

    def look_for(self, line_count: int) -> None:
        """Marks the place behind so many lines, once it is reached."""
        self._line = line_count
        self._look()

    def found(self) -> Mark | None:
        """The place that was to be marked; None before it was reached."""
        return self._marked

    def begin(self) -> None:
        """A line begins here; a row of a CSV file may have several of a text."""
        self.begun = self.mark()

    def note(self, raw: bytes) -> None:
        """Counts a line of text."""
        self.byte_count += len(raw)
        self.line_count += 1
        self._digest.update(raw)
        self._look()

    def _look(self) -> None:
        if self.line_count == self._line:
            self._marked = self.mark()


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """A file, or standard input for `-`; one that cannot be read is wrong usage."""
    if file == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    try:
        source = file.open("rb")
    except OSError as error:
        usage(f"{file} cannot be read: {error}")
    with source:
        yield source


def lines_of(
    source: BinaryIO, form: Format, reading: Reading, *, texts: Collection[str] | None = None
) -> Iterator[Line]:
    """The lines that say something, with their numbers from 1; a row of a CSV file as the JSON that it means.

    texts: columns whose cells are texts, whatever they look like; those of jobs, unless it is said. Bytes that are no UTF-8 are kept as surrogates, so that a refused line can be kept as it was.
    """
    said = _texts_of(source, form, reading)
    if form == "csv":
        yield from _rows(said, reading, _TEXTS if texts is None else texts)
        return
    for text in said:
        if text.strip():
            yield Line(reading.line_count, text.rstrip("\r\n"))


def _texts_of(source: BinaryIO, form: Format, reading: Reading) -> Iterator[str]:
    for raw in source:
        said = raw.removeprefix(_BOM) if reading.line_count == 0 else raw
        if form == "jsonl":
            reading.begin()
        reading.note(raw)
        yield said.decode("utf-8", errors="surrogateescape")


def _rows(said: Iterator[str], reading: Reading, texts: Collection[str]) -> Iterator[Line]:
    csv.field_size_limit(_LARGEST_CELL)
    heading = next(said, "")
    names = [name.strip() for name in next(csv.reader([heading]), [])]
    rows = csv.reader(said)
    while True:
        reading.begin()
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield Line(reading.line_count, json.dumps({"line": str(error)}))
            continue
        if any(cell.strip() for cell in cells):
            yield Line(reading.line_count, json.dumps(_body_of(names, cells, texts), ensure_ascii=False))


def _body_of(names: list[str], cells: list[str], texts: Collection[str]) -> Mapping[str, Any]:
    """Fields by their headings: `http.method` is a field inside another."""
    body: dict[str, Any] = {}
    for number, cell in enumerate(cells):
        if not cell:
            continue
        name = names[number] if number < len(names) else f"column {number + 1}"
        *outer, last = name.split(".")
        part = body
        for each in outer:
            part = part.setdefault(each, {})
            if not isinstance(part, dict):
                return {name: "is inside a field that has a column of its own"}
        part[last] = _value_of(name, cell, texts)
    return body


def _value_of(name: str, cell: str, texts: Collection[str]) -> Any:
    if name in texts:
        return cell
    if name == "tags":
        return [tag.strip() for tag in cell.split(";") if tag.strip()]
    try:
        return json.loads(cell, parse_constant=_refuse)
    except ValueError:
        return cell


def _refuse(constant: str) -> Any:
    raise ValueError(constant)
