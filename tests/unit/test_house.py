"""The folders tell the architecture: layers outside, the same words inside, and no module that holds several things."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 400
LAYERS = ("domain", "services", "adapters", "api")
FEATURES = {"jobs", "schedules", "targets", "tenants", "dead_letters", "operations", "far_ring", "stage"}
TECHNICAL = {
    "domain": {"errors", "explanation"},
    "services": {"telemetry"},
    "adapters": {"dynamodb", "s3"},
    "api": {"admission", "http"},
}


def _long_modules() -> set[str]:
    packages = ("functions", "tickwheel", "testkit", "infra")
    modules = (file for package in packages for file in (ROOT / package).rglob("*.py"))
    return {file.relative_to(ROOT).as_posix() for file in modules if len(file.read_text().splitlines()) > MOST_LINES}


def test_no_module_has_more_lines_than_a_reader_takes_in_at_once() -> None:
    assert _long_modules() == set()


@pytest.mark.parametrize("layer", LAYERS)
def test_the_folders_of_a_layer_are_features_or_named_as_technical(layer: str) -> None:
    modules = (ROOT / "functions" / layer).glob("*/*.py")
    assert {module.parent.name for module in modules} - FEATURES - TECHNICAL[layer] == set()
