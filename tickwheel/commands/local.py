"""`tickwheel local`: the cloud on this machine that runs until it is stopped."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.markup import escape

from tickwheel.client.contexts import LOCAL
from tickwheel.commands.api import Output
from tickwheel.commands.places import find_place
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import REFUSED, error_console
from tickwheel.errors import NoEndpoint
from tickwheel.local.cloud import answers
from tickwheel.local.installation import find_home
from tickwheel.local.settings import LOCAL_ACCESS_KEY, LOCAL_REGION, LOCAL_SECRET_KEY
from tickwheel.local.stack import down as stop
from tickwheel.local.stack import up as start
from tickwheel.local.state import Running, read_running

_BEAT_SECONDS = 8.0
"""Where nobody sees a line change, this often a step says where it is."""

group = commands.group("local", about="Run the local cloud: the real stacks on this machine.")


@group.add()
def up(
    *,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the output of the CDK CLI.")] = False,
    output: Output,
) -> None:
    """Start the local cloud and deploy to it. It runs until `tickwheel local down`."""
    errors = error_console()
    if verbose:
        running = start(progress=lambda line: errors.print(escape(line), soft_wrap=True, highlight=False))
    else:
        from tickwheel.demo.deployment import following
        from tickwheel.demo.narrator import Narrator

        with Narrator(errors, beat_seconds=_BEAT_SECONDS) as narrator:
            running = start(progress=following(narrator))
            narrator.end(str(running.api_endpoint))
    output.print(
        _as_json(running),
        f"The local cloud is running.\n\n  API endpoint  {running.api_endpoint}\n  log           {running.log}\n",
        f"{_examples(running, options=_naming(running))}\n\nStop it with `tickwheel local down`.",
    )


@group.add()
def down(*, output: Output) -> None:
    """Stop the local cloud and delete everything in it."""
    stopped = stop()
    shown = "the local cloud has stopped" if stopped else "the local cloud was not running"
    output.print({"stopped": stopped is not None}, shown)


@group.add()
def status(*, output: Output) -> None:
    """Show whether and where the local cloud runs. Exit code 1: it does not run."""
    running = read_running(find_home())
    healthy = running is not None and answers(running.port)
    body = {"running": running is not None, "answers": healthy, **(_as_json(running) if running else {})}
    output.print(body, _status_text(running, healthy=healthy))
    if not healthy:
        raise typer.Exit(REFUSED)


def _status_text(running: Running | None, *, healthy: bool) -> str:
    if running is None:
        return "the local cloud is not running; start it with `tickwheel local up`"
    deployed = running.api_endpoint or "nothing deployed yet; run `tickwheel local up`"
    return (
        f"the local cloud {'runs' if healthy else 'does not answer'} on port {running.port} (pid {running.pid})\n"
        f"  API endpoint  {deployed}\n  log           {running.log}"
    )


def _naming(running: Running) -> str:
    """The option without which a command would not go to this cloud, where one is needed."""
    try:
        is_meant = find_place(endpoint=None, context=None).endpoint == running.api_endpoint
    except NoEndpoint:
        is_meant = False
    return "" if is_meant else f" --context {LOCAL}"


def _examples(running: Running, *, options: str = "") -> str:
    job = json.dumps({"tenant": "acme", "target": "handler:echo", "payload": {"hello": "world"}, "delay": 5})
    # Resolvers that do not know names below localhost are common, and --resolve costs nothing where they do.
    host = str(running.api_endpoint).removeprefix("http://").split(":")[0]
    return (
        "Submit a job that fires in five seconds:\n\n"
        f'  tickwheel submit handler:echo --tenant acme --payload \'{{"hello": "world"}}\' --delay 5s{options}\n\n'
        "The same with curl:\n\n"
        f'  curl --aws-sigv4 "aws:amz:{LOCAL_REGION}:execute-api" --user {LOCAL_ACCESS_KEY}:{LOCAL_SECRET_KEY} \\\n'
        f"    --resolve {host}:{running.port}:127.0.0.1 \\\n"
        f"    --header 'Content-Type: application/json' --data '{job}' \\\n"
        f"    {running.api_endpoint}/v1/jobs"
    )


def _as_json(running: Running) -> dict[str, Any]:
    fields = asdict(running)
    return {"endpoint": fields.pop("api_endpoint"), **fields}
