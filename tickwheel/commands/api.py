"""What most commands take: `api`, where the scheduler is and how its answers are printed; or `output`, that alone."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from botocore.session import Session
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from tickwheel.client import Client, Wait
from tickwheel.client.instants import format_instant
from tickwheel.client.words import Word
from tickwheel.commands.option_sets import OptionSet
from tickwheel.commands.places import Place, find_place
from tickwheel.commands.terminal import error_console, failing_politely, usage
from tickwheel.screens.tables import fields_table, show_table

_LONG_SECONDS = 1.0

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
        typer.Option(
            help="Address of the API. Default: TICKWHEEL_ENDPOINT, then the context, then the local cloud.",
            show_default=False,
        ),
    ] = None
    context: Annotated[
        str | None,
        typer.Option(
            help="Context to use. Default: TICKWHEEL_CONTEXT, then that of `tickwheel context use`.", show_default=False
        ),
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
    def place(self) -> Place:
        """Where the scheduler is; found where it is first used: wrong usage is seen before a missing endpoint."""
        if self.endpoint is not None and self.context is not None:
            usage("--endpoint cannot be combined with --context: use one or the other")
        return find_place(endpoint=self.endpoint, context=self.context)

    @cached_property
    def client(self) -> Client:
        """A client of it. People at a terminal are told where it is."""
        place = self.place
        if not self.as_json and (errors := error_console()).is_terminal:
            errors.print(escape(str(place)), style="dim", soft_wrap=True, highlight=False)
        session = Session(profile=place.profile) if place.profile is not None else None
        return Client(place.endpoint, region=self.region or place.region, session=session, on_wait=_tell_of)

    def where(self, stage: str | None) -> str:
        """The stage, where it says its name, and the place, as a header shows them."""
        return str(self.place) if stage is None else f"stage {stage} at {self.place}"

    def confirm(self, question: str, *, yes: bool, otherwise: str = "") -> None:
        """Asks a person, naming the scheduler; ends the command at a no. otherwise: what a script could do beside --yes."""
        if yes:
            return
        if self.as_json:
            usage(f"--json cannot ask for confirmation: add --yes{otherwise}")
        typer.confirm(f"{question} At {self.place}.", abort=True, err=True)


def _tell_of(wait: Wait) -> None:
    """Scripts are told as well: nobody should have to guess why a command stands still."""
    if wait.seconds >= _LONG_SECONDS:
        error_console().print(
            f"waiting {wait.seconds:.0f} s: {escape(str(wait.reason))}", soft_wrap=True, highlight=False
        )


def fields_of(answer: "DataclassInstance") -> dict[str, Any]:
    """An answer as JSON for a script; its instants in RFC 3339, its durations in seconds."""
    return {name: _plain(value) for name, value in asdict(answer).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Word):
        return value.value
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
