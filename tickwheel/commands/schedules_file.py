"""A file of schedules, one JSON object a line, put so that every line ends in exactly one account of it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tickwheel.client import Client
from tickwheel.client.schedules import NewSchedule, Put, Schedule, Stored
from tickwheel.commands.lines import Failed, Line
from tickwheel.errors import FieldProblem, InvalidSchedule, TickwheelError


@dataclass(frozen=True)
class StoredLine:
    """A line whose schedule stands there."""

    line: Line
    schedule: Schedule


@dataclass
class Import:
    """What became of each line. One that got no answer counts as failed: putting it again is safe."""

    stored: list[StoredLine] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    is_interrupted: bool = False


def parse_lines(lines: Sequence[Line]) -> tuple[list[tuple[Line, NewSchedule]], list[Failed]]:
    """The lines that are schedules, each id of a tenant once, and those that are not."""
    found: list[tuple[Line, NewSchedule]] = []
    failed: list[Failed] = []
    first_lines: dict[tuple[str, str], int] = {}
    for line in lines:
        try:
            schedule = _parse(line.text)
        except InvalidSchedule as invalid:
            failed.append(Failed(line, invalid))
            continue
        first = first_lines.setdefault((schedule.tenant, schedule.id), line.number)
        if first == line.number:
            found.append((line, schedule))
        else:
            # Put side by side, either of them could be the one that stands.
            problem = FieldProblem("id", f"is that of line {first} too", schedule.id)
            failed.append(Failed(line, InvalidSchedule([problem])))
    return found, failed


def put_lines(client: Client, lines: Sequence[Line], *, advance: Callable[[int], None]) -> Import:
    """Puts every line that is a schedule. `advance` is called with the number of lines settled since the last call."""
    found, failed = parse_lines(lines)
    outcome = Import(failed=failed)
    advance(len(failed))
    waiting = {id(schedule): line for line, schedule in found}

    def settle(result: Put) -> None:
        line = waiting.pop(id(result.asked))
        if isinstance(result, Stored):
            outcome.stored.append(StoredLine(line, result.schedule))
        else:
            outcome.failed.append(Failed(line, result.error))
        advance(1)

    try:
        client.schedules.put_many([schedule for _, schedule in found], on_progress=settle)
    except KeyboardInterrupt:
        outcome.is_interrupted = True
        interrupted = TickwheelError("interrupted before its answer came")
        outcome.failed += [Failed(line, interrupted) for line in waiting.values()]
    outcome.stored.sort(key=lambda each: each.line.number)
    outcome.failed.sort(key=lambda each: each.line.number)
    return outcome


def _parse(text: str) -> NewSchedule:
    try:
        body = json.loads(text)
    except ValueError as error:
        raise InvalidSchedule([FieldProblem("line", f"is not JSON: {error}")]) from None
    return NewSchedule.from_json(body)
