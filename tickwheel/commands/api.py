"""What most commands take: `api`, where the scheduler is and how its answers are printed; or `output`, that alone."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from rich.console import Console, RenderableType
from rich.table import Table

from tickwheel.client import Client
from tickwheel.client.instants import format_instant
from tickwheel.commands.option_sets import OptionSet
from tickwheel.commands.terminal import failing_politely
from tickwheel.screens.tables import fields_table, show_table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(kw_only=True)
class Output(OptionSet):
    """Prints answers on standard output, and errors of the client politely."""

    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Ends the command with exit code 1 at an error of the client."""
        with failing_politely(as_json=self.as_json):
            yield self

    def print(self, body: Any, *shown: RenderableType) -> None:
        """Prints JSON for a script, or what is shown to people, each text as it is."""
        if self.as_json:
            typer.echo(json.dumps(body))
            return
        for each in shown:
            if isinstance(each, str):
                typer.echo(each)
            elif isinstance(each, Table):
                show_table(each, Console())
            else:
                Console().print(each)

    def print_fields(self, answer: "DataclassInstance") -> None:
        """Prints an answer: a line a field for people, who are not shown those that are None."""
        fields = fields_of(answer)
        self.print(fields, fields_table(fields))


@dataclass(kw_only=True)
class Address(OptionSet):
    """Where the scheduler is."""

    endpoint: Annotated[
        str | None,
        typer.Option(help="Address of the API. Default: TICKWHEEL_ENDPOINT, then the local cloud.", show_default=False),
    ] = None
    region: Annotated[str | None, typer.Option(help="Region to sign for. Default: the region in the address.")] = None


@dataclass(kw_only=True)
class Api(Output, Address):
    """Calls the scheduler, and prints what it answers. The help shows the options of the last base first."""

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Closes the client at the end, where there was one."""
        with super().opened():
            try:
                yield self
            finally:
                if "client" in vars(self):
                    self.client.close()

    @cached_property
    def client(self) -> Client:
        """Made where it is first used: wrong usage is seen before a missing endpoint."""
        return Client(self.endpoint, region=self.region)


def fields_of(answer: "DataclassInstance") -> dict[str, Any]:
    """An answer as JSON for a script; its instants in RFC 3339, its durations in seconds."""
    return {name: _plain(value) for name, value in asdict(answer).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
