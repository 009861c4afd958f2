"""Tables of every width: an id is never broken, so that it can be copied."""

import io

import pytest
from rich.console import Console
from rich.table import Column, Table

from tickwheel.screens.tables import fields_table, folded, plain_table, right, show_table

ID = "j1~" + "a" * 40 + "~2e~a0~1~b0~" + "x" * 30
OTHER = ID.replace("x", "y")
ERROR = "the target answered 503 twice, and then nothing at all"


def a_table() -> Table:
    table = plain_table(*folded("dead at", "error"), *right("attempt"), *folded("id"))
    table.add_row("2030-01-31 12:00:00", ERROR, "3", ID)
    table.add_row("2030-01-31 12:00:01", "", "5", OTHER)
    return table


def shown(table: Table, *, width: int, is_terminal: bool) -> str:
    out = io.StringIO()
    show_table(table, Console(file=out, width=width, force_terminal=is_terminal, color_system=None))
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 80, 100, 250])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_an_id_stands_on_one_line_however_narrow_the_terminal_is(width: int, is_terminal: bool) -> None:
    lines = shown(a_table(), width=width, is_terminal=is_terminal).splitlines()

    assert sum(line.rstrip().endswith(ID) for line in lines) == 1
    assert sum(line.rstrip().endswith(OTHER) for line in lines) == 1


def test_a_wide_terminal_has_a_row_a_letter() -> None:
    lines = shown(a_table(), width=250, is_terminal=True).splitlines()

    assert lines[0].split() == ["dead", "at", "error", "attempt", "id"]
    assert len(lines) == 3


def test_a_narrow_terminal_has_a_line_for_each_value_that_there_is() -> None:
    first, second = shown(a_table(), width=100, is_terminal=True).split("\n\n")

    assert [line.split()[0] for line in first.splitlines()] == ["dead", "error", "attempt", "id"]
    assert [line.split()[0] for line in second.splitlines()] == ["dead", "attempt", "id"]


def test_a_pipe_has_a_row_a_letter_in_which_only_texts_are_folded() -> None:
    lines = shown(a_table(), width=80, is_terminal=False).splitlines()

    assert ID in lines[1]
    assert "".join(lines).count("j1~") == 2


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_field_is_not_broken_but_a_text_is_and_so_is_what_no_id_can_be(is_terminal: bool) -> None:
    lines = shown(
        fields_table({"id": ID, "error": ERROR * 3, "raw": "z" * 500}), width=80, is_terminal=is_terminal
    ).splitlines()

    assert lines[0].split() == ["id", ID]
    assert len(lines) > 5
    assert max(map(len, lines)) <= len(ID) + 7


@pytest.mark.parametrize(
    ("width", "last"), [(80, "2026-11-01 to 2026-11-22 1,234"), (20, "2026-11-22"), (5, "2026-11-22")]
)
@pytest.mark.parametrize("is_terminal", [True, False])
def test_totals_stand_below_their_columns(width: int, last: str, is_terminal: bool) -> None:
    table = plain_table(
        Column("day", footer="2026-11-01 to 2026-11-22"), Column("jobs", justify="right", footer="1,234")
    )
    table.show_footer = True
    table.add_row("2026-11-02", "1,200")

    lines = shown(table, width=width, is_terminal=is_terminal).splitlines()

    assert lines[1].split() == ["2026-11-02", "1,200"]
    assert lines[-1].split() == last.split()
