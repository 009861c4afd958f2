"""`tickwheel local`: the cloud on this machine that runs until it is stopped."""

import json
from typing import Annotated, Any

import typer
from rich.markup import escape

from tickwheel.commands.terminal import REFUSED, error_console, failing_politely
from tickwheel.local.checkout import find_checkout
from tickwheel.local.cloud import answers
from tickwheel.local.settings import LOCAL_ACCESS_KEY, LOCAL_REGION, LOCAL_SECRET_KEY
from tickwheel.local.stack import down as stop
from tickwheel.local.stack import up as start
from tickwheel.local.state import Running, read_running

app = typer.Typer(help="The local cloud: the real stacks on this machine.", no_args_is_help=True)

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


@app.command()
def up(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what the CDK CLI prints.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Start the local cloud and deploy to it; it stays until `tickwheel local down`."""
    errors = error_console()
    with failing_politely(as_json=as_json):
        if verbose:
            running = start(progress=lambda line: errors.print(escape(line), soft_wrap=True, highlight=False))
        else:
            with errors.status("starting the local cloud") as status:
                running = start(progress=lambda line: status.update(escape(line[: max(20, errors.width - 4)])))
    if as_json:
        typer.echo(json.dumps(_as_json(running)))
        return
    typer.echo(f"The local cloud runs.\n\n  API endpoint  {running.api_endpoint}\n  log           {running.log}\n")
    typer.echo(f"{_examples(running)}\n\nStop it with `tickwheel local down`.")


@app.command()
def down(as_json: JsonOption = False) -> None:
    """Stop the local cloud with everything in it."""
    with failing_politely(as_json=as_json):
        stopped = stop()
    if as_json:
        typer.echo(json.dumps({"stopped": stopped is not None}))
    else:
        typer.echo("the local cloud has stopped" if stopped else "the local cloud was not running")


@app.command()
def status(as_json: JsonOption = False) -> None:
    """Say whether the local cloud runs, and where; exits with 1 when it does not."""
    with failing_politely(as_json=as_json):
        running = read_running(find_checkout())
    healthy = running is not None and answers(running.port)
    if as_json:
        typer.echo(
            json.dumps({"running": running is not None, "answers": healthy, **(_as_json(running) if running else {})})
        )
    elif running is None:
        typer.echo("the local cloud does not run; start it with `tickwheel local up`")
    else:
        deployed = running.api_endpoint or "nothing deployed yet; run `tickwheel local up`"
        typer.echo(
            f"the local cloud {'runs' if healthy else 'does not answer'} on port {running.port} (pid {running.pid})"
        )
        typer.echo(f"  API endpoint  {deployed}\n  log           {running.log}")
    if not healthy:
        raise typer.Exit(REFUSED)


def _examples(running: Running) -> str:
    job = json.dumps({"tenant": "acme", "target": "handler:echo", "payload": {"hello": "world"}, "delay": 5})
    # Resolvers that do not know names below localhost are common, and --resolve costs nothing where they do.
    host = str(running.api_endpoint).removeprefix("http://").split(":")[0]
    return (
        "Submit a job that fires in five seconds:\n\n"
        f'  tickwheel submit handler:echo --tenant acme --payload \'{{"hello": "world"}}\' --delay 5s\n\n'
        "The same with curl:\n\n"
        f'  curl --aws-sigv4 "aws:amz:{LOCAL_REGION}:execute-api" --user {LOCAL_ACCESS_KEY}:{LOCAL_SECRET_KEY} \\\n'
        f"    --resolve {host}:{running.port}:127.0.0.1 \\\n"
        f"    --header 'Content-Type: application/json' --data '{job}' \\\n"
        f"    {running.api_endpoint}/v1/jobs"
    )


def _as_json(running: Running) -> dict[str, Any]:
    return {
        "endpoint": running.api_endpoint,
        "port": running.port,
        "pid": running.pid,
        "log": running.log,
    }
