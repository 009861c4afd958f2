"""Options that several commands take, and how their texts are read."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from tickwheel.client.durations import parse_duration
from tickwheel.client.instants import parse_instant
from tickwheel.commands.terminal import usage

T = TypeVar("T")
_HEADER_NAME = re.compile(r"[^\s:=]+")


def option_of(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Turns a parser's ValueError into a usage error that names the option."""

    def convert(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    convert.__name__ = parse.__name__.removeprefix("parse_")
    return convert


@dataclass(frozen=True)
class Header:
    """A header to send; its value may be a secret."""

    name: str
    value: str = field(repr=False)


def parse_header(text: str) -> Header:
    """Reads NAME=VALUE; raises ValueError, which does not repeat what may be a secret."""
    name, is_given, value = text.partition("=")
    if not is_given or not _HEADER_NAME.fullmatch(name):
        raise ValueError("is not NAME=VALUE, such as Authorization='Bearer ...'")
    return Header(name, value)


def headers_of(headers: Sequence[Header] | None) -> dict[str, str]:
    """The values of headers by their names, of which the last that is given counts."""
    return {header.name: header.value for header in headers or ()}


instant_option = option_of(parse_instant)
duration_option = option_of(parse_duration)
header_option = option_of(parse_header)


def duration(about: str, *names: str) -> Any:
    """An option that is a duration."""
    return typer.Option(*names, parser=duration_option, help=about)


def instant(about: str, *, show_default: bool = True) -> Any:
    """An option that is an instant."""
    return typer.Option(parser=instant_option, help=about, show_default=show_default)


TargetOption = Annotated[str | None, typer.Option(help="Target of the job, or its destination: https://example.com.")]
TagOption = Annotated[str | None, typer.Option(help="One of the job's tags.")]


def read_json(option: str, text: str) -> Any:
    """The JSON of an option, or of the file that it names behind an @; anything else is wrong usage."""
    if text.startswith("@"):
        try:
            text = Path(text[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            usage(f"{option} {text}: cannot be read: {error}")
    try:
        return json.loads(text)
    except ValueError as error:
        usage(f"""{option} is not JSON ({error}): {text[:80]!r}; a string needs quotes of its own: '"text"'""")
