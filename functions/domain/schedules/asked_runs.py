"""The last runs of a schedule that no rule of it has decided: somebody triggered them, or a backfill made them.

Its fires are remembered by their times alone, because each has its name from its time. These have names of their own, so
they are remembered by those, in one short text: `{t|b}{due}[:{fire time}]:{token}` each, in base 36, as they began.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from functions.domain.instants import from_ms, to_ms
from functions.domain.jobs.job_id import base36, read_base36
from functions.domain.jobs.occurrence import fire_of, identity_of

MOST_ASKED = 10
"""How many a schedule remembers, whatever its history."""

ROOM = 400
"""Bytes of all of them: a state row of usual size stays within the write unit that a fire costs."""

TRIGGER = "trigger"
BACKFILL = "backfill-"
"""How the suffix of their identities begins."""


class Origin(StrEnum):
    """How a run came to be: by the rule of its schedule, by a trigger, or by a backfill."""

    SCHEDULED = "scheduled"
    TRIGGERED = "triggered"
    BACKFILLED = "backfilled"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRun:
    """A run that was asked for, which has begun. fire_at: of one that was backfilled. token: of the request."""

    due_at: datetime
    token: str
    fire_at: datetime | None = None

    @property
    def origin(self) -> Origin:
        """Which of the two it is."""
        return Origin.TRIGGERED if self.fire_at is None else Origin.BACKFILLED

    def identity(self, schedule_id: str) -> str:
        """The stable name of its job."""
        if self.fire_at is None:
            return f"{schedule_id}:{TRIGGER}:{self.token}"
        return identity_of(schedule_id, self.fire_at, BACKFILL + self.token)

    def __str__(self) -> str:
        due = base36(to_ms(self.due_at))
        return f"t{due}:{self.token}" if self.fire_at is None else f"b{due}:{base36(to_ms(self.fire_at))}:{self.token}"


def origin_of(identity: str) -> Origin:
    """How the run of this name came to be."""
    fire = fire_of(identity)
    if fire is None or not fire[2]:
        return Origin.SCHEDULED
    return Origin.BACKFILLED if fire[1] is not None else Origin.TRIGGERED


def asked_run_of(identity: str, *, due_at: datetime) -> AskedRun | None:
    """The run of this name; None for one that its schedule has decided."""
    fire = fire_of(identity)
    begins = BACKFILL if fire is not None and fire[1] is not None else f"{TRIGGER}:"
    if fire is None or not fire[2].startswith(begins):
        return None
    return AskedRun(due_at=due_at, token=fire[2].removeprefix(begins), fire_at=fire[1])


def with_asked(known: Iterable[AskedRun], run: AskedRun) -> tuple[AskedRun, ...]:
    """What is remembered when one more begins: the last that there is room for. One that is there stays where it is."""
    known = tuple(known)
    if any((each.token, each.fire_at) == (run.token, run.fire_at) for each in known):
        return known
    kept = [*known, run][-MOST_ASKED:]
    while len(write_asked(kept).encode()) > ROOM:
        kept.pop(0)
    return tuple(kept)


def write_asked(runs: Iterable[AskedRun]) -> str:
    """Runs as an attribute; empty for none."""
    return " ".join(map(str, runs))


def read_asked(text: str) -> tuple[AskedRun, ...]:
    """What `write_asked` wrote; what another release may have written is left out."""
    found: list[AskedRun] = []
    for word in text.split():
        with suppress(ValueError, OverflowError):
            found.append(_read(word))
    return tuple(found)


def _read(word: str) -> AskedRun:
    kind, (due, *fire, token) = word[0], word[1:].split(":")
    if (kind, len(fire)) not in (("t", 0), ("b", 1)):
        raise ValueError(word)
    return AskedRun(
        due_at=from_ms(read_base36(due)), token=token, fire_at=from_ms(read_base36(fire[0])) if fire else None
    )
