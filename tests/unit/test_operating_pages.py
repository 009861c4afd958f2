"""The pages for whoever runs a stage: their commands exist with these options, and their links lead somewhere."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from functions.adapters.tables import ALL_TABLES
from tickwheel.cli import app

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("restore.md", "upgrading.md", "game-days.md", "stages.md")


def text_of(page: str) -> str:
    return (DOCS / page).read_text()


def commands_of(page: str) -> list[str]:
    text = text_of(page)
    in_blocks = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    found = {*re.findall(r"`(tickwheel [^`]+)`", text), *(line for line in in_blocks if line.startswith("tickwheel "))}
    return sorted(line.partition(" #")[0].strip() for line in found)


@pytest.mark.parametrize("line", sorted({line for page in PAGES for line in commands_of(page)}))
def test_a_command_exists_with_these_options(line: str) -> None:
    words = shlex.split(line)[1:]
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context(line, words)  # parses as the command line does, and runs nothing


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for file, anchor in re.findall(r"\]\(((?:\.\./)?[A-Za-z0-9-]*\.md)?(?:#([^)]+))?\)", text_of(page)):
        target = text_of(file or page)
        titles = re.findall(r"^#+ (.+)$", target, flags=re.MULTILINE)
        anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
        assert not anchor or anchor in anchors, f"{file}#{anchor}"


def test_the_tables_without_a_time_to_live_are_told_to_whoever_restores_them() -> None:
    told = re.search(r"time to live on `x` \(all but ([^)]+)\)", text_of("restore.md"))
    assert told is not None
    assert set(re.findall(r"`(\w+)`", told[1])) == {schema.name for schema in ALL_TABLES if not schema.ttl_attribute}
