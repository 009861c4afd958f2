"""Schedules of a file that is read as a whole: each id of a tenant once, and the lines that are none."""

from collections.abc import Sequence

from tickwheel.client.schedules import NewSchedule
from tickwheel.commands.lines import Failed, Line, parse_line
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
            problem = FieldProblem("id", f"is also that of line {first}", schedule.id)
            failed.append(Failed(line, InvalidSchedule([problem])))
    return found, failed
