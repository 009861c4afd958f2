"""The folders tell the architecture: layers outside, the same words inside, and no module that holds several things."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 400
PRODUCT = (
    *("functions", "infra", "tickwheel", "testkit"),
    *("verification", "simulation", "soak", "bench", "fuzzing", "scripts", "doctor", "smoke"),
)
HANDLERS = {"api", "scanner", "worker", "sweeper", "operations", "dead_letters", "resources"}
BELOW_HANDLERS = {"runtime", "adapters", "services", "ports", "domain"}
LAYERS = ("domain", "services", "adapters", "api")
FEATURES = {"jobs", "schedules", "targets", "tenants", "dead_letters", "operations", "far_ring", "stage"}
TECHNICAL = {
    "domain": {"errors", "explanation"},
    "services": {"telemetry"},
    "adapters": {"dynamodb", "s3", "wire"},
    "api": {"admission", "http"},
}


def _long_modules() -> set[str]:
    modules = (file for package in PRODUCT for file in (ROOT / package).rglob("*.py"))
    return {file.relative_to(ROOT).as_posix() for file in modules if len(file.read_text().splitlines()) > MOST_LINES}


def test_no_module_has_more_lines_than_a_reader_takes_in_at_once() -> None:
    assert _long_modules() == set()


def test_every_package_is_looked_at() -> None:
    packages = {init.parent.name for init in ROOT.glob("*/__init__.py")}

    assert packages - set(PRODUCT) == {"tests"}


def test_what_runs_in_lambda_stands_in_a_handler_or_a_layer_and_nothing_loose_beside_them() -> None:
    modules = (ROOT / "functions").rglob("*.py")
    places = {module.relative_to(ROOT / "functions").parts[0] for module in modules}

    assert places == {"__init__.py", *HANDLERS, *BELOW_HANDLERS}


@pytest.mark.parametrize("layer", LAYERS)
def test_the_folders_of_a_layer_are_features_or_named_as_technical(layer: str) -> None:
    modules = (ROOT / "functions" / layer).glob("*/*.py")
    assert {module.parent.name for module in modules} - FEATURES - TECHNICAL[layer] == set()
