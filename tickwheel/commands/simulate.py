"""The command `tickwheel simulate`: the scheduler's own code on virtual time, against its targets and textbook designs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from tickwheel.commands.api import Output
from tickwheel.commands.engine_modules import Engine
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import REFUSED, console_for_files, error_console, share_bar, usage

_FOLDER = "simulation"
_WIDTH_OF_FILES = 150


@commands.add()
def simulate(
    *,
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SCENARIO]...", help="Scenarios to run. Default: all.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed. The same seed gives the same run.")] = 1,
    reduced: Annotated[
        bool, typer.Option("--reduced", help="Use a smaller sample and shorter times: one minute for all scenarios.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the report. Default: simulation, in .build of a checkout.", show_default=False),
    ] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the scenarios and exit.")] = False,
    output: Output,
) -> None:
    """Run scenarios on virtual time, and write a report with pictures. Exit code 1: a target was missed."""
    simulation = _Simulation()
    if list_all:
        for name, title in simulation.titles():
            typer.echo(f"{name:<18}{title}")
        return
    names = simulation.chosen(scenarios or [])
    with share_bar(disable=output.as_json) as progress:
        results = simulation.run(names, is_full=not reduced, seed=seed, progress=progress)
    page = simulation.write(out or simulation.reports / _FOLDER, results)
    if output.as_json:
        output.print({"report": str(page), "scenarios": [result.as_json() for result in results]})
    else:
        _show(simulation.report, results)
        error_console().print(f"wrote the report with pictures to {page}", soft_wrap=True, highlight=False)
    if not all(result.is_held for result in results):
        raise typer.Exit(REFUSED)


class _Simulation:
    """What only the engine has: it runs the scheduler's own code."""

    def __init__(self) -> None:
        names = ("simulation.catalogue", "simulation.suite", "simulation.page", "simulation.report")
        engine = Engine(extra="local", needs_node=True)
        self.reports = engine.reports
        self._catalogue, self._suite, self._page, self.report = engine.load(*names)

    def titles(self) -> list[tuple[str, str]]:
        return [(name, make(is_full=True).title) for name, make in self._catalogue.SCENARIOS.items()]

    def chosen(self, named: Sequence[str]) -> list[str]:
        known = list(self._catalogue.SCENARIOS)
        for name in named:
            if name not in known:
                usage(f"there is no scenario {name!r}: choose from {', '.join(known)}")
        return [name for name in known if name in named] or known

    def run(self, names: Sequence[str], *, is_full: bool, seed: int, progress: Progress) -> list[Any]:
        tasks = {name: progress.add_task(name, total=1.0) for name in names}
        results = self._suite.run_all(
            names,
            is_full=is_full,
            seed=seed,
            advance=lambda name, share: progress.update(tasks[name], completed=share),
        )
        for task in tasks.values():
            progress.update(task, completed=1.0)
        return results

    def write(self, folder: Path, results: Sequence[Any]) -> Path:
        return self._page.write_report(folder, results)


def _show(report: Any, results: Sequence[Any]) -> None:
    out = console_for_files(_WIDTH_OF_FILES)
    for result in results:
        out.print(report.table_of(result), highlight=False)
    if len(results) > 1:
        out.print(report.summary_of(results), highlight=False)
