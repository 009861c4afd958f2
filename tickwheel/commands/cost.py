"""The command `tickwheel cost`: a month of a stage, line by line, beside EventBridge Scheduler or another stage."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tickwheel.commands.api import Output
from tickwheel.commands.engine_modules import Engine
from tickwheel.commands.registry import commands
from tickwheel.commands.terminal import console_for_files, usage
from tickwheel.errors import NoPicture

_CLASSES = ("critical", "high", "normal", "low")
_DELIVERIES = ("exactly_once", "at_least_once", "at_most_once")
_WIDTH_OF_FILES = 100


@commands.add()
def cost(
    *,
    jobs_per_day: Annotated[float, typer.Option(min=0, help="Submitted jobs per day.")],
    schedules: Annotated[int, typer.Option(min=0, help="Active schedules.")] = 0,
    fires_per_schedule_day: Annotated[float, typer.Option(min=0, help="Fires per day of each schedule.")] = 1,
    stage: Annotated[str, typer.Option(help="A stage in infra/stage.py, such as dev or prod.")] = "prod",
    against: Annotated[
        str | None, typer.Option(help="Another stage, to be shown beside it.", show_default=False)
    ] = None,
    payload: Annotated[int, typer.Option(min=0, max=262_144, help="Stored size of a job in bytes.")] = 512,
    batch: Annotated[float, typer.Option(min=1, max=500, help="Jobs per request.")] = 25,
    far_share: Annotated[float, typer.Option(min=0, max=1, help="Share of jobs due in more than GUARD.")] = 0.8,
    keyed_share: Annotated[float, typer.Option(min=0, max=1, help="Share of jobs with an idempotency key.")] = 0,
    wait_days: Annotated[float, typer.Option(min=0, help="Average time that a job in the far ring waits.")] = 1,
    delivery: Annotated[str, typer.Option(help=", ".join(_DELIVERIES))] = "exactly_once",
    retries: Annotated[float, typer.Option(min=0, help="Retries per job.")] = 0.02,
    look_ups: Annotated[float, typer.Option(min=0, help="Look-ups per job.")] = 0.1,
    tenants: Annotated[int, typer.Option(min=1, help="Active tenants.")] = 20,
    classes: Annotated[str, typer.Option(help="Shares of executions by class: critical,high,normal,low.")] = "0,0,1,0",
    exact_share: Annotated[float, typer.Option(min=0, max=1, help="Share of executions that are `exact`.")] = 0,
    fill: Annotated[
        float | None,
        typer.Option(
            min=1,
            max=10,
            help="Messages in a worker's batch, of both systems. Default: as many as are likely at this rate.",
            show_default=False,
        ),
    ] = None,
    target_ms: Annotated[float, typer.Option(min=0, help="Assumed time that a batch waits for its targets.")] = 100,
    batch_ms: Annotated[
        float | None,
        typer.Option(min=0, help="Remaining time of a batch. Default: by its size.", show_default=False),
    ] = None,
    hold_ms: Annotated[
        float, typer.Option(min=0, help="Assumed time that a worker waits for the instant of an `exact` job.")
    ] = 1_500,
    tick_ms: Annotated[float, typer.Option(min=0, help="Assumed time of a tick in which nothing comes due.")] = 50,
    pollers: Annotated[
        int, typer.Option(min=1, help="Assumed pollers of an idle event source with a maximum concurrency.")
    ] = 5,
    cold: Annotated[
        float, typer.Option(min=0, max=1, help="Assumed share of invocations that start a new environment.")
    ] = 0.01,
    start_ms: Annotated[float, typer.Option(min=0, help="Assumed time that such a start takes.")] = 1_000,
    traced: Annotated[
        float, typer.Option(min=0, max=1, help="Share that X-Ray samples beside the first trace of each second.")
    ] = 0.05,
    provisioned: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=1,
            help="As if the tables had provisioned capacity, of which this share is used.",
            show_default=False,
        ),
    ] = None,
    rare: Annotated[
        float, typer.Option(min=0, max=1, help="Assumed share of executions with any one kind of trouble.")
    ] = 0.0001,
    picture: Annotated[
        Path | None, typer.Option(help="Also plot the cost against the jobs per day, as PNG.", show_default=False)
    ] = None,
    output: Output,
) -> None:
    """Estimate the monthly cost of a stage from measured units and list prices, compared with EventBridge Scheduler or another stage."""
    if delivery not in _DELIVERIES:
        usage(f"--delivery is {delivery!r}: choose from {', '.join(_DELIVERIES)}")
    costs = _Costs()
    assumed = {
        "fill": fill,
        "pollers": pollers,
        "cold": cold,
        "start_s": start_ms / 1_000,
        "target_s": target_ms / 1_000,
        "batch_s": None if batch_ms is None else batch_ms / 1_000,
        "hold_s": hold_ms / 1_000,
        "provisioned": provisioned,
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
        class_shares=_shares(classes),
        exact_share=exact_share,
    )
    other = costs.model(against, assumed) if against is not None else None
    if output.as_json:
        output.print(costs.report.as_json(model, work, against=other))
    else:
        shown = costs.report.shown_beside([model, other], work) if other else costs.report.shown(model, work)
        console_for_files(_WIDTH_OF_FILES).print(shown, highlight=False)
    if picture is not None:
        costs.draw([costs.model(name, assumed) for name in ("dev", "prod")], work, picture)


def _shares(classes: str) -> tuple[float, ...]:
    """By class, as parts of one."""
    try:
        shares = [float(share) for share in classes.split(",")]
    except ValueError:
        shares = []
    if len(shares) != len(_CLASSES) or min(shares) < 0 or not math.isfinite(sum(shares)) or not sum(shares):
        usage(f"--classes is {classes!r}: use four shares, of {', '.join(_CLASSES)}, such as 5,15,60,20")
    return tuple(share / sum(shares) for share in shares)


class _Costs:
    """What only the engine has: the figures of the benchmarks, the prices and the stages."""

    def __init__(self) -> None:
        names = ("bench.cost_terms", "bench.cost_inputs", "infra.stage", "bench.cost_report")
        self._terms, self._inputs, self._stage, self.report = Engine(extra="cdk", needs_node=True).load(*names)

    def model(self, stage: str, assumed: dict[str, Any]) -> Any:
        try:
            found = self._stage.Stage.named(stage)
        except self._stage.InvalidStage as error:
            usage(str(error))
        return self._inputs.model_of(found, self._terms.Assumed(**assumed))

    def draw(self, models: Sequence[Any], work: Any, file: Path) -> None:
        try:
            self.report.draw(models, work, file)
        except ModuleNotFoundError:
            raise NoPicture("a picture needs matplotlib: pip install 'tickwheel[picture]'") from None

    def workload(self, **options: Any) -> Any:
        return self._terms.Workload(**options)
