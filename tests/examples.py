"""The examples of pages: which there are, and what a page says of those that no test runs.

`<!-- not run: reason -->` above a block: it is parsed and compiled, and not run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "examples/README.md",
    *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md"))),
)

_BLOCK = re.compile(
    r"^(?:(?P<not_run> *<!-- not run: (?P<reason>.+?) -->)\n+)?(?P<indent> *)```(?P<language>\w+)\n(?P<code>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Example:
    """A block of a page. reason: why it is not run; None if it is."""

    page: str
    number: int
    language: str
    code: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page} {self.language} {self.number}"

    @property
    def lines(self) -> list[str]:
        """Of a shell: each command on one line, without what is only a comment."""
        joined = self.code.replace("\\\n", " ")
        return [line.strip() for line in joined.splitlines() if line.strip() and not line.strip().startswith("#")]


def examples(language: str) -> list[Example]:
    """Those of all pages in a language, in their order."""
    return [example for page in PAGES for example in _of(page) if example.language == language]


def _of(page: str) -> Iterator[Example]:
    for number, found in enumerate(_BLOCK.finditer((ROOT / page).read_text()), start=1):
        indent = len(found["indent"])
        code = "".join(line[indent:] if line.strip() else line for line in found["code"].splitlines(keepends=True))
        yield Example(page, number, found["language"], code, found["reason"])


def simple_commands(line: str) -> list[list[str]]:
    """The programs of a line with their arguments, without comments, variables before them and redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    skips = False
    for word in lexer:
        if set(word) <= set("|&;"):
            commands.append([])
        elif set(word) <= set("<>"):
            skips = True
        elif skips:
            skips = False
        else:
            commands[-1].append(word)
    return [command for command in commands if command]
