"""A user's handlers: a folder that is deployed with the stage, and one that changes while the local cloud runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra import handlers as engine
from infra.handler_names import InvalidHandlers, read_handlers
from testkit.deployment import Deployment
from testkit.polling import eventually
from tests.e2e.waiting import reaches
from tickwheel.client import Client
from tickwheel.commands.dev import Session
from tickwheel.errors import ApiProblem
from tickwheel.local.live_handlers import LiveHandlers, Told

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

SOURCE = """
from tickwheel.handlers import handler


@handler("count")
def count(payload):
    print("counting", payload)
    return {"version": 1}
"""


@pytest.fixture
def live(deployment: Deployment) -> Iterator[LiveHandlers]:
    """What `tickwheel dev` works with; afterwards the functions have the layers that were deployed."""
    place = deployment.stack.folder / "handlers"
    place.mkdir(exist_ok=True)
    functions = deployment.client("lambda")
    names = [deployment.function(name) for name in ("Api", "Worker")]
    before = {name: functions.get_function_configuration(FunctionName=name)["Layers"] for name in names}
    yield LiveHandlers(deployment.stack.aws, current=place / "current")
    for name, layers in before.items():
        functions.update_function_configuration(FunctionName=name, Layers=[layer["Arn"] for layer in layers])


@pytest.fixture
def session(deployment: Deployment, live: LiveHandlers, tmp_path: Path) -> Session:
    folder = tmp_path / "counting"
    folder.mkdir()
    (folder / "jobs.py").write_text(SOURCE)
    place = deployment.stack.folder / "handlers"
    return Session(folder, live, read=read_handlers, engine=engine, place=place)


def test_a_job_calls_a_handler_of_the_folder_that_is_deployed(client: Client) -> None:
    job = client.submit("handler:greet", tenant="acme", payload={"name": "Ada"})

    assert reaches(client, job.id, "succeeded").result == {"said": "hello Ada", "to": "acme"}


def test_a_payload_of_another_type_is_a_dead_letter_that_names_the_field(client: Client) -> None:
    job = client.submit("handler:greet", tenant="acme", payload={"names": ["Ada"]})

    failed = reaches(client, job.id, "failed")
    assert failed.attempt == 1
    assert "InvalidPayload: name: Field required" in str(failed.error)


def test_a_name_that_is_not_there_is_refused_with_the_one_that_was_meant(client: Client) -> None:
    with pytest.raises(ApiProblem, match=r"did you mean handler:greet\?") as refused:
        client.submit("handler:gret", tenant="acme")

    assert (refused.value.status, refused.value.code) == (422, "unknown_handler")


def test_a_change_of_a_file_runs_within_seconds_and_its_run_is_told(
    client: Client, live: LiveHandlers, session: Session, tmp_path: Path
) -> None:
    file = tmp_path / "counting" / "jobs.py"
    assert session.deploy() == ["count"]
    first = client.submit("handler:count", tenant="acme", payload=7)
    assert reaches(client, first.id, "succeeded").result == {"version": 1}
    told: list[Told] = []
    eventually(
        lambda: told.extend(live.told()) or {each.what for each in told}, lambda seen: "ended" in seen, what="told"
    )
    assert [each.text for each in told if each.what == "said"] == ["counting 7"]
    assert {each.job_id for each in told} == {first.id}

    began_at = time.monotonic()
    file.write_text(SOURCE.replace('"version": 1', '"version": 2').replace('"count"', '"count_on"'))
    assert session.deploy() == ["count_on"]
    second = client.submit("handler:count_on", tenant="acme", payload=8)
    assert reaches(client, second.id, "succeeded").result == {"version": 2}
    assert time.monotonic() - began_at < 30, "seconds, on a machine that does nothing else"
    with pytest.raises(ApiProblem, match="did you mean handler:count_on"):
        client.submit("handler:count", tenant="acme")

    file.write_text("def broken(:")
    with pytest.raises(InvalidHandlers, match=r"jobs\.py:1: invalid syntax"):
        session.deploy()
    third = client.submit("handler:count_on", tenant="acme", payload=9)
    assert reaches(client, third.id, "succeeded").result == {"version": 2}
