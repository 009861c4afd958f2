"""What has happened in a world, call by call, to be read after a violation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.jobs.job import Job, Timer
from functions.domain.jobs.job_id import JobId
from functions.domain.schedules.due_fires import DueFires
from functions.domain.schedules.state import Link
from functions.ports.dead_letters import DeadLetter
from functions.ports.ready_queue import Receipt
from functions.ports.schedules import StoredSchedule

_TOLD = 80


@dataclass(frozen=True)
class Event:
    """One call, or a turn in the life of a process. about: the arguments of the call."""

    at: datetime
    process: str
    what: str
    fate: str = ""
    about: Sequence[Any] = ()
    is_turn: bool = False

    def __str__(self) -> str:
        about = " ".join(dict.fromkeys((*_names(self.about), *_details(self.about))))
        return f"{self.at:%H:%M:%S.%f} {self.process}: {self.what}{self.fate and f' — {self.fate}'} {about}".rstrip()


@dataclass
class History:
    """Everything, in order; printed as far as it is about the jobs that a text names.

    disturbed: how much had happened when something last went wrong.
    """

    events: list[Event] = field(default_factory=list)
    disturbed: int = -1

    @property
    def moment(self) -> int:
        """How much has happened."""
        return len(self.events)

    def disturb(self) -> None:
        """Something goes wrong: a process dies, a call fails, a service refuses."""
        self.disturbed = self.moment

    def note(self, at: datetime, process: str, what: str, fate: str = "", about: Sequence[Any] = ()) -> None:
        """Add to it. It is formatted only when it is printed."""
        self.events.append(Event(at, process, what, fate, about))
        if fate:
            self.disturb()

    def note_turn(self, at: datetime, process: str, what: str) -> None:
        """A process begins, ends, or has a late call made."""
        self.events.append(Event(at, process, what, is_turn=True))

    def tell(self, text: str) -> str:
        """The end of the story of the jobs that the text names, and how its processes began and ended."""
        concerned = {event.process for event in self.events if _is_about(event, text)}
        lines = [
            event
            for event in self.events
            if _is_about(event, text) or (event.process in concerned and (event.is_turn or event.fate))
        ]
        return "\n".join(str(event) for event in lines[-_TOLD:])


def _is_about(event: Event, text: str) -> bool:
    return any(name.split(" ")[0].split("#")[-1] in text for name in _names(event.about))


def _names(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        match value:
            case Timer():
                yield f"{value.job.key} attempt {value.attempt}, due {value.due_at:%H:%M:%S}"
            case Job() | JobId():
                yield value.key
            case DeadLetter():
                yield f"{value.tenant}#{value.identity}"
            case ScheduleAlarm():
                yield f"{value.tenant}#{value.schedule_id} version {value.version}, due {value.alarm_at:%H:%M:%S}"
            case StoredSchedule():
                yield f"{value.key} version {value.version}, {value.status}, {value.schedule.rule}"
            case Receipt():
                yield value.handle
            case str() if "#" in value or "/" in value:
                yield value.replace("/", "#")
            case list() | tuple():
                yield from _names(value)
            case _:
                pass


def _details(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        match value:
            case DueFires():
                yield f"kept {[f'{link.at:%H:%M:%S}' for link in value.kept]}, dropped {dict(value.skips)}, then"
                yield from _details([value.link])
            case Link():
                yield f"{'the end of ' if value.is_awaited else ''}{value.at:%H:%M:%S}"
            case _:
                pass
