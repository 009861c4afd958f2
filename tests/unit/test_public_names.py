"""What programs of users import."""

import subprocess
import sys
from importlib import import_module

import pytest

FORMER = [
    ("tickwheel.breakers", "Breaker"),
    ("tickwheel.dead_letters", "LetterFilter"),
    ("tickwheel.fires", "Fire"),
    ("tickwheel.health", "Health"),
    ("tickwheel.jobs", "Http"),
    ("tickwheel.operations", "JobFilter"),
    ("tickwheel.pulse", "Pulse"),
    ("tickwheel.schedules", "NewSchedule"),
    ("tickwheel.tenants", "Tenant"),
]


@pytest.mark.parametrize(("module", "name"), FORMER)
def test_a_value_is_found_where_it_was_before(module: str, name: str) -> None:
    words = module.removeprefix("tickwheel.")

    assert getattr(import_module(module), name) is getattr(import_module(f"tickwheel.client.{words}"), name)


def test_the_package_alone_loads_neither_the_client_nor_what_it_needs() -> None:
    script = (
        "import sys, tickwheel; print([name for name in sys.modules if name.split('.')[0] in ('httpx', 'botocore')])"
    )

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert loaded == "[]\n"
