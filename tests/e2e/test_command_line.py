"""The command `tickwheel`, and curl as `tickwheel local up` prints it, against the deployed stack."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from testkit.deployment import Deployment
from testkit.polling import PATIENCE
from tests.e2e.waiting import reaches
from tickwheel.client import Client
from tickwheel.commands.local import _examples
from tickwheel.errors import ApiProblem
from tickwheel.local.state import Running

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]


@pytest.fixture(scope="module")
def environment(deployment: Deployment) -> Mapping[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "TICKWHEEL_ENDPOINT": deployment.stack.api_endpoint}


@pytest.fixture(scope="module")
def printed(deployment: Deployment) -> str:
    stack = deployment.stack
    return _examples(Running(pid=0, port=stack.port, log=str(stack.log), api_endpoint=stack.api_endpoint))


def run(*command: str, environment: Mapping[str, str], folder: Path) -> Any:
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout) if "--json" in command else done.stdout


def test_a_job_is_submitted_shown_and_cancelled(environment: Mapping[str, str], tmp_path: Path) -> None:
    def tickwheel(*arguments: str) -> Any:
        return run("tickwheel", *arguments, "--json", environment=environment, folder=tmp_path)

    job = tickwheel("submit", "handler:echo", "--tenant", "acme", "--delay", "5m")
    assert (job["state"], job["ring"]) == ("scheduled", "far")
    assert tickwheel("get", job["id"])["state"] == "scheduled"
    assert tickwheel("cancel", job["id"]) == {"id": job["id"], "state": "cancelled"}
    assert tickwheel("get", job["id"])["state"] == "cancelled"


def test_a_file_of_jobs_is_submitted(client: Client, environment: Mapping[str, str], tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    lines = [{"tenant": "acme", "target": "handler:echo", "payload": number} for number in range(3)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    account = run("tickwheel", "submit", "--file", str(file), "--json", environment=environment, folder=tmp_path)

    assert (account["accepted"], account["refused"], account["unanswered"]) == (3, 0, 0)
    for number, job in enumerate(account["jobs"]):
        assert reaches(client, job["id"], "succeeded").result["payload"] == number


def test_a_schedule_is_created_shown_paused_and_deleted(
    client: Client, environment: Mapping[str, str], tmp_path: Path
) -> None:
    def tickwheel(*arguments: str) -> Any:
        # A tenant of its own: the examples of the description are asked for too, and have this id.
        command = ("tickwheel", "schedule", *arguments, "--tenant", "typist", "--json")
        return run(*command, environment=environment, folder=tmp_path)

    created = tickwheel("create", "nightly", "--cron", "0 3 * * *", "--spread", "5m", "--target", "handler:echo")
    assert (created["status"], created["cron"], created["spread"]) == ("active", "0 3 * * *", "PT5M")
    assert tickwheel("show", "nightly") == created
    paused = tickwheel("pause", "nightly", "--note", "the target moves")
    assert (paused["status"], paused["note"]) == ("paused", "the target moves")
    assert tickwheel("delete", "nightly", "--yes")["status"] == "deleted"
    with pytest.raises(ApiProblem, match="404"):
        client.schedules.get("nightly", tenant="typist")


def test_a_file_of_schedules_is_imported_and_importing_it_again_changes_nothing(
    client: Client, environment: Mapping[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "schedules.jsonl"
    job = {"target": "handler:echo"}
    lines = [
        {"tenant": "importer", "id": "nightly", "cron": "0 3 * * *", "timezone": "Europe/Berlin", "job": job},
        {"tenant": "importer", "id": "daily", "every": 86_400, "job": job},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    first, again = (
        run("tickwheel", "import", str(file), "--json", environment=environment, folder=tmp_path) for _ in range(2)
    )

    assert (first["stored"], first["refused"]) == (2, 0)
    assert (first["created"], again["created"], again["unchanged"]) == (2, 0, 2)
    assert [each["version"] for each in again["schedules"]] == [each["version"] for each in first["schedules"]]
    found = list(client.schedules.list(tenant="importer"))
    assert [(each.id, each.status) for each in found] == [("daily", "active"), ("nightly", "active")]
    for each in found:
        client.schedules.delete(each.id, tenant="importer")


def test_the_printed_example_of_the_command_submits_a_job(
    printed: str, environment: Mapping[str, str], tmp_path: Path
) -> None:
    [command] = [line.strip() for line in printed.splitlines() if line.strip().startswith("tickwheel submit")]

    said = run("sh", "-c", command, environment=environment, folder=tmp_path)

    assert "scheduled" in said


def test_the_printed_example_of_curl_submits_a_job(
    printed: str, client: Client, environment: Mapping[str, str], tmp_path: Path
) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("CURL IS MISSING: the printed example was not tried")
    if "--aws-sigv4" not in run(curl, "--help", "all", environment=environment, folder=tmp_path):
        pytest.skip("CURL IS OLDER THAN 7.75 and cannot sign: the printed example was not tried")

    answer = run("sh", "-c", printed[printed.index("curl --aws") :], environment=environment, folder=tmp_path)

    assert client.get(json.loads(answer)["id"]).tenant == "acme"
