"""The command `tickwheel cost`: a month of a stage, line by line, beside EventBridge Scheduler."""

import importlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tickwheel.commands.options import JsonOption
from tickwheel.commands.terminal import failing_politely, usage
from tickwheel.errors import MissingTool, NotACheckout, TickwheelError
from tickwheel.local.checkout import find_checkout

_DELIVERIES = ("exactly_once", "at_least_once", "at_most_once")
_WIDTH_OF_FILES = 100


def cost(
    *,
    jobs_per_day: Annotated[float, typer.Option(min=0, help="Jobs that are submitted.")],
    schedules: Annotated[int, typer.Option(min=0, help="Schedules that are active.")] = 0,
    fires_per_schedule_day: Annotated[float, typer.Option(min=0, help="Of each of them.")] = 1,
    stage: Annotated[str, typer.Option(help="Of infra/stage.py: dev or prod.")] = "prod",
    payload: Annotated[int, typer.Option(min=0, max=262_144, help="Bytes of a job, as it is stored.")] = 512,
    batch: Annotated[float, typer.Option(min=1, max=500, help="Jobs a request.")] = 25,
    far_share: Annotated[float, typer.Option(min=0, max=1, help="Of jobs due in more than GUARD.")] = 0.8,
    keyed_share: Annotated[float, typer.Option(min=0, max=1, help="Of jobs with an idempotency key.")] = 0,
    wait_days: Annotated[float, typer.Option(min=0, help="How long a far job waits, on average.")] = 1,
    delivery: Annotated[str, typer.Option(help=", ".join(_DELIVERIES))] = "exactly_once",
    retries: Annotated[float, typer.Option(min=0, help="Attempts beside the first, a job.")] = 0.02,
    look_ups: Annotated[float, typer.Option(min=0, help="Times that a job is looked up.")] = 0.1,
    tenants: Annotated[int, typer.Option(min=1, help="Tenants that are active.")] = 20,
    fill: Annotated[
        float | None,
        typer.Option(
            min=1, max=10, help="Messages in a worker's batch; else those of a second, 1 to 10.", show_default=False
        ),
    ] = None,
    target_ms: Annotated[float, typer.Option(min=0, help="Assumed: how long a batch waits for its targets.")] = 100,
    batch_ms: Annotated[float, typer.Option(min=0, help="Assumed: what a batch takes beside that.")] = 30,
    tick_ms: Annotated[float, typer.Option(min=0, help="Assumed: a tick in which nothing comes due.")] = 50,
    pollers: Annotated[int, typer.Option(min=1, help="Assumed: of an event source with nothing to do.")] = 2,
    traced: Annotated[
        float, typer.Option(min=0, max=1, help="Assumed: share of invocations that X-Ray samples.")
    ] = 0.05,
    rare: Annotated[
        float, typer.Option(min=0, max=1, help="Assumed: share of executions that meet any one kind of trouble.")
    ] = 0.001,
    picture: Annotated[
        Path | None, typer.Option(help="Also draw cost against jobs a day, as PNG.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Itemise a month of a stage, from measured units and list prices, beside EventBridge Scheduler."""
    if delivery not in _DELIVERIES:
        usage(f"--delivery is {delivery!r}: choose from {', '.join(_DELIVERIES)}")
    with failing_politely(as_json=as_json):
        costs = _Costs(_find_root())
        assumed = {
            "fill": fill,
            "pollers": pollers,
            "target_s": target_ms / 1_000,
            "batch_s": batch_ms / 1_000,
            "tick_s": tick_ms / 1_000,
            "traced": traced,
            "rare": rare,
        }
        model = costs.model(stage, assumed)
    work = costs.workload(
        jobs_a_day=jobs_per_day,
        schedules=schedules,
        fires_a_schedule_day=fires_per_schedule_day,
        payload=payload,
        batch=batch,
        far_share=far_share,
        keyed_share=keyed_share,
        wait_days=wait_days,
        delivery=delivery,
        retries=retries,
        look_ups=look_ups,
        tenants=tenants,
    )
    if as_json:
        typer.echo(json.dumps(costs.report.as_json(model, work)))
    else:
        console = Console()
        out = console if console.is_terminal else Console(width=_WIDTH_OF_FILES)
        out.print(costs.report.shown(model, work), highlight=False)
    if picture is not None:
        costs.report.draw([costs.model(name, assumed) for name in ("dev", "prod")], work, picture)


class _Costs:
    """What only a checkout has: the figures of its benchmarks, its prices and its stages."""

    def __init__(self, root: Path) -> None:
        # This package is installed; the rest of the checkout is not.
        sys.path.insert(0, str(root))
        try:
            self._cost = importlib.import_module("bench.cost")
            self._inputs = importlib.import_module("bench.cost_inputs")
            self._stage = importlib.import_module("infra.stage")
            self.report = importlib.import_module("bench.cost_report")
        except ModuleNotFoundError as error:
            raise MissingTool(
                f"{error.name} is not installed here: run `make setup` in {root}, and then {root}/.venv/bin/tickwheel"
            ) from None

    def model(self, stage: str, assumed: dict[str, Any]) -> Any:
        try:
            found = self._stage.Stage.named(stage)
        except self._stage.InvalidStage as error:
            usage(str(error))
        return self._inputs.model_of(found, self._cost.Assumed(**assumed))

    def workload(self, **options: Any) -> Any:
        return self._cost.Workload(**options)


def _find_root() -> Path:
    try:
        root = find_checkout().root
    except NotACheckout:
        root = None
    if root is None or not (root / "bench").is_dir():
        raise TickwheelError(
            f"{Path.cwd()} is not inside a checkout of Tickwheel, and a bill is made of its benchmarks and its stages: "
            "clone the repository, run `make setup`, and try again in its folder"
        )
    return root
