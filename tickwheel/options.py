"""Options that several commands take, and how their texts are read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from tickwheel.durations import parse_duration
from tickwheel.instants import parse_instant
from tickwheel.terminal import usage

T = TypeVar("T")


def option_of(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Turns a parser's ValueError into a usage error that names the option."""

    def convert(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    convert.__name__ = parse.__name__.removeprefix("parse_")
    return convert


instant_option = option_of(parse_instant)
duration_option = option_of(parse_duration)

EndpointOption = Annotated[
    str | None,
    typer.Option(help="Address of the API; else TICKWHEEL_ENDPOINT, else the local cloud.", show_default=False),
]
RegionOption = Annotated[str | None, typer.Option(help="Region to sign for; else the address names it.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def read_payload(text: str) -> Any:
    """The JSON of --payload, or of the file that it names behind an @; anything else is wrong usage."""
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            usage(f"--payload {text}: cannot be read: {error}")
    try:
        return json.loads(text)
    except ValueError as error:
        usage(f"""--payload is not JSON ({error}): {text[:80]!r}; a string needs quotes of its own: '"text"'""")
