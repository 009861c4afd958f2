"""Pages of docs/ as tests read them."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def read_page(name: str) -> str:
    return (DOCS / name).read_text()


def words_of(page: str) -> str:
    """Its text on one line: a sentence is found wherever its lines break."""
    return " ".join(page.split())


def blocks(page: str, language: str) -> list[str]:
    """Its examples in a language."""
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def commands(page: str) -> list[str]:
    """The lines of its examples that run `tickwheel`; a command may go on behind a backslash."""
    shell = "\n".join(blocks(page, "sh")).replace("\\\n", " ")
    return [line for line in shell.splitlines() if line.startswith("tickwheel ")]


def table(page: str, heading: str) -> list[list[str]]:
    """The cells of a table, row by row, behind its heading."""
    lines = page[page.index(heading) :].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def values(page: str, heading: str) -> list[list[str]]:
    """The same cells, without the back-ticks around them."""
    return [[cell.strip("`") for cell in row] for row in table(page, heading)]
