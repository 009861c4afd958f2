"""What a job pays for its callbacks, and a run of a schedule for being remembered, by DynamoDB Local's own count."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from bench import budgets
from bench.boundary import hearing
from bench.budgets import Path, Units, over_budget
from bench.prices import price_of_a_million, read_prices
from bench.results import write_result
from bench.units import PAYLOAD_BYTES, Rig
from functions.adapters.dynamodb.schedule_updates import Update
from functions.domain.instants import SECOND, from_seconds
from functions.domain.jobs.callbacks import Callbacks
from functions.domain.jobs.job import Delivery
from functions.domain.schedules.fire_figures import LAST_BUCKET, FireFigures
from functions.domain.schedules.rules import Every
from functions.domain.schedules.schedule import JobTemplate, Schedule
from functions.domain.wheel import Ring
from testkit.dynamodb_local import DynamoDBLocal

JOBS = 200
SCHEDULES = 20
KEPT = 10
ROUNDS = 6
"""After so many, each a second after the one before, a job and those of its callbacks have ended."""

_OF_A_REQUEST = 4
_PERIOD = timedelta(hours=1)
TENANT = "acme"
_TARGET = "handler:note"
_EVERY_LENGTH = FireFigures(dict.fromkeys(range(LAST_BUCKET + 1), 99_999_999), 9_999_999, timedelta(days=9_999))
"""A hundred million gaps in each bucket: a schedule that fires once a second has so many after three years."""

NEAR = Path(Ring.NEAR, Delivery.EXACTLY_ONCE, keyed=False)
_PLAIN, _TRIGGERED = "a fire of a schedule", "a run that was triggered"
_KEEPING = f"a fire of a schedule that keeps {KEPT} runs"
_REMEMBERING = f"a fire of a schedule that remembers {KEPT} triggered runs"
_COUNTING = "a fire of a schedule with gaps of every length"

CALLBACKS: Mapping[str, Callbacks] = {
    "no callback": Callbacks(),
    "on_end": Callbacks(on_end=_TARGET),
    "on_success and on_end": Callbacks(on_success=_TARGET, on_end=_TARGET),
}
BUDGETS: Mapping[str, Units] = {
    "no callback": budgets.UNITS[NEAR],
    # Its row, claim and settlement; a message that is sent alone, received and deleted.
    "on_end": Units(5, 0, 1.5),
    "on_success and on_end": Units(8, 0, 2.7),
    _PLAIN: Units(4, 1.8, 0.3),
    _REMEMBERING: Units(4, 1.8, 0.3),
    # Its figures are counters of the row that a fire writes anyway, within its unit.
    _COUNTING: Units(4, 1.8, 0.3),
    # Its row, which tells its id from one that nobody was given, a look at its schedule, and its place in the history. Its message is sent,
    # received and deleted alone.
    _TRIGGERED: Units(4, 1, 3),
    # Two writes of a state row of more than a unit, and a look at it.
    _KEEPING: Units(7, 2.8, 0.3),
}


def run(console: Console) -> list[str]:
    """Measure, print, write runs.json; a sentence for each figure above its budget."""
    with DynamoDBLocal() as engine:
        measured = measure(engine.endpoint_url)
    prices = read_prices()
    table = Table(title=f"Units of a job (payload of {PAYLOAD_BYTES} bytes)", box=SIMPLE)
    for heading in ("", "write units", "read units", "SQS requests", "USD/M"):
        table.add_column(heading)
    for name, used in measured.items():
        figures = (f"{value:.3f}" for value in asdict(used).values())
        table.add_row(name, *figures, f"{price_of_a_million(used, prices):.2f}")
    console.print(table)
    write_result("runs.json", {name: _described(name, used) for name, used in measured.items()})
    return [sentence for name, used in measured.items() for sentence in over_budget(name, used, BUDGETS[name])]


def measure(endpoint_url: str) -> dict[str, Units]:
    """Units of one of each, against the engine at that address."""
    rig = RunRig()
    with hearing(rig.handlers, endpoints={"dynamodb": endpoint_url}):
        rig.build()
        return {
            **{name: rig.measure_callbacks(callbacks) for name, callbacks in CALLBACKS.items()},
            _PLAIN: rig.measure_kept(0),
            _REMEMBERING: rig.measure_kept(0, asked=KEPT),
            _COUNTING: rig.measure_kept(0, has_figures=True),
            _KEEPING: rig.measure_kept(KEPT),
            _TRIGGERED: rig.measure_triggered(),
        }


class RunRig(Rig):
    def measure_callbacks(self, callbacks: Callbacks) -> Units:
        """Units of one of so many near jobs that succeed, with the jobs of their callbacks."""
        self._ran.clear()
        self._know()
        self._spent()
        due_at = self.clock.now() + SECOND
        self._submit([replace(self._submission(NEAR, due_at), callbacks=callbacks) for _ in range(JOBS)], NEAR)
        expected = JOBS * (1 + len(list(callbacks.named())))
        for _ in range(ROUNDS):
            self._execute()
            self.clock.sleep(SECOND)
        assert len(self._ran) == len(set(self._ran)) == expected, f"{len(self._ran)} runs of {expected}"
        return self._spent() / JOBS

    def measure_kept(self, kept: int, *, asked: int = 0, has_figures: bool = False) -> Units:
        """Units of a fire when its schedule keeps as many runs as it may, from its alarm to its settlement and the next alarm.

        asked: triggered runs before. has_figures: it has counted a hundred million gaps of each length.
        """
        schedule_ids, used = self.fire(kept, asked=asked, has_figures=has_figures)
        for schedule_id in schedule_ids:
            self._schedules.delete(TENANT, schedule_id)
        return used / SCHEDULES

    def fire(self, kept: int, *, asked: int = 0, has_figures: bool = False) -> tuple[list[str], Units]:
        """The ids of schedules that have fired as often as their histories are long, and oftener; units of the last fires."""
        wheel, fires = self._wiring.wheel, KEPT + 2
        begins = from_seconds(wheel.next_bucket(wheel.bucket_of(self.clock.now() + 2 * wheel.guard)))
        schedule_ids = [f"keeps-{kept}-{asked}-{has_figures}-{number}" for number in range(SCHEDULES)]
        for schedule_id in schedule_ids:
            self._schedules.put(self._schedule(schedule_id, kept, start=begins, max_runs=fires + 1))
            if has_figures:
                self._count_gaps(schedule_id)
        for token in range(asked):
            for schedule_id in schedule_ids:
                self._extra_runs.trigger(TENANT, schedule_id, token=f"k-{token:016x}")
            self._execute()
            self.clock.sleep(SECOND)
        used = Units(0, 0, 0)
        for count in range(fires):
            self._ran.clear()
            self.clock.set(begins + count * _PERIOD - wheel.lookahead - SECOND)
            self._scan()  # the ticks in between are idle, and measured as such
            self.clock.set(begins + count * _PERIOD - wheel.lookahead)
            self._know()
            self._spent()
            self._scan()
            self._execute()
            used = self._spent()
            assert len(self._ran) == SCHEDULES, f"{len(self._ran)} runs of {SCHEDULES} schedules"
        return schedule_ids, used

    def _count_gaps(self, schedule_id: str) -> None:
        update = Update()
        update.add_figures(_EVERY_LENGTH)
        written = self._wiring.table("SCHEDULE_STATE").update({"k": f"{TENANT}#{schedule_id}"}, **update.asked)
        assert written.is_done, written

    def measure_triggered(self) -> Units:
        """Units of a run that is asked for, from what takes it in to its settlement; without the read of its schedule for the request."""
        self._schedules.put(self._schedule("triggered", 0, start=self.clock.now() + 24 * _PERIOD, max_runs=2))
        self._ran.clear()
        self._know()
        self._spent()
        for number in range(KEPT):
            # One after another: of those that begin at once, each that comes second writes once more.
            self._extra_runs.trigger(TENANT, "triggered", token=f"k-{number:016x}")
            self._execute()
            self.clock.sleep(SECOND)
        assert len(self._ran) == KEPT, f"{len(self._ran)} runs of {KEPT} triggers"
        used = self._spent()
        # The definition and the state of a schedule, which the request reads together: a transaction.
        return replace(used, reads=used.reads - KEPT * _OF_A_REQUEST) / KEPT

    def _schedule(self, schedule_id: str, kept: int, **bounds: Any) -> Schedule:
        return Schedule(
            tenant=TENANT,
            schedule_id=schedule_id,
            rule=Every(interval=_PERIOD),
            success_history=kept or None,
            job=JobTemplate(target=_TARGET),
            **bounds,
        )


def _described(name: str, used: Units) -> dict[str, Any]:
    return {
        **{figure: round(value, 4) for figure, value in asdict(used).items()},
        "budget": asdict(BUDGETS[name]),
    }
