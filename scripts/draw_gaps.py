"""Draws docs/pictures/schedule-gaps.png: `python -m scripts.draw_gaps`.

A schedule of independent events runs for a week on the whole scheduler in memory, on virtual time; after two days nothing runs
for six hours, and what was missed is dropped. The figures are answered by the API's own code, and read and drawn by the command's.
"""

from datetime import timedelta
from pathlib import Path

from rich.console import Console

from functions.api.schedules.manager import ScheduleManager
from functions.api.schedules.stats_answers import stats_body
from functions.domain.schedules.rules import Poisson
from functions.domain.schedules.schedule import Misfire
from testkit.builders import a_schedule, a_template
from testkit.scheduler import World, pass_time
from tickwheel.client.schedule_stats import ScheduleStats
from tickwheel.screens.gaps_picture import draw_gaps
from tickwheel.screens.schedule_stats import gaps_table, headline, stats_table

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "schedule-gaps.png"

_PER_DAY = 96
_BEFORE, _OUTAGE, _AFTER = timedelta(days=2), timedelta(hours=6), timedelta(days=4, hours=18)


def figures() -> ScheduleStats:
    """The figures of the schedule after its week."""
    world = World()
    manager = world.build(ScheduleManager, gate=world.gate)
    job = a_template(target="https://example.com/probe")
    manager.put(a_schedule(schedule_id="probes", rule=Poisson(_PER_DAY), misfire=Misfire.SKIP, job=job))
    pass_time(world, until=world.clock.now() + _BEFORE)
    world.clock.tick(_OUTAGE)
    for shard in range(world.wheel.scan_shards):
        world.scan(shard)
    pass_time(world, until=world.clock.now() + _AFTER)
    return ScheduleStats.from_json(stats_body(manager.stats("acme", "probes")))


def main() -> None:
    """Draw it, and print what the command prints."""
    stats = figures()
    draw_gaps(PICTURE, stats)
    console = Console(width=110, highlight=False)
    for each in (stats_table(stats), headline(stats), gaps_table(stats)):
        console.print(each)


if __name__ == "__main__":
    main()
