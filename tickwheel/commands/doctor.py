"""The command `tickwheel doctor`: what an account and region have, beside what a stage needs there."""

import re
from typing import Annotated

import typer

from tickwheel.commands.api import Output
from tickwheel.commands.engine_modules import Engine
from tickwheel.commands.options import option_of
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import REFUSED, console_for_files, usage

_RATE = re.compile(r"(?P<number>[0-9][0-9,_]*)(?P<thousands>[kK]?)/s")
_WIDTH_OF_FILES = 200
_COLOURS = {"ok": "green", "warning": "yellow", "refused": "red"}


def parse_rate(text: str) -> float:
    """Reads 100000/s or 100K/s; raises ValueError."""
    found = _RATE.fullmatch(text)
    if not found:
        raise ValueError("is not a rate such as 100000/s or 100K/s")
    return float(re.sub("[,_]", "", found["number"])) * (1_000 if found["thousands"] else 1)


@commands.add()
def doctor(
    *,
    stage: Annotated[str, typer.Option(help="A stage in infra/stage.py: dev or prod.")] = "dev",
    rate: Annotated[
        float | None,
        typer.Option(
            "--for",
            parser=option_of(parse_rate),
            metavar="RATE",
            help="Executions a second, such as 100000/s: check for these quotas.",
            show_default=False,
        ),
    ] = None,
    where: Annotated[bool, typer.Option("--where", help="Only show caller, account and region.")] = False,
    output: Output,
) -> None:
    """Check the account and region that a stage would be deployed to. Exit code 1: the deployment would stop."""
    examination, stages = Engine(extra="cdk", needs_node=True).load("doctor.examine", "infra.stage")
    try:
        found = stages.Stage.named(stage)
    except stages.InvalidStage as error:
        usage(str(error))
    diagnosis = examination.examine(found, executions=rate, is_only_where=where)
    if output.as_json:
        output.print(diagnosis.as_json())
    else:
        console = console_for_files(_WIDTH_OF_FILES)
        console.print(f"stage {diagnosis.stage}", highlight=False)
        for check in diagnosis.checks:
            console.print(str(check), style=_COLOURS[check.level], markup=False, highlight=False, soft_wrap=True)
    if not diagnosis.is_deployable:
        raise typer.Exit(REFUSED)
