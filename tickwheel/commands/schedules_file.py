"""A file of schedules, one JSON object a line, put so that every line ends in exactly one account of it."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from tickwheel.client import Client
from tickwheel.client.schedules import NewSchedule, Put, Schedule, Stored
from tickwheel.commands.lines import Accepted, Account, Failed, Line, interrupted, parse_line
from tickwheel.commands.terminal import usage
from tickwheel.errors import FieldProblem, InvalidSchedule


def parse_lines(lines: Sequence[Line]) -> tuple[list[tuple[Line, NewSchedule]], list[Failed]]:
    """The lines that are schedules, each id of a tenant once, and those that are not."""
    found: list[tuple[Line, NewSchedule]] = []
    failed: list[Failed] = []
    first_lines: dict[tuple[str, str], int] = {}
    for line in lines:
        try:
            schedule = parse_line(line, NewSchedule.from_json, InvalidSchedule)
        except InvalidSchedule as invalid:
            failed.append(Failed(line, invalid))
            continue
        first = first_lines.setdefault((schedule.tenant, schedule.id), line.number)
        if first == line.number:
            found.append((line, schedule))
        else:
            # Put side by side, either of them could be the one that stands.
            problem = FieldProblem("id", f"is also that of line {first}", schedule.id)
            failed.append(Failed(line, InvalidSchedule([problem])))
    return found, failed


def put_lines(client: Client, lines: Sequence[Line], advance: Callable[[int], None]) -> Account[Schedule]:
    """Puts every line that is a schedule. One that got no answer counts as refused: putting it again is safe.

    `advance` is called with the number of lines settled since the last call.
    """
    found, failed = parse_lines(lines)
    account = Account[Schedule](refused=failed)
    advance(len(failed))
    waiting = {id(schedule): line for line, schedule in found}

    def settle(result: Put) -> None:
        line = waiting.pop(id(result.asked))
        if isinstance(result, Stored):
            account.accepted.append(Accepted(line, result.schedule))
        else:
            account.refused.append(Failed(line, result.error))
        advance(1)

    try:
        client.schedules.put_many([schedule for _, schedule in found], on_progress=settle)
    except KeyboardInterrupt:
        account.is_interrupted = True
        account.refused += interrupted(waiting.values())
    account.sort()
    return account


def has_pointer(schedule: Schedule) -> bool:
    """Whether its answer has a pointer in place of its payload."""
    return "payload_pointer" in schedule.definition.get("job", {})


def exported(schedule: Schedule) -> dict[str, Any]:
    """A line that is read as the same schedule. One that is paused says so, and is then refused: it would go on."""
    status = {} if schedule.status == "active" else {"status": schedule.status}
    return {"tenant": schedule.tenant, "id": schedule.id, **status, **schedule.definition}


@contextmanager
def open_output(output: Path | None) -> Iterator[TextIO]:
    """A file that is whole at the end or as it was, or standard output."""
    if output is None:
        yield sys.stdout
        return
    part = output.with_name(f"{output.name}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            yield file
        part.replace(output)
    except OSError as error:
        usage(f"{output} cannot be written: {error}")
    finally:
        part.unlink(missing_ok=True)
