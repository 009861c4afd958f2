"""The local cloud as a process: alone on its port, remembered, and gone with everything when it should be."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from tickwheel.cli import app
from tickwheel.client.endpoint import find_endpoint
from tickwheel.local import processes
from tickwheel.local.checkout import Checkout
from tickwheel.local.cloud import LocalCloud, answers, forget_old_clouds, stop_group
from tickwheel.local.processes import REMOVED, command_of, end_group, group_exists, remove
from tickwheel.local.settings import AwsSettings
from tickwheel.local.state import Running, read_running, write_running

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A checkout with the real tools and a `.local` of its own."""
    for name in (".venv", ".tools"):
        (tmp_path / name).symlink_to(ROOT / name)
    return Checkout(tmp_path)


def client(service: str, aws: AwsSettings, **changes: str) -> Any:
    return boto3.client(service, **{**aws.as_kwargs(), **changes})  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_two_clouds_run_side_by_side_and_leave_only_their_logs(checkout: Checkout) -> None:
    with LocalCloud(checkout) as first, LocalCloud(checkout) as second:
        client("sqs", first.aws).create_queue(QueueName="only-here")
        assert not client("sqs", second.aws).list_queues().get("QueueUrls")
        pids = first.pid, second.pid

    assert first.port != second.port
    assert not any(group_exists(pid) for pid in pids)
    left = [file.name for file in checkout.folder_of(first.port).iterdir()]
    assert [name for name in left if not name.startswith(REMOVED)] == ["cloud.log"]
    assert "Ready" in first.log.read_text()


def test_the_cloud_evaluates_policies_and_signatures_and_takes_requests_for_tls(checkout: Checkout) -> None:
    with LocalCloud(checkout) as cloud:
        iam, sqs = client("iam", cloud.aws), client("sqs", cloud.aws)
        key = iam.create_access_key(UserName=iam.create_user(UserName="u")["User"]["UserName"])["AccessKey"]
        queue = sqs.create_queue(QueueName="q")["QueueUrl"]
        user = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
        with pytest.raises(ClientError, match="AccessDenied"):
            client("sqs", cloud.aws, **user).send_message(QueueUrl=queue, MessageBody="x")
        statement = '{"Effect": "Allow", "Action": "*", "Resource": "*"}'
        tls = '{"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}'
        policy = f'{{"Version": "2012-10-17", "Statement": [{statement}, {tls}]}}'
        iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=policy)
        client("sqs", cloud.aws, **user).send_message(QueueUrl=queue, MessageBody="x")
        only_single = (
            '{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}}'
        )
        iam.put_user_policy(UserName="u", PolicyName="p", PolicyDocument=only_single)
        client("sqs", cloud.aws, **user).send_message_batch(QueueUrl=queue, Entries=[{"Id": "1", "MessageBody": "x"}])
        forger = client("sqs", cloud.aws, **(user | {"aws_secret_access_key": "forged"}))
        with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
            forger.send_message(QueueUrl=queue, MessageBody="x")


def test_the_cloud_ends_with_a_process_that_was_killed(checkout: Checkout) -> None:
    script = (
        "import sys, time, pathlib\n"
        "from tickwheel.local.checkout import Checkout\n"
        "from tickwheel.local.cloud import LocalCloud\n"
        "cloud = LocalCloud(Checkout(pathlib.Path(sys.argv[1])))\n"
        "cloud.start()\n"
        "print(cloud.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script, str(checkout.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)

    until = time.monotonic() + 30
    while "tickwheel.local.gateway" in command_of(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert "tickwheel.local.gateway" not in command_of(pid)


def test_a_detached_cloud_is_remembered_until_it_is_stopped(checkout: Checkout) -> None:
    cloud = LocalCloud(checkout, detached=True)
    cloud.start()
    running = Running(pid=cloud.pid, port=cloud.port, log=str(cloud.log))
    cloud.let_go()
    try:
        write_running(checkout, running)
        assert read_running(checkout) == running
    finally:
        stop_group(checkout, pid=running.pid, port=running.port)

    assert read_running(checkout) is None
    assert not checkout.state_file.exists()
    assert not answers(running.port)


def test_the_data_of_a_cloud_that_was_killed_goes_with_the_next_start_and_ten_logs_stay(checkout: Checkout) -> None:
    for port in range(12):
        data = checkout.folder_of(port) / "data"
        data.mkdir(parents=True)
        (data / "pid").write_text(str(os.getpid()))

    forget_old_clouds(checkout)

    assert len(list(checkout.root.glob(".local/clouds/*"))) == 10
    assert not list(checkout.root.glob(".local/clouds/*/data"))


def test_a_process_id_that_now_belongs_to_another_program_is_not_believed(checkout: Checkout) -> None:
    write_running(checkout, Running(pid=os.getpid(), port=1, log="x", api_endpoint="http://a.execute-api.localhost:1"))

    assert read_running(checkout) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"surprise": 1}'])
def test_a_state_file_that_makes_no_sense_is_no_running_cloud(checkout: Checkout, content: str) -> None:
    checkout.state_file.parent.mkdir()
    checkout.state_file.write_text(content)

    assert read_running(checkout) is None


def test_the_client_finds_the_running_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(pid=1, port=1, log="x", api_endpoint="http://a.execute-api.localhost:1")
    monkeypatch.setattr("tickwheel.client.endpoint.read_running", lambda: running)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")

    assert find_endpoint(None).is_local_cloud


def test_a_group_that_ignores_a_polite_request_is_killed() -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        end_group(process.pid, grace_seconds=0.2)
        assert not group_exists(process.pid)


def test_nobody_waits_for_a_removal_that_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, pid = tmp_path / "data", tmp_path / "pid"
    (data / "layer").mkdir(parents=True)
    forever = f"import os, pathlib, time; pathlib.Path({str(pid)!r}).write_text(str(os.getpid())); time.sleep(900)"
    monkeypatch.setattr(processes, "_REMOVE", (sys.executable, "-c", forever))

    remove(data, wait_seconds=0.1)

    assert not data.exists()
    assert [folder.name for folder in tmp_path.glob(f"{REMOVED}*/*")] == ["layer"]
    while not pid.exists() or not pid.read_text():
        time.sleep(0.05)
    os.kill(int(pid.read_text()), signal.SIGKILL)  # it goes on by itself


def test_a_removal_that_was_killed_is_made_by_the_next_start(checkout: Checkout) -> None:
    left = checkout.folder_of(1) / f"{REMOVED}1"
    left.mkdir(parents=True)
    (left / "file").touch()

    forget_old_clouds(checkout)

    until = time.monotonic() + 60
    while left.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not left.exists()


def test_what_is_not_there_need_not_be_removed(tmp_path: Path) -> None:
    remove(tmp_path / "gone", wait_seconds=0)

    assert list(tmp_path.iterdir()) == []


def test_status_and_down_say_that_nothing_runs(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("commands.local", "local.stack"):
        monkeypatch.setattr(f"tickwheel.{module}.find_home", lambda: checkout)

    status = CliRunner().invoke(app, ["local", "status"])
    down = CliRunner().invoke(app, ["local", "down"])

    assert (status.exit_code, down.exit_code) == (1, 0)
    assert "tickwheel local up" in status.output
    assert "was not running" in down.output
