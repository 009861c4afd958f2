"""Draws docs/pictures/top.svg: the screen of `tickwheel top`, of a stage whose quarter of an hour is made up.

Its processes count as the deployed ones do, in memory; the answer is computed by the API's own code, and read and
shown by the command's. The figures are drawn from one seed.
"""

import io
import math
import random
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from functions.api.stage.answers import health_body
from functions.api.stage.health import HealthReader
from functions.api.stage.pulse import PulseReader
from functions.domain.instants import MINUTE, SECOND
from functions.domain.jobs.job import Priority
from functions.domain.stage.pulse import PERIOD, Figure
from functions.domain.tenants.plan import DEFAULT_PLAN
from functions.services.telemetry.pulse import WRITTEN_EVERY, PulseTally
from functions.services.tenants.plans import KnownPlans
from testkit.builders import a_breaker, a_job, a_submission
from testkit.fakes import InMemoryPulseStore, InMemoryTenantStore
from testkit.scheduler import World
from tickwheel.client.health import Health
from tickwheel.screens.top import top_of

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "top.svg"

_WIDTH = 80
_TENANTS = {"acme": 12, "globex": 5, "initech": 2, "umbrella": 1}
_FAILING = "umbrella"
_CLASSES = {Priority.CRITICAL: 1, Priority.HIGH: 3, Priority.NORMAL: 10, Priority.LOW: 5}
_HERD_AT = 9
_OFTEN, _MOSTLY, _SELDOM = 0.6, 0.7, 0.2
"""The minute in which three times as many come."""


def draw() -> str:
    """The picture."""
    console = Console(file=io.StringIO(), width=_WIDTH, record=True, force_terminal=True, color_system="truecolor")
    console.print(top_of(Health.from_json(_health())))
    return console.export_svg(title="tickwheel top", theme=MONOKAI, unique_id="top")


def _health() -> dict[str, object]:
    world, store, chance = World(), InMemoryPulseStore(), random.Random(3)
    process = PulseTally(clock=world.clock, pulses=store, journal=world.journal)
    for minute in range(PERIOD + 1):
        for _ in range(3 if minute < PERIOD else 1):
            _pass(process, chance, jobs=chance.randrange(280, 340) * (3 if minute == _HERD_AT else 1))
            process.flush()
            world.clock.tick(WRITTEN_EVERY)
    for number in range(60):
        world.submit(a_submission(due_at=world.clock.now() + number * SECOND))
    for shard in range(world.wheel.scan_shards):
        world.scan(shard)
    world.publish()
    opened_at = world.clock.now() - 7 * MINUTE
    world.breaker_store.put(
        a_breaker(tenant=_FAILING, destination="https://hooks.example.com", opened_at=opened_at, error_class="timeout"),
        seen=None,
    )
    reader = HealthReader(
        stage="prod",
        wheel=world.wheel,
        clock=world.clock,
        shards=world.shards,
        breakers=world.breaker_store,
        plans=KnownPlans(
            clock=world.clock, tenants=InMemoryTenantStore(), journal=world.journal, stage_plans={DEFAULT_PLAN: {}}
        ),
        pulse=PulseReader(clock=world.clock, pulses=store),
    )
    return health_body(reader.read())


def _pass(process: PulseTally, chance: random.Random, *, jobs: int) -> None:
    """A third of a minute."""
    for _ in range(jobs):
        tenant = chance.choices(list(_TENANTS), list(_TENANTS.values()))[0]
        priority = chance.choices(list(_CLASSES), list(_CLASSES.values()))[0]
        process.count(Figure.SUBMITTED, tenant)
        process.count(Figure.PROMOTED, amount=int(chance.random() < _OFTEN))
        late = timedelta(seconds=chance.lognormvariate(math.log(0.5), 0.5))
        process.began(a_job(tenant=tenant, priority=priority), late * (1 + priority / 2))
        fails = tenant == _FAILING and chance.random() < _MOSTLY
        failure = Figure.FAILED if chance.random() < _SELDOM else Figure.RETRIED
        process.count(failure if fails else Figure.SUCCEEDED, tenant)
    process.count(Figure.REFUSED, "globex", amount=chance.randrange(3))


if __name__ == "__main__":
    PICTURE.write_text(draw())
    print(PICTURE)
