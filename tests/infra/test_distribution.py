"""The wheels, installed where nothing else is, beside a user's own folders of the same names."""

import ast
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts.distribution.__main__ import main
from scripts.distribution.engine import ENGINE, PACKAGES, ROOT, version
from scripts.licences import pins

APP = """\
import functions  # of the user's own
from aws_cdk import App
from tickwheel.cdk import Stage, Tickwheel

app = App(outdir="out", context={"aws:cdk:bundling-stacks": []})
Tickwheel(app, "Scheduler", stage=Stage.named("dev"))
app.synth()
print(functions.__file__)
"""

TEST = """\
from datetime import timedelta

def test_it(scheduler):
    scheduler.client.submit("https://shop.example/remind", tenant="acme", delay=timedelta(days=30))
    (call,) = scheduler.advance(days=31)
    assert call.attempt == 1
"""


HANDLERS = """\
from tickwheel.handlers import handler

@handler
def invoice():
    return {"of": __name__}
"""

BUNDLING = f"""\
from pathlib import Path

from {ENGINE}.infra.bundling import CodeBundler
from {ENGINE}.infra.handler_names import read_handlers
from {ENGINE}.infra.handlers import HandlersBundler

Path("task").mkdir()
CodeBundler(host=True).try_bundle("task")
HandlersBundler(read_handlers("./functions"), host=True).try_bundle("layer")
"""

LOADING = f"""\
import sys
from datetime import timedelta

sys.path[0] = "task"  # as in Lambda: not the folder of the user
sys.path.append("layer/python")
from {ENGINE}.functions.adapters.targets.handlers import HandlerCaller
from {ENGINE}.functions.domain.targets.options import USUAL
from {ENGINE}.functions.runtime.handler_files import HandlerFiles
from {ENGINE}.functions.worker.user_handlers import RegisteredHandlers
from {ENGINE}.functions.ports.targets import Invocation

handlers = RegisteredHandlers({{}}, HandlerFiles(), note=print)
call = HandlerCaller(handlers).call
given = Invocation(**{{name: None for name in Invocation.__dataclass_fields__}})
print(list(handlers), call("handler:invoice", None, given, options=USUAL, timeout=timedelta(seconds=30)))
"""


@pytest.fixture(scope="module")
def python(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment with nothing in it but `tickwheel[cdk,testing]` and pytest."""
    client, engine = wheels["tickwheel"], wheels[ENGINE]
    wanted = [f"tickwheel[cdk,testing] @ {client.as_uri()}", engine, "pytest"]
    return an_environment(tmp_path_factory.mktemp("empty"), wanted)


def an_environment(folder: Path, wanted: Sequence[str | Path]) -> Path:
    """The interpreter of one with these packages alone."""
    uv = ROOT / ".tools" / "bin" / "uv"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder / "venv"], check=True)
    found = folder / "venv" / "bin" / "python"
    # Of the versions that are pinned here: what others release meanwhile fails no test.
    pinned = pins(ROOT / "requirements.txt") | pins(ROOT / "scripts" / "uv.txt")
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(f"{name}=={version}\n" for name, version in pinned.items()))
    subprocess.run(
        [uv, "pip", "install", "--quiet", "--python", found, "--constraint", constraints, *wanted], check=True
    )
    return found


def test_a_wheel_has_one_name_at_its_top(wheels: dict[str, Path]) -> None:
    tops = {
        name: {each.partition("/")[0] for each in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in each}
        for name, wheel in wheels.items()
    }

    assert tops == {"tickwheel": {"tickwheel"}, ENGINE: {ENGINE}}


def test_nothing_in_the_engine_imports_a_package_of_the_repository_by_its_own_name(wheels: dict[str, Path]) -> None:
    archive = zipfile.ZipFile(wheels[ENGINE])
    modules = [name for name in archive.namelist() if name.endswith(".py")]
    imported = {
        (name, module.partition(".")[0])
        for name in modules
        for node in ast.walk(ast.parse(archive.read(name)))
        for module in _imported_by(node)
    }

    own = {path.name for path in ROOT.iterdir() if (path / "__init__.py").is_file()} - {"tickwheel"}
    assert own >= set(PACKAGES)
    assert "tests" in own
    assert [found for found in imported if found[1] in own] == []
    assert len(modules) > 300


def _imported_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""] if node.level == 0 else []
    return [each.name for each in node.names] if isinstance(node, ast.Import) else []


def test_the_client_and_the_command_run_where_nothing_else_is_installed(python: Path) -> None:
    told = subprocess.run([python.parent / "tickwheel", "--help"], capture_output=True, text=True, check=True)

    assert "submit" in told.stdout
    subprocess.run([python, "-c", "from tickwheel.client import Client"], check=True)


@pytest.mark.long
def test_the_extra_cdk_brings_the_cost_of_a_stage_and_not_its_picture(python: Path, tmp_path: Path) -> None:
    command = [python.parent / "tickwheel", "cost", "--jobs-per-day", "1000", "--picture", "cost.png"]

    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=_environment())

    assert "Tickwheel prod" in told.stdout, told.stderr
    assert told.returncode == 1
    assert "pip install 'tickwheel[picture]'" in told.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_users_test_has_a_scheduler_in_memory_by_its_fixture(python: Path, tmp_path: Path) -> None:
    (tmp_path / "test_reminders.py").write_text(TEST)

    told = subprocess.run(
        [python, "-m", "pytest", "-q"], cwd=tmp_path, capture_output=True, text=True, check=False, env=_environment()
    )

    assert "1 passed" in told.stdout, told.stdout


@pytest.mark.long
def test_a_users_app_makes_the_stacks_beside_folders_of_its_own_with_the_same_names(
    python: Path, tmp_path: Path
) -> None:
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "app.py").write_text(APP)

    told = subprocess.run(
        [python, "app.py"], cwd=tmp_path, capture_output=True, text=True, check=True, env=_environment()
    )

    assert told.stdout.strip() == str(tmp_path / "functions" / "__init__.py")
    template = next(
        path.read_text() for path in (tmp_path / "out").glob("*.template.json") if "Storage" not in path.name
    )
    assert f'"Handler": "{ENGINE}.functions.worker.handler.handler"' in template


def test_the_zip_of_an_installed_engine_holds_its_functions_below_its_name(python: Path, tmp_path: Path) -> None:
    program = f"from {ENGINE}.infra.bundling import CodeBundler; CodeBundler(host=True).try_bundle({str(tmp_path)!r})"
    subprocess.run([python, "-c", program], check=True, env=_environment())

    assert [path.name for path in tmp_path.iterdir()] == [ENGINE]
    assert (tmp_path / ENGINE / "functions" / "api" / "openapi.json").is_file()
    # As in Lambda, where the zip's folder comes before whatever else has that name.
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from {ENGINE}.functions.domain import faults; print(faults.__file__)"
    told = subprocess.run([python, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.startswith(str(tmp_path))


def test_a_users_handlers_may_be_a_package_called_functions(python: Path, tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "billing.py").write_text(HANDLERS)

    def run(program: str) -> str:
        told = subprocess.run(
            [python, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, env=_environment()
        )
        return told.stdout.strip()

    run(BUNDLING)

    assert run(LOADING) == "['invoice'] Succeeded(result='{\"of\": \"functions.billing\"}')"


def test_both_wheels_have_the_version_that_one_asks_of_the_other(wheels: dict[str, Path]) -> None:
    metadata = zipfile.ZipFile(wheels["tickwheel"]).read(f"tickwheel-{version()}.dist-info/METADATA").decode()

    assert f'Requires-Dist: tickwheel-engine[cdk]=={version()}; extra == "cdk"' in metadata
    assert wheels[ENGINE].name.startswith(f"{ENGINE}-{version()}-")


@pytest.mark.long
def test_the_same_sources_make_the_same_bytes(wheels: dict[str, Path], tmp_path: Path) -> None:
    assert main(tmp_path / "again") == 0

    assert {path.name: path.read_bytes() for path in (tmp_path / "again").glob("*.whl")} == {
        path.name: path.read_bytes() for path in wheels.values()
    }


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "PYTEST_"))}
