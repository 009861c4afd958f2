"""A file of schedules, one JSON object a line, put so that every line ends in exactly one account of it."""

from collections.abc import Callable, Sequence

from tickwheel.client import Client
from tickwheel.client.schedules import NewSchedule, Put, Schedule, Stored
from tickwheel.commands.lines import Accepted, Account, Failed, Line, interrupted, parse_line
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
