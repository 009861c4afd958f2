"""CONTRIBUTING.md walks a job and a fire through the modules: each is entered, and in that order."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.integration.stage import Stage

ROOT = Path(__file__).parents[2]
FUNCTIONS = ROOT / "functions"
BUILDING = ("<module>", "__init__", "__post_init__")
"""An import, and the making of an object: no part of a walk."""


@pytest.mark.long
def test_a_job_walks_through_the_modules_of_the_page(stage: Stage):
    walked = Walk(stage)
    with walked.recorded():
        job_id = walked.step("submitted", lambda: stage.submit(delay=3_600)["id"])
        stage.travel(timedelta(hours=1, seconds=1))
        walked.step("promoted", stage.scan)
        walked.step("run", stage.work)

    assert stage.get(job_id)["state"] == "succeeded"
    walked.assert_is_that_of("a job")


@pytest.mark.long
def test_a_fire_walks_through_the_modules_of_the_page(stage: Stage):
    phase = int((stage.now() + timedelta(minutes=30)).timestamp()) % 3_600
    definition = {"every": {"interval": 3_600, "phase": phase}, "overlap": "forbid", "job": {"target": "handler:echo"}}
    walked = Walk(stage)
    with walked.recorded():
        walked.step("planned", lambda: stage.call("PUT", "/v1/schedules/nightly", definition, query={"tenant": "acme"}))
        stage.travel(timedelta(hours=1))
        walked.step("fired", stage.scan)
        walked.step("run", lambda: stage.work(within_seconds=1))

    _, found = stage.call("GET", "/v1/schedules/nightly", query={"tenant": "acme"})
    assert found["last_outcome"] == "succeeded"
    walked.assert_is_that_of("a fire of a schedule")


class Walk:
    """Which modules of `functions` are entered in which order, step by step."""

    def __init__(self, stage: Stage) -> None:
        for name in ("api", "scanner", "worker"):
            stage.module(name)
        self._steps: dict[str, list[str]] = {}
        self._modules: list[str] = []

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """In this thread, and in those that begin meanwhile."""
        threading.setprofile(self._enter)
        sys.setprofile(self._enter)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def step(self, name: str, act: Callable[[], Any]) -> Any:
        self._modules = self._steps[name] = []
        return act()

    def assert_is_that_of(self, what: str) -> None:
        for step, modules in self._steps.items():
            listed = listed_in(f"The walk of {what}", f"{step}:")
            assert listed, step
            assert [module for module in listed if module not in modules] == [], (step, modules)
            assert listed == sorted(listed, key=modules.index), step

    def _enter(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_name not in BUILDING
            and (file := Path(code.co_filename)).is_relative_to(FUNCTIONS)
        ):
            module = file.relative_to(FUNCTIONS).as_posix()
            if module not in self._modules:
                self._modules.append(module)


def listed_in(heading: str, step: str) -> list[str]:
    """The modules of a step, as the page has them."""
    page = (ROOT / "CONTRIBUTING.md").read_text()
    (of_heading,) = re.findall(rf"^### {heading}\n(.*?)(?=^##|\Z)", page, re.DOTALL | re.MULTILINE)
    (of_step,) = re.findall(
        rf"^\*\*{step}\*\*.*?\n\n((?:\d+\. .*\n(?:   .*\n)*)+)", of_heading, re.IGNORECASE | re.MULTILINE
    )
    return re.findall(r"^\d+\. `([\w/.]+)`", of_step, re.MULTILINE)
