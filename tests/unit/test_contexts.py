"""Contexts: where a command goes, and that it never goes anywhere else without a word."""

import json
from pathlib import Path

import pytest
from botocore.credentials import Credentials

from tests.api_server import Answer, ApiServer, job_json
from tests.command_line import run
from tickwheel.client import Client
from tickwheel.client.contexts import Context, add_context, use_context
from tickwheel.errors import NoEndpoint
from tickwheel.local.state import Running

JOB = {"id": "x", "tenant": "acme", "state": "failed", "due_at": "2030-01-31T09:00:00Z"}
PROD = "https://abc.execute-api.eu-west-1.amazonaws.com"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "settings"
    monkeypatch.setenv("TICKWHEEL_CONFIG", str(folder))
    return folder


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> str:
    """The local cloud, as if it ran."""
    address = "http://abc.execute-api.localhost:4566"
    running = Running(pid=1, port=4566, log="x", api_endpoint=address)
    monkeypatch.setattr("tickwheel.client.endpoint.read_running", lambda: running)
    return address


def test_a_context_is_used_by_its_name() -> None:
    with ApiServer(Answer(200, JOB)) as server:
        run("context", "add", "prod", "--endpoint", server.url)
        result = run("get", "x", "--context", "prod")

    assert result.exit_code == 0, result.output
    assert server.requests[0].path == "/v1/jobs/x"


def test_a_context_in_use_is_that_of_commands_which_name_none() -> None:
    with ApiServer(Answer(200, JOB)) as server:
        run("context", "add", "prod", "--endpoint", server.url, "--region", "eu-west-3")
        said = run("context", "use", "prod")
        result = run("get", "x")

    assert said.stdout == "commands use prod\n"
    assert result.exit_code == 0, result.output
    assert "/eu-west-3/execute-api/" in server.requests[0].headers["authorization"]


def test_an_option_goes_before_the_environment_and_that_before_the_context_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ApiServer(Answer(200, JOB)) as used, ApiServer(Answer(200, JOB)) as named, ApiServer(Answer(200, JOB)) as said:
        add_context(Context(name="used", endpoint=used.url))
        add_context(Context(name="named", endpoint=named.url))
        use_context("used")
        run("get", "x")
        monkeypatch.setenv("TICKWHEEL_CONTEXT", "named")
        run("get", "x")
        run("get", "x", server=said)
        monkeypatch.setenv("TICKWHEEL_ENDPOINT", said.url)
        run("get", "x", "--context", "used")
        run("get", "x", "--endpoint", named.url)

    assert [len(each.requests) for each in (used, named, said)] == [2, 2, 1]


def test_a_file_of_a_context_is_its_owners_and_has_no_more_than_was_said(folder: Path) -> None:
    run("context", "add", "prod", "--endpoint", f"{PROD}/", "--profile", "billing")

    file = folder / "contexts" / "prod.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text()) == {"endpoint": PROD, "profile": "billing"}


def test_contexts_are_listed_with_the_local_cloud_and_that_in_use(local: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickwheel.commands.contexts.read_running", lambda: None)
    run("context", "add", "prod", "--endpoint", PROD, "--profile", "billing")
    run("context", "add", "dev", "--endpoint", PROD)
    run("context", "use", "prod")

    people, script = run("context", "list"), run("context", "list", "--json")

    rows = [line.split() for line in people.stdout.splitlines()]
    assert rows[1:] == [["dev", PROD], ["*", "prod", PROD, "billing"], ["local", "does", "not", "run"]]
    assert json.loads(script.stdout)["in_use"] == "prod"


def test_a_context_that_is_removed_is_no_longer_in_use(folder: Path) -> None:
    run("context", "add", "prod", "--endpoint", PROD)
    run("context", "use", "prod")

    said = run("context", "remove", "prod").stdout

    assert said == "removed prod: no context is in use now\n"
    assert json.loads(run("context", "list", "--json").stdout) == {"contexts": [], "in_use": None}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["add", "prod", "--endpoint", "https://other.example.com"], 1, "there is a context prod already"),
        (["add", "local", "--endpoint", PROD], 1, "'local', which is the local cloud"),
        (["add", "../x", "--endpoint", PROD], 1, "'../x' cannot be the name of a context"),
        (["add", "x", "--endpoint", "abc.example.com"], 1, "'abc.example.com' is not an address"),
        (["add", "x", "--endpoint", "https://me:hush@example.com"], 1, "contains no password"),
        (["use", "prdo"], 1, "there is no context 'prdo': there are prod and local"),
        (["remove", "prdo"], 1, "there is no context 'prdo'"),
        (["remove", "../prod"], 1, "is not the name of a context"),
    ],
)
def test_what_cannot_be_a_context_is_refused(arguments: list[str], code: int, said: str) -> None:
    run("context", "add", "prod", "--endpoint", PROD)

    result = run("context", *arguments)

    assert result.exit_code == code
    assert said in result.stderr
    assert "hush" not in result.output
    assert [each["name"] for each in json.loads(run("context", "list", "--json").stdout)["contexts"]] == ["prod"]


def test_the_same_context_may_be_added_again() -> None:
    run("context", "add", "prod", "--endpoint", PROD)

    assert run("context", "add", "prod", "--endpoint", PROD).exit_code == 0


def test_a_file_that_is_no_context_is_named(folder: Path) -> None:
    (folder / "contexts").mkdir(parents=True)
    (folder / "contexts" / "prod.json").write_text("{oops")

    result = run("get", "x", "--context", "prod")

    assert result.exit_code == 1
    assert f"{folder}/contexts/prod.json is not a context" in result.stderr


def test_an_endpoint_and_a_context_are_too_much() -> None:
    result = run("get", "x", "--context", "prod", "--endpoint", PROD)

    assert result.exit_code == 2
    assert "--endpoint cannot be combined with --context" in result.stderr


def test_a_prompt_names_the_context() -> None:
    with ApiServer() as server:
        run("context", "add", "prod", "--endpoint", server.url)
        result = run("pause", "--context", "prod", typed="n\n")

    assert f"Pause all jobs of all tenants? At prod ({server.url})." in result.stderr


@pytest.mark.parametrize(
    ("variable", "value", "is_taken"),
    [
        ("AWS_PROFILE", "prod", False),
        ("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE", False),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/x", False),
        ("AWS_ACCESS_KEY_ID", "test", True),
        ("AWS_PROFILE", "", True),
    ],
)
def test_the_local_cloud_is_not_taken_where_an_account_of_aws_is_named(
    variable: str, value: str, is_taken: bool, local: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv(variable, value)

    if is_taken:
        with Client() as client:
            assert client.endpoint == local
    else:
        with pytest.raises(NoEndpoint, match=rf"{variable} is set.*--context local"):
            Client()
    with Client(context="local") as client:
        assert client.endpoint == local


def test_the_local_cloud_is_a_context_that_is_always_there(local: str) -> None:
    run("context", "use", "local")

    assert f"Pause all jobs of all tenants? At local ({local})." in run("pause", typed="n\n").stderr


def test_a_client_takes_a_context_by_its_name_alone() -> None:
    with ApiServer(Answer(202, job_json())) as server:
        add_context(Context(name="prod", endpoint=server.url, region="eu-west-3"))
        use_context("prod")
        with Client(context="prod", credentials=Credentials("key", "secret")) as client:
            client.submit("handler:echo", tenant="acme")
        with pytest.raises(NoEndpoint, match="AWS_ACCESS_KEY_ID is set"):
            Client()
        with pytest.raises(NoEndpoint, match="pass one of them"):
            Client(server.url, context="prod")

    assert "/eu-west-3/execute-api/" in server.requests[0].headers["authorization"]


def test_the_profile_of_a_context_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "credentials"
    file.write_text("[billing]\naws_access_key_id = AKIABILLING\naws_secret_access_key = x\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    with ApiServer(Answer(200, JOB), Answer(200, JOB)) as server:
        add_context(Context(name="prod", endpoint=server.url, profile="billing"))
        result = run("get", "x", "--context", "prod")
        with Client(context="prod") as client:
            client.get("x")

    assert result.exit_code == 0, result.output
    assert ["Credential=AKIABILLING/" in each.headers["authorization"] for each in server.requests] == [True, True]


def test_at_a_terminal_a_command_says_where_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    with ApiServer(Answer(200, JOB), Answer(200, JOB), Answer(200, JOB)) as server:
        add_context(Context(name="prod", endpoint=server.url))
        piped = run("get", "x", "--context", "prod")
        monkeypatch.setenv("FORCE_COLOR", "1")  # what makes a terminal of a pipe
        people = run("get", "x", "--context", "prod")
        script = run("get", "x", "--context", "prod", "--json")

    assert f"prod ({server.url})" in people.stderr
    assert (piped.stderr, script.stderr) == ("", "")
