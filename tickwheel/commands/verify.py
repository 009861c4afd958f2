"""The command `tickwheel verify`: many jobs under faults, and a checker that looks at all that became of them."""

import secrets
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.progress import Progress

from tickwheel.commands.api import Output
from tickwheel.commands.engine_modules import Engine
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import REFUSED, console_for_files, error_console, progress_bar, usage

_USUAL_JOBS = {"fakes": 10_000, "dynamodb": 1_000, "local": 300}
_SEEDS = 2**32
_WIDTH_OF_FILES = 130


class Backend(StrEnum):
    """Where the jobs run: on stores in memory, on DynamoDB's own engine, or on the stacks of the local cloud."""

    FAKES = "fakes"
    DYNAMODB = "dynamodb"
    LOCAL = "local"


@commands.add()
def verify(
    *,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of jobs, in episodes of 100. Default: 10000, 1000 on dynamodb, 300 on local.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed. The same seed gives the same run. Default: random.", show_default=False),
    ] = None,
    faults: Annotated[
        str | None,
        typer.Option(help="Faults to inject, separated by commas, or none. Default: all.", show_default=False),
    ] = None,
    on: Annotated[
        Backend, typer.Option(help="Where to run: in memory, on DynamoDB's own engine, or on the local cloud.")
    ] = Backend.FAKES,
    episode: Annotated[
        int | None, typer.Option(min=0, help="Repeat the one episode with this seed.", show_default=False)
    ] = None,
    output: Output,
) -> None:
    """Run jobs and schedules under faults, and check every promise. Exit code 1: one was broken."""
    if episode is not None and (on is Backend.LOCAL or jobs is not None or seed is not None):
        usage("--episode repeats one episode, in memory or on dynamodb: leave --jobs and --seed out")
    verification = _Verification()
    struck = verification.faults(faults, on=on)
    jobs = jobs or _USUAL_JOBS[on]
    seed = secrets.randbelow(_SEEDS) if seed is None else seed
    with progress_bar(disable=output.as_json) as progress:
        if episode is not None:
            total = verification.repeat(episode, struck, on=on)
        elif on is Backend.LOCAL:
            total = verification.run_local(jobs, seed, struck, progress)
        else:
            total = verification.run(jobs, seed, struck, progress, on=on)
    command = "tickwheel verify" + (f" --faults {faults}" if faults is not None else "")
    command += " --on dynamodb" if on is Backend.DYNAMODB else ""
    origin = {"on": str(on), "seed": seed if episode is None else None}
    if output.as_json:
        output.print(verification.report.as_json(total, command=command, **origin))
    else:
        _show(verification.report, total, command=command, seed=seed, is_one=episode is not None)
    if not total.is_kept:
        raise typer.Exit(REFUSED)


class _Verification:
    """What only the engine has: it runs the scheduler's own code, on the stores of its tests."""

    def __init__(self) -> None:
        names = ("verification.faults", "verification.run", "verification.report")
        self._engine = Engine(extra="local")
        self._faults, self._run, self.report = self._engine.load(*names)

    def faults(self, text: str | None, *, on: Backend) -> tuple[Any, ...]:
        there = {
            Backend.FAKES: self._faults.IN_MEMORY,
            Backend.DYNAMODB: self._faults.Fault,
            Backend.LOCAL: self._faults.FROM_OUTSIDE,
        }
        known = tuple(there[on])
        if text is None:
            return known
        named = [name.strip() for name in text.split(",")] if text != "none" else []
        for name in named:
            if name not in known:
                usage(f"--faults names {name!r}, which does not exist on {on}: choose from {', '.join(known)}, or none")
        return tuple(fault for fault in known if fault in named)

    def repeat(self, seed: int, faults: tuple[Any, ...], *, on: Backend) -> Any:
        with self._stores(on) as stores:
            return self._run.run_all([seed], faults, stores=stores)

    def run(self, jobs: int, seed: int, faults: tuple[Any, ...], progress: Progress, *, on: Backend) -> Any:
        seeds = self._run.seeds_of(seed, jobs=jobs)
        with self._stores(on) as stores:
            task = progress.add_task("verifying", total=len(seeds) * self._run.JOBS)
            return self._run.run_all(seeds, faults, stores=stores, advance=lambda count: progress.advance(task, count))

    def _stores(self, on: Backend) -> AbstractContextManager[Any]:
        if on is Backend.DYNAMODB:
            (engine,) = self._engine.load("verification.engine")
            return engine.dynamodb(lambda line: error_console().print(line, highlight=False))
        (stores,) = self._engine.load("testkit.world.stores")
        return nullcontext(stores.in_memory)

    def run_local(self, jobs: int, seed: int, faults: tuple[Any, ...], progress: Progress) -> Any:
        (local,) = self._engine.load("verification.local")
        return local.run(jobs, seed, faults, progress)


def _show(report: Any, total: Any, *, command: str, seed: int, is_one: bool) -> None:
    out = console_for_files(_WIDTH_OF_FILES)
    out.print(report.table_of(total))
    for line in report.lines_of(total, command=command):
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    if is_one:
        for outcome in total.outcomes:
            for story in outcome.stories:
                out.print(f"\n{story}", markup=False, highlight=False, soft_wrap=True)
    elif total.is_kept:
        out.print(f"✔ every promise was kept; seed {seed}", style="green", highlight=False)
