"""How the commands speak: answers on standard output, everything else on standard error, no tracebacks."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from tickwheel.errors import ApiProblem, InvalidJob, TickwheelError

REFUSED = 1
WRONG_USAGE = 2


def error_console() -> Console:
    """A console on standard error as it is now, which tests and pipes replace."""
    return Console(stderr=True)


def complain(message: str) -> None:
    """Prints an error for people."""
    error_console().print(f"[red]error:[/red] {escape(message)}", soft_wrap=True)


@contextmanager
def failing_politely(*, as_json: bool) -> Iterator[None]:
    """Turns an error of the client into its text, or its JSON, and exit code 1."""
    try:
        yield
    except TickwheelError as error:
        if as_json:
            typer.echo(json.dumps({"error": explain(error)}))
        else:
            complain(str(error))
        raise typer.Exit(REFUSED) from None


def explain(error: TickwheelError) -> dict[str, Any]:
    """An error as JSON for a script."""
    if isinstance(error, ApiProblem):
        return error.as_json()
    if isinstance(error, InvalidJob):
        listed = [
            {"field": problem.field, "message": problem.message, "value": problem.value} for problem in error.problems
        ]
        return {"detail": str(error), "errors": listed}
    return {"detail": str(error)}
