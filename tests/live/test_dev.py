"""`tickwheel dev` on a local cloud of its own: worker and API begin anew when they get its layer, which other tests would notice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra import handlers as engine
from infra.handler_names import InvalidHandlers, read_handlers
from testkit.polling import eventually
from tests.e2e.waiting import reaches
from tickwheel.client import Client
from tickwheel.commands.dev import Session
from tickwheel.errors import ApiProblem
from tickwheel.local import Stack, local_stack
from tickwheel.local.live_handlers import LiveHandlers, Told

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

SOURCE = """
from tickwheel.handlers import handler


@handler("count")
def count(payload):
    print("counting", payload)
    return {"version": 1}
"""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with local_stack() as stack:
        yield stack


@pytest.fixture(scope="module")
def client(stack: Stack) -> Iterator[Client]:
    with Client(stack.api_endpoint) as client:
        yield client


@pytest.fixture(scope="module")
def live(stack: Stack) -> LiveHandlers:
    (stack.folder / "handlers").mkdir()
    return LiveHandlers(stack.aws, current=stack.folder / "handlers" / "current")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "counting"
    folder.mkdir()
    (folder / "jobs.py").write_text(SOURCE)
    return folder / "jobs.py"


@pytest.fixture
def session(stack: Stack, live: LiveHandlers, file: Path) -> Session:
    return Session(file.parent, live, read=read_handlers, engine=engine, place=stack.folder / "handlers")


def test_a_change_of_a_file_runs_within_seconds_and_each_run_is_told(
    client: Client, live: LiveHandlers, session: Session, file: Path
) -> None:
    assert session.deploy() == ["count"]
    first = client.submit("handler:count", tenant="acme", payload=7)
    assert reaches(client, first.id, "succeeded").result == {"version": 1}
    assert _said(live, of=first.id) == ["counting 7"]

    began_at = time.monotonic()
    file.write_text(SOURCE.replace('"version": 1', '"version": 2').replace('"count"', '"count_on"'))
    assert session.deploy() == ["count_on"]
    second = client.submit("handler:count_on", tenant="acme", payload=8)
    assert reaches(client, second.id, "succeeded").result == {"version": 2}
    assert time.monotonic() - began_at < 20, "a deployment takes longer, on whatever machine"
    with pytest.raises(ApiProblem, match="did you mean handler:count_on"):
        client.submit("handler:count", tenant="acme")

    file.write_text("def broken(:")
    with pytest.raises(InvalidHandlers, match=r"jobs\.py:1: invalid syntax"):
        session.deploy()
    third = client.submit("handler:count_on", tenant="acme", payload=9)
    assert reaches(client, third.id, "succeeded").result == {"version": 2}


def _said(live: LiveHandlers, *, of: str) -> list[str]:
    told: list[Told] = []

    def hear() -> set[str]:
        told.extend(each for each in live.told() if each.job_id == of)
        return {each.what for each in told}

    eventually(hear, lambda seen: "ended" in seen, what="the end of the run is told")
    return [each.text for each in told if each.what == "said"]
