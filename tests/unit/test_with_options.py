"""Options that several commands share: where they stand, and as what they reach the command."""

import inspect
from typing import Any

from tickwheel.commands.options import with_options


def _said(*, since: str | None = None, tag: str | None = None) -> dict[str, Any]:
    return {"since": since, "tag": tag}


def test_shared_options_stand_in_the_place_of_what_is_read_of_them_and_reach_the_command_as_it() -> None:
    told: list[Any] = []

    def show(letter: str, *, said: dict[str, Any], limit: int = 5) -> None:
        """Show it."""
        told.append((letter, said, limit))

    command = with_options(show, "said", list(inspect.signature(_said).parameters.values()), _said)
    command(letter="d1", since="2h", tag=None, limit=7)

    assert told == [("d1", {"since": "2h", "tag": None}, 7)]
    assert list(inspect.signature(command).parameters) == ["letter", "since", "tag", "limit"]
    assert command.__doc__ == "Show it."
