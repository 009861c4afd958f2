"""Write the client from its asynchronous source: `python -m scripts.sync_client`.

`tickwheel/client/async_api.py` and `async_calls` are what people edit. What a client without an event loop does otherwise is
the lack of some words, so each line is written without them. `make format` does this, and a test compares.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[1] / "tickwheel" / "client"

WORDS = (
    (r"\basync (?=def|for|with)", ""),
    (r"\bawait ", ""),
    (r"\(await (?=\w)", "("),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_(?=[a-z])", ""),
    (r"\b__a(?=enter__|exit__)", "__"),
    (r"\baclose\b", "close"),
    (r"\ban async ", "a "),
    (r"\bTasks may\b", "Threads may"),
)
"""In code as in docstrings: where each stands, and what stands there then."""

HEAD = "# Written by `make format` (`scripts/sync_client.py`) from {name}: change it there.\n"


def sources() -> Iterator[Path]:
    """What is written by people."""
    yield CLIENT / "async_api.py"
    yield from sorted(CLIENT.glob("async_calls/*.py"))


def written() -> Mapping[Path, str]:
    """What stands in each file of the client that is written by this."""
    return {_place_of(source): _without_waiting(source) for source in sources()}


def _place_of(source: Path) -> Path:
    return CLIENT / str(source.relative_to(CLIENT)).replace("async_", "")


def _without_waiting(source: Path) -> str:
    text = source.read_text(encoding="utf-8")
    if not text:
        return text
    for found, instead in WORDS:
        text = re.sub(found, instead, text)
    head = HEAD.format(name=source.relative_to(CLIENT))
    return _tidied(head + text, _place_of(source))


def _tidied(text: str, place: Path) -> str:
    """As the formatter leaves it: the order of imports and the breaks of lines are others without those words."""
    name = f"--stdin-filename={place}"
    for command in (["check", "--fix-only", "--quiet", name], ["format", "--quiet", name]):
        ended = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "-"], input=text, capture_output=True, text=True, check=True
        )
        text = ended.stdout
    return text


if __name__ == "__main__":
    for file, text in written().items():
        file.write_text(text, encoding="utf-8")
