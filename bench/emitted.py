"""Which metrics an idle stage has values for, and which an execution adds: CloudWatch bills a metric by the hours with values.

By how closely the stage is watched.

The services run on stores in memory, with the journal and the metrics that are deployed.
"""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, cast

from rich.console import Console

from bench.printed import printed_by
from bench.results import print_table, write_result
from functions.domain.metrics import Watching
from functions.domain.wheel import Ring
from functions.ports.targets import Failed, Succeeded
from functions.runtime.observability import PowertoolsJournal
from testkit.builders import NOON, a_schedule, a_submission, an_alarm, every
from testkit.cloudwatch.datapoints import Datapoints, Metric
from testkit.scheduler import World


def run(console: Console) -> list[str]:
    """Count, print, write metrics.json; nothing is held to a budget."""
    found = {watching.value: measure(watching) for watching in Watching}
    counts = {f"{cause}, {level}": f"{len(names)}" for level, by in found.items() for cause, names in by.items()}
    print_table(console, "Metrics that get values", of="by", figure="count", rows=counts)
    write_result("metrics.json", {"emitted": found})
    return []


def name_of(metric: Metric) -> str:
    """Its own name, and its dimensions."""
    return " ".join([metric.name, *(f"{name}={value}" for name, value in metric.dimensions)])


def measure(watching: Watching) -> Mapping[str, list[str]]:
    """By cause: a minute of an idle stage, a request with jobs, an execution of each kind, and one that is tried again."""
    causes: Mapping[str, Callable[[_Stage], object]] = {
        "idle": _idle,
        "request": _request,
        "near": lambda stage: _execution(stage, delay=timedelta(seconds=30)),
        "far": lambda stage: _execution(stage, delay=timedelta(minutes=10)),
        "fire": _fire,
        "retry": _retry,
    }
    return {cause: _counted(act, watching) for cause, act in causes.items()}


class _Stage:
    """A world whose metrics are counted under the names of functions, but for what is set up."""

    def __init__(self, watching: Watching) -> None:
        self.world = World()
        self.ring = Ring.NEAR
        self.data = Datapoints()
        self._journal = PowertoolsJournal(watching)
        self.world.journal = cast("Any", self._journal)

    def run(self, service: str, act: Callable[[], object]) -> None:
        """An invocation of that function."""
        with printed_by(service) as text:
            act()
            self._journal.flush()
        lines = (line for line in text.getvalue().splitlines() if line.startswith("{"))
        self.data.read(json.loads(line) for line in lines)

    def aside(self, act: Callable[[], object]) -> None:
        """What somebody else does: it is not counted."""
        with printed_by("aside"):
            act()
            self._journal.flush()

    def pass_minutes(self, count: int) -> None:
        """In each a tick of every shard and of the sweeper; workers are asked when something is there, twice a minute."""
        for _ in range(count):
            for shard in range(self.world.wheel.scan_shards):
                self.run("scanner", lambda shard=shard: self.world.scan(shard))
            self.run("sweeper", self._sweep)
            for _ in range(2):
                self.world.clock.tick(timedelta(seconds=30))
                if any(message.visible_at <= self.world.clock.now() for message in self.world.ready.messages.values()):
                    self.run("worker", lambda: self.world.receive_and_work(ring=self.ring))

    def _sweep(self) -> None:
        self.world.heal()
        self.world.sweep()


def _counted(act: Callable[[_Stage], object], watching: Watching) -> list[str]:
    stage = _Stage(watching)
    act(stage)
    return sorted(map(name_of, stage.data.values))


def _idle(stage: _Stage) -> None:
    # So long that buckets end, and the audit comes to them.
    stage.pass_minutes(30)


def _request(stage: _Stage) -> None:
    stage.run("api", lambda: stage.world.submit(a_submission(due_at=NOON + timedelta(hours=1))))


def _execution(stage: _Stage, *, delay: timedelta) -> None:
    stage.aside(lambda: stage.world.submit(a_submission(due_at=NOON + delay)))
    stage.ring = stage.world.wheel.place(NOON + delay, now=NOON)
    stage.pass_minutes(30)
    assert len(stage.world.calls) == 1


def _fire(stage: _Stage) -> None:
    schedule = a_schedule(rule=every(hours=1, phase=timedelta(minutes=10)))
    alarm = an_alarm(schedule, alarm_at=NOON + timedelta(minutes=10), shard=0)
    stage.world.store(schedule, link=alarm.link, alarm_at=alarm.alarm_at)
    stage.world.rows.put_alarms([alarm])
    stage.ring = Ring.FAR
    stage.pass_minutes(30)
    assert len(stage.world.calls) == 1


def _retry(stage: _Stage) -> None:
    stage.world.targets.answer = lambda _, __: Succeeded() if len(stage.world.calls) > 1 else Failed("HTTP 503")
    stage.aside(lambda: stage.world.submit(a_submission(due_at=NOON + timedelta(seconds=30))))
    stage.pass_minutes(30)
    assert len(stage.world.calls) == 2
