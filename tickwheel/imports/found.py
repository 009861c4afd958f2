"""What is found in the files of another program: schedules, and what is left out with the reason."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tickwheel.imports.cron import Expression


@dataclass(frozen=True)
class Place:
    """Where something stands: a file, and a line from 1, or 0 where a file has none."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, kw_only=True)
class OfClock:
    """A rule that names local times. timezone: None is that of the import.

    gap, fold: what the other program does at a clock change; None where its documentation does not say.
    """

    expression: Expression
    timezone: str | None = None
    gap: str | None = None
    fold: str | None = None


@dataclass(frozen=True, kw_only=True)
class OfInterval:
    """A rule of elapsed time. begins: what its first fire is counted from there."""

    interval: timedelta
    begins: str


@dataclass(frozen=True, kw_only=True)
class OfInstant:
    """One fire; a naive time is local to the zone of the entry, or of the import."""

    at: datetime
    timezone: str | None = None


Rule = OfClock | OfInterval | OfInstant


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A schedule of another program.

    name: what its id is made of. written: its rule as it stands there. payload, target: of its job; without a target it takes that of the
    import. fields, job: further fields of the definition and of its job. remarks: what becomes different, or is not carried over.
    environment: what its command finds in its environment there, which may be secret: nothing shows its values.
    """

    place: Place
    name: str
    written: str
    rule: Rule
    payload: Any = None
    target: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    job: Mapping[str, Any] = field(default_factory=dict[str, Any])
    remarks: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    is_suspended: bool = False


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """What cannot be carried over. is_expected: it is no mistake of anybody, such as a schedule that is switched off."""

    place: Place
    name: str
    written: str
    reason: str
    is_expected: bool = False


Found = Entry | LeftOut


@dataclass(frozen=True)
class Source:
    """A kind of file. suffixes: of the files that are read of a folder."""

    about: str
    read: Callable[[str, bytes], Iterator[Found]]
    suffixes: tuple[str, ...]
