"""Options that several commands share: where they stand, and as what they reach the command."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Self

import typer

from tickwheel.commands.option_sets import OptionSet, Without, with_options


@dataclass(kw_only=True)
class Selection(OptionSet):
    """What is selected."""

    panel = "What is selected"

    since: Annotated[str | None, typer.Option()] = None
    tag: Annotated[str | None, typer.Option()] = None


@dataclass(kw_only=True)
class Connection(OptionSet):
    """Open as long as the command runs."""

    log: list[str]
    selection: Selection

    @contextmanager
    def opened(self) -> Iterator[Self]:
        self.log.append("open")
        yield self
        self.log.append("closed")


def test_shared_options_stand_in_the_place_of_what_is_read_of_them_and_reach_the_command_as_it() -> None:
    given: list[Any] = []

    def show(letter: str, *, said: Selection, limit: int = 5) -> None:
        """Show it."""
        given.append((letter, said, limit))

    command = with_options(show)
    command(letter="d1", since="2h", tag=None, limit=7)

    assert given == [("d1", Selection(since="2h"), 7)]
    assert list(inspect.signature(command).parameters) == ["letter", "since", "tag", "limit"]
    assert command.__doc__ == "Show it."


def test_a_command_may_leave_options_of_a_set_out() -> None:
    given: list[Selection] = []

    def show(*, said: Annotated[Selection, Without(("since",))]) -> None:
        given.append(said)

    command = with_options(show)
    command(tag="billing")

    assert given == [Selection(tag="billing")]
    assert list(inspect.signature(command).parameters) == ["tag"]


def test_options_of_a_set_are_shown_in_its_panel_and_those_elsewhere_as_they_were() -> None:
    def show(*, said: Selection) -> None:
        del said

    shown = inspect.signature(with_options(show)).parameters["since"].annotation.__metadata__[0]

    assert shown.rich_help_panel == "What is selected"
    assert Selection.__annotations__["since"].__metadata__[0].rich_help_panel is None


def test_a_set_is_open_as_long_as_the_command_runs_and_may_hold_another() -> None:
    log: list[str] = []

    def show(*, connection: Connection) -> None:
        connection.log.append(f"runs with {connection.selection.tag}")

    with_options(show)(log=log, since=None, tag="billing")

    assert log == ["open", "runs with billing", "closed"]
