"""A user's handlers: what is read of their folder, what is packed, and what a stage knows of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from functions.domain.targets.handler_names import BUILT_IN
from functions.runtime.settings import WorkerSettings
from functions.worker.handlers import HANDLERS
from infra import handler_names
from infra.environment_room import check_room
from infra.event_templates import EventRule
from infra.handler_names import InvalidHandlers, own_handlers, read_handlers
from infra.handlers import HandlersBundler, NamesBundler, names_of
from infra.handlers_environment import TAKEN, check_handlers_environment
from infra.scheduler import Tickwheel
from infra.stage import Stage
from infra.stage_parts import InvalidStage
from scripts.synthesis import Templates, synthesise

BILLING = """
import no_such_library

from tickwheel.handlers import Invocation, handler


@handler("invoice")
def send_invoice(payload: dict, invocation: Invocation) -> None: ...


@handler
async def remind(payload): ...
"""

NESTED = """
from tickwheel import handlers as tw

if True:

    @tw.handler("nested")
    def nested(): ...
"""


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    folder = tmp_path / "jobs"
    for path, source in {
        "billing.py": BILLING,
        "more/__init__.py": NESTED,
        "more/text.txt": "a file that the code reads",
        "test_billing.py": "from tickwheel.handlers import handler\nhandler(1)\n",
        "tests/__init__.py": "",
        "conftest.py": "",
        "__pycache__/billing.pyc": "",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(source)
    return folder


def test_the_names_of_a_folder_are_read_without_running_its_code(jobs: Path) -> None:
    assert read_handlers(jobs).modules == {
        "invoice": "jobs.billing",
        "remind": "jobs.billing",
        "nested": "jobs.more",
    }
    assert not [name for name in sys.modules if name.partition(".")[0] == "jobs"]


def test_what_is_read_of_the_own_folder_is_what_it_registers_and_what_every_stage_has() -> None:
    assert set(own_handlers()) == set(HANDLERS) == BUILT_IN


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("@handler(NAME)\ndef one(): ...", r"a.py:4: write the name of the handler as a text, as @handler\(\"one\"\)"),
        ("@handler('a b')\ndef one(): ...", r"a.py:4: a handler cannot be called 'a b'"),
        ("handler('one')(print)", r"a.py:4: register handlers with @handler above functions at the top"),
        (
            "def make():\n    @handler('x')\n    def one(): ...",
            r"a.py:5: register handlers with @handler above functions",
        ),
        (
            "@handler\ndef one(): ...\n@handler('one')\ndef two(): ...",
            r"a.py:6: jobs.a has a handler called 'one' already",
        ),
        ("@handler\ndef echo(): ...", r"jobs.a has a handler called 'echo', as every stage has: use another name"),
        ("def one(:", r"a.py:4: invalid syntax"),
        (
            "NAME = 1",
            r"jobs has no handlers: write `from tickwheel.handlers import handler`, and @handler above a function",
        ),
    ],
)
def test_a_folder_that_would_not_work_is_refused_with_the_line_and_what_to_do(
    tmp_path: Path, source: str, why: str
) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "a.py").write_text(f"from tickwheel.handlers import handler\n\nNAME = 'x'\n{source}\n")

    with pytest.raises(InvalidHandlers, match=why):
        read_handlers(tmp_path / "jobs")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("my-jobs", "cannot be imported as 'my-jobs': rename the folder"),
        ("json", "is called 'json', as a package that its code needs: rename it"),
        ("tickwheel", "is called 'tickwheel', as a package that its code needs"),
        (
            "functions",
            "is called 'functions', as the folder of Tickwheel's own functions in this checkout: rename it, or",
        ),
    ],
)
def test_a_folder_whose_name_is_taken_is_refused(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / name).mkdir()

    with pytest.raises(InvalidHandlers, match=why):
        read_handlers(tmp_path / name)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidHandlers, match=r"handlers is './jobs', and .*/jobs is no folder"):
        read_handlers("./jobs")


def test_an_installed_engine_takes_a_package_called_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There its own is called `tickwheel_engine.functions`."""
    monkeypatch.setattr(handler_names.functions, "__name__", "tickwheel_engine.functions")
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "a.py").write_text(
        "from tickwheel.handlers import handler\n\n\n@handler\ndef one(): ...\n"
    )

    assert read_handlers(tmp_path / "functions").modules == {"one": "functions.a"}


LOADING = """
import importlib, json, sys
sys.path.append({site!r})
for module in sorted(set(json.load(open({site!r} + "/handlers.json")).values())):
    if not module.startswith("functions.worker"):
        importlib.import_module(module)
import tickwheel.handlers
print(sorted(tickwheel.handlers.HANDLERS), tickwheel.__file__)
"""


def test_the_layer_of_the_worker_has_the_package_its_names_and_the_module_that_it_registers_by(
    jobs: Path, tmp_path: Path
) -> None:
    (jobs / "billing.py").write_text(BILLING.replace("import no_such_library\n", ""))
    out = tmp_path / "out"

    assert HandlersBundler(read_handlers(jobs), host=True).try_bundle(str(out))

    site = out / "python" / "tickwheel_handlers"
    assert [path.name for path in out.iterdir()] == ["python"]
    files = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert files == {
        "handlers.json",
        "jobs/billing.py",
        "jobs/more/__init__.py",
        "jobs/more/text.txt",
        "tickwheel/__init__.py",
        "tickwheel/handlers.py",
    }
    assert json.loads((site / "handlers.json").read_text()).keys() == {"echo", "trial", "invoice", "nested", "remind"}
    assert list(site.rglob("billing.*.pyc")), "a cold start compiles nothing"
    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOADING.format(site=str(site))], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == f"['invoice', 'nested', 'remind'] {site}/tickwheel/__init__.py"


def test_a_change_of_a_handler_or_of_what_it_asks_for_is_another_layer_and_a_test_beside_it_is_not(jobs: Path) -> None:
    def fingerprint() -> str:
        return HandlersBundler(read_handlers(jobs), host=True).fingerprint()

    before = fingerprint()
    (jobs / "test_billing.py").write_text("changed")
    assert fingerprint() == before
    (jobs / "more" / "text.txt").write_text("changed")
    changed = fingerprint()
    (jobs / "requirements.txt").write_text("stripe\n")
    assert len({before, changed, fingerprint()}) == 3


def test_what_handlers_ask_for_is_installed_in_versions_that_go_with_those_of_the_functions(
    jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (jobs / "requirements.txt").write_text("stripe\n")
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("infra.handlers.subprocess.run", run)
    HandlersBundler(read_handlers(jobs), host=False).install(tmp_path / "site")

    (command,) = (each for each in commands if "install" in each)
    assert command[command.index("--python-version") + 1] == "3.13"
    assert command[command.index("--constraint") + 1].endswith("functions/requirements.txt")
    assert command[-2:] == ["-r", str(jobs / "requirements.txt")]


def test_requirements_that_nobody_can_install_are_named(jobs: Path, tmp_path: Path) -> None:
    (jobs / "requirements.txt").write_text("pydantic==1.0\n")

    with pytest.raises(InvalidHandlers, match=r"jobs/requirements.txt cannot be installed:"):
        HandlersBundler(read_handlers(jobs), host=True).install(tmp_path / "site")


@pytest.fixture
def with_handlers(jobs: Path) -> Templates:
    return synthesise(Stage.named("dev"), handlers=jobs, handlers_environment={"SMTP_HOST": "mail.example.com"})


def layers(templates: Templates) -> dict[str, list[str]]:
    """Of each function, by the descriptions of the layers."""
    described = {
        name: layer["Properties"]["Description"]
        for name, layer in templates.of_type("AWS::Lambda::LayerVersion").items()
    }
    return {
        name: sorted((described[layer["Ref"]] for layer in function["Properties"]["Layers"]), reverse=True)
        for name, function in templates.functions().items()
    }


def test_the_worker_gets_the_handlers_the_api_their_names_and_nobody_else_anything(with_handlers: Templates) -> None:
    common = "What the functions import, pinned"
    assert layers(with_handlers) == {
        "api": [common, "The names of handlers"],
        "worker": [common, "The handlers that jobs call"],
        **{key: [common] for key in ("scanner", "sweeper", "operations", "dead_letters")},
    }


def test_no_environment_changes_with_handlers_but_by_what_they_are_given_in_the_worker(
    with_handlers: Templates, dev: Templates
) -> None:
    for function in dev.functions():
        given = {"SMTP_HOST": "mail.example.com"} if function == "worker" else {}
        assert with_handlers.environment(function) == {**dev.environment(function), **given}


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ("SMTP_HOST=x", "give texts by their names"),
        ({"SMTP-HOST": "x"}, "'SMTP-HOST' is no name"),
        ({"STAGE": "x"}, "STAGE is the worker's own: use another name, such as APP_STAGE"),
        ({"AWS_REGION": "x"}, "AWS_REGION is the worker's own"),
        ({"PORT": 25}, "PORT is 25: a variable is a text"),
    ],
)
def test_variables_that_would_be_lost_or_break_the_worker_are_refused(environment: Any, said: str) -> None:
    with pytest.raises(InvalidStage, match=said):
        check_handlers_environment(environment, has_handlers=True)


def test_every_setting_of_the_worker_is_its_own() -> None:
    assert WorkerSettings.model_fields.keys() <= TAKEN


def test_variables_are_for_handlers_and_have_what_room_is_left() -> None:
    with pytest.raises(InvalidStage, match="without handlers, which would read it"):
        check_handlers_environment({"SMTP_HOST": "x"}, has_handlers=False)
    with pytest.raises(InvalidStage, match=r"may have 4104 bytes .* but Lambda takes 4096"):
        check_room(cdk.Stack(), {"PLANS": "x" * 4_000, "SMTP_HOST": "\u00fc" * 45})


def test_a_stage_without_handlers_has_what_it_had(templates_of: Callable[[Stage], Templates]) -> None:
    assert {tuple(found) for found in layers(templates_of(Stage.named("dev"))).values()} == {
        ("What the functions import, pinned",)
    }


def test_a_handler_that_a_fork_has_added_to_the_own_folder_is_known_to_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new.py").write_text(
        'from functions.worker.handlers.registry import handler\n\n\n@handler("new")\ndef new(payload, invocation): ...\n'
    )
    for path in handler_names.OWN_FOLDER.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text())
    monkeypatch.setattr(handler_names, "OWN_FOLDER", tmp_path)

    assert names_of(None)["new"] == "functions.worker.handlers.new"
    templates = synthesise(Stage.named("dev"))
    assert layers(templates)["api"][1:] == ["The names of handlers"]
    assert layers(templates)["worker"][1:] == []


def test_the_names_are_a_small_file(jobs: Path, tmp_path: Path) -> None:
    NamesBundler(names_of(read_handlers(jobs))).try_bundle(str(tmp_path / "out"))

    (file,) = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert file.relative_to(tmp_path / "out") == Path("python/tickwheel_handlers/handlers.json")
    assert json.loads(file.read_text())["invoice"] == "jobs.billing"


@pytest.mark.parametrize(
    ("job", "member"),
    [
        ({"target": "handler:invoce"}, "target"),
        ({"jobs": [{"target": "handler:invoice"}, {"target": "handler:echo", "on_end": "handler:invoce"}]}, "on_end"),
    ],
)
def test_a_rule_whose_job_names_a_handler_that_is_not_there_stops_the_synthesis(
    jobs: Path, job: dict[str, Any], member: str
) -> None:
    rule = EventRule(tenant="acme", pattern={"source": ["shop"]}, job=job)
    stage = replace(Stage.named("local"), event_rules={"billing": rule})

    with pytest.raises(
        InvalidStage, match=rf"event_rules: billing: {member} names no handler .* mean handler:invoice\?"
    ):
        synthesise(stage, handlers=jobs)


def test_a_rule_may_name_a_handler_of_the_users_or_leave_it_to_the_event(jobs: Path) -> None:
    written = {"jobs": [{"target": "handler:invoice"}, {"target": "handler:<kind>"}]}
    rule = EventRule(tenant="acme", pattern={"source": ["shop"]}, paths={"kind": "$.detail.kind"}, job=written)

    assert synthesise(replace(Stage.named("local"), event_rules={"billing": rule}), handlers=jobs)


def test_handlers_are_granted_what_they_need_by_their_role(jobs: Path) -> None:
    app = cdk.App(context={"aws:cdk:bundling-stacks": []}, analytics_reporting=False)
    tickwheel = Tickwheel(app, "dev", stage=Stage.named("dev"), handlers=jobs)

    assert tickwheel.handlers_role is tickwheel.scheduler.worker.function.role
