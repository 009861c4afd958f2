"""Files of jobs, a line each: where they are put, how they are read a part at a time, and how far that has come."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from functions.domain.errors import InvalidInput
from functions.domain.instants import SECOND, from_ms, to_ms
from functions.domain.key_lengths import TENANT

SUBMISSIONS = "submissions/"
"""What is put below it is taken in: `submissions/TENANT/NAME.jsonl`."""

RESULTS = "results/"
"""What came of it is below it, where nothing is taken in."""

LIFE = timedelta(days=30)
"""How long files and results are kept."""

PART_BYTES = 4 * 1_024 * 1_024
"""Read at a time."""

MOST_BYTES_OF_A_LINE = 512 * 1_024
"""A payload of 256 KB and what stands beside it, escaped."""

MOST_LINES = 500
"""Taken in together: a batch of the API."""

GIVE_UP_AFTER = timedelta(days=7)
"""After which lines that may not come in yet are refused, if no line before them came in since."""

_KEY = re.compile(
    rf"{SUBMISSIONS}(?P<tenant>[A-Za-z0-9._-]{{1,{TENANT}}})/(?P<name>[A-Za-z0-9._/-]{{1,200}}\.jsonl)", re.ASCII
)
_SHORTEST_WAIT = 2 * SECOND
_LONGEST_WAIT = timedelta(minutes=15)


class LineTooLong(InvalidInput):
    """A line that is longer than what is read at a time: nobody knows where the next begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFile:
    """A file that was put. etag: of its content. version: of this putting of it. size: bytes. turn: of its reading, from 0."""

    tenant: str
    name: str
    etag: str
    version: str
    size: int
    put_at: datetime
    turn: int = 0

    @property
    def key(self) -> str:
        """Where it is."""
        return f"{SUBMISSIONS}{self.tenant}/{self.name}"

    @property
    def results(self) -> str:
        """Below what its results are."""
        return f"{RESULTS}{self.tenant}/{self.name}"

    def key_of_line(self, number: int) -> str:
        """The idempotency key of a job that names none: the same however often the file is read, or put unchanged."""
        content = hashlib.blake2b(f"{self.name}\0{self.etag}".encode(), digest_size=12).hexdigest()
        return f"file:{content}:{number}"


def place_of(key: str) -> tuple[str, str]:
    """Tenant and name of a file. Raises InvalidInput for a key that has none."""
    found = _KEY.fullmatch(key)
    if found is None:
        raise InvalidInput(f"{key[:300]!r} is no file of jobs: use {_KEY.pattern}")
    return found["tenant"], found["name"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProgress:
    """How far a file is taken in, as of the last line before `offset`.

    state: running, done, or failed with `error`. lines, accepted, refused: counts. waiting: numbers of lines behind the offset that did
    not come in yet, where others of their part did. turn: the last that has begun. moved_at: when a line last came in, in ms.
    """

    etag: str
    version: str
    size: int
    state: str = "running"
    offset: int = 0
    lines: int = 0
    accepted: int = 0
    refused: int = 0
    waiting: tuple[int, ...] = ()
    turn: int = 0
    moved_at: int = 0
    error: str = ""

    @classmethod
    def at_first(cls, file: SentFile, *, now: datetime) -> FileProgress:
        """Of a file that was not looked at."""
        return cls(etag=file.etag, version=file.version, size=file.size, moved_at=to_ms(now))

    @classmethod
    def read(cls, values: dict[str, Any]) -> FileProgress:
        """As `written` has it; what another release adds is left out."""
        known = {each.name for each in fields(cls)}
        told = {name: value for name, value in values.items() if name in known}
        return cls(**{**told, "waiting": tuple(told.get("waiting", ()))})

    def written(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to do."""
        return self.state != "running"

    def is_of(self, file: SentFile) -> bool:
        """Whether it is about this putting of the file."""
        return (self.etag, self.version) == (file.etag, file.version)

    def has_passed(self, turn: int) -> bool:
        """Whether a later turn is on its way, so that this one is a delivery too many.

        The turn before the last is not: its process may have died before it sent the next one.
        """
        return turn < self.turn - 1

    def stalled_for(self, *, now: datetime) -> timedelta:
        """Since when no line came in."""
        return now - from_ms(self.moved_at)

    def passing(self, *, length: int, lines: int, refused: int, now: datetime) -> FileProgress:
        """With a part behind it: each of its lines came in or is refused."""
        return replace(
            self,
            offset=self.offset + length,
            lines=self.lines + lines,
            refused=self.refused + refused,
            waiting=(),
            moved_at=to_ms(now),
        )

    def left(self, *, accepted: int, waiting: Sequence[int], now: datetime) -> FileProgress:
        """Within a part of which some lines may not come in yet."""
        moved_at = to_ms(now) if accepted else self.moved_at
        return replace(self, accepted=self.accepted + accepted, waiting=tuple(waiting), moved_at=moved_at)


def first_lines(part: bytes, *, is_end: bool) -> tuple[list[bytes], int]:
    """As many whole lines as are taken in together, and the bytes that they take. is_end: nothing follows. Raises LineTooLong."""
    lines: list[bytes] = []
    length = 0
    while len(lines) < MOST_LINES and length < len(part):
        end = part.find(b"\n", length)
        if end < 0:
            if not is_end:
                break
            end = len(part)
        lines.append(part[length:end])
        length = min(end + 1, len(part))
    if not lines and part:
        raise LineTooLong(f"has more than {len(part)} bytes: put a line break behind each job")
    return lines, length


def wait_for(retry_after: timedelta, *, stalled_for: timedelta) -> timedelta:
    """How long a file waits whose next lines may not come in yet. stalled_for: since when no line came in."""
    return min(max(retry_after, stalled_for, _SHORTEST_WAIT), _LONGEST_WAIT)
