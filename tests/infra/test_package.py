import json
import marshal
import shutil
import subprocess
import zipfile
from importlib.util import MAGIC_NUMBER, cache_from_source, source_from_cache
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match

from functions.api.openapi import document
from infra import bundling, package
from infra.bundling import PYTHON_VERSION, CodeBundler, LayerBundler, MissingTool, lambda_python
from infra.package import Package
from infra.stage import Stage


def test_the_zip_holds_the_functions_folder_and_nothing_beside_it(tmp_path: Path) -> None:
    Package(cdk.Stack(cdk.App(), "Stack"), "Package", stage=Stage.named("dev"))  # writes the description
    assert CodeBundler(host=True).try_bundle(str(tmp_path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["functions"]
    functions = tmp_path / "functions"
    assert (functions / "domain" / "wheel.py").is_file()
    assert json.loads((functions / "api" / "openapi.json").read_text()) == json.loads(json.dumps(document()))
    assert not list(functions.rglob("requirements*"))


def test_the_layer_is_rebuilt_for_other_pins_or_another_platform_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = LayerBundler(host=False).fingerprint()
    assert LayerBundler(host=False).fingerprint() == before
    assert LayerBundler(host=True).fingerprint() != before
    other = tmp_path / "requirements.txt"
    other.write_text("boto3==1.0\n")
    monkeypatch.setattr(bundling, "REQUIREMENTS", other)
    assert LayerBundler(host=False).fingerprint() != before


def test_the_layer_keeps_only_the_models_of_the_services_that_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(bundling, "lambda_python", lambda: None)
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")

    def install(command: list[str], *, check: bool, env: dict[str, str]) -> None:
        commands.append(command)
        assert env["UV_DEFAULT_INDEX"] == "https://index.example/simple"
        for model in ("ec2", "iam", *bundling.SERVICES):
            for library in ("botocore", "boto3"):
                (tmp_path / "python" / library / "data" / model).mkdir(parents=True)
        (tmp_path / "python" / "botocore" / "data" / "endpoints.json").touch()
        (tmp_path / "python" / "botocore" / "__pycache__").mkdir()

    monkeypatch.setattr(bundling.subprocess, "run", install)
    assert LayerBundler(host=False).try_bundle(str(tmp_path))
    (command,) = commands
    assert command[command.index("--python-version") + 1] == "3.13"
    assert command[command.index("--python-platform") + 1] == "aarch64-manylinux_2_28"
    models = sorted(entry.name for entry in (tmp_path / "python" / "botocore" / "data").iterdir())
    assert models == sorted(["endpoints.json", *bundling.SERVICES])
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_layer_of_another_file_than_the_pinned_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    wheel = tmp_path / "tampered-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tampered-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tampered\nVersion: 1.0\n")
        archive.writestr("tampered-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tampered-1.0.dist-info/RECORD", "")
    other = tmp_path / "requirements.txt"
    other.write_text(f"tampered @ {wheel.as_uri()} --hash=sha256:{'0' * 64}\n")
    monkeypatch.setattr(bundling, "REQUIREMENTS", other)

    with pytest.raises(subprocess.CalledProcessError):
        LayerBundler(host=True).try_bundle(str(tmp_path / "layer"))

    assert "Hash mismatch" in capfd.readouterr().err


def test_a_layer_of_a_pin_without_a_hash_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "requirements.txt"
    other.write_text("xxhash==4.1.0\n")
    monkeypatch.setattr(bundling, "REQUIREMENTS", other)

    with pytest.raises(subprocess.CalledProcessError):
        LayerBundler(host=True).try_bundle(str(tmp_path / "layer"))

    assert "--require-hashes" in capfd.readouterr().err


def test_the_layer_has_a_model_for_every_service_that_jobs_call() -> None:
    assert set(bundling.SERVICES) >= {"lambda", "sqs", "sns", "events", "stepfunctions"}


def test_without_uv_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _, path=None: None)
    with pytest.raises(MissingTool, match=r"uv is needed to bundle the layer .* run `make setup`"):
        LayerBundler(host=False).try_bundle(str(tmp_path))


CHECKED_NEVER = 0b01
"""The flags of bytecode that is taken without a look at its source: https://peps.python.org/pep-0552/"""


def test_every_module_is_shipped_with_bytecode_that_needs_no_time_of_its_file(tmp_path: Path) -> None:
    assert CodeBundler(host=True).try_bundle(str(tmp_path))

    modules = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*.py"))
    compiled = {source_from_cache(str(path.relative_to(tmp_path))): path for path in tmp_path.rglob("*.pyc")}
    assert sorted(map(Path, compiled)) == modules
    assert len(modules) > 100
    for path in compiled.values():
        magic, flags = path.read_bytes()[:4], path.read_bytes()[4:8]
        assert magic == MAGIC_NUMBER
        assert int.from_bytes(flags, "little") == CHECKED_NEVER


def test_a_traceback_names_files_as_lambda_has_them(tmp_path: Path) -> None:
    CodeBundler(host=True).try_bundle(str(tmp_path))

    code = marshal.loads(Path(cache_from_source(str(tmp_path / "functions/domain/wheel.py"))).read_bytes()[16:])
    assert code.co_filename == "/var/task/functions/domain/wheel.py"


def test_without_a_python_of_lambda_there_is_no_bytecode_and_a_deployment_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundling, "lambda_python", lambda: "python3.13")
    with_bytecode = CodeBundler(host=False).fingerprint()
    monkeypatch.setattr(bundling, "lambda_python", lambda: None)
    monkeypatch.setattr(package, "lambda_python", lambda: None)

    assert CodeBundler(host=False).try_bundle(str(tmp_path))
    assert not list(tmp_path.rglob("*.pyc"))
    assert CodeBundler(host=False).fingerprint() != with_bytecode
    app = cdk.App(context={"aws:cdk:bundling-stacks": []}, analytics_reporting=False)
    stack = cdk.Stack(app, "Stack")
    Package(stack, "Package", stage=Stage.named("dev"))
    assert Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("no bytecode"))


def test_bytecode_for_lambda_is_of_its_own_version(tmp_path: Path) -> None:
    python = lambda_python()
    if python is None:
        pytest.skip(f"there is no Python {PYTHON_VERSION} on this machine")
    assert CodeBundler(host=False).try_bundle(str(tmp_path))

    asked = "import importlib.util, sys; sys.stdout.buffer.write(importlib.util.MAGIC_NUMBER)"
    magic = subprocess.run([python, "-c", asked], capture_output=True, check=True).stdout
    compiled = list(tmp_path.rglob(f"*.cpython-{PYTHON_VERSION.replace('.', '')}.pyc"))
    assert len(compiled) == len(list(tmp_path.rglob("*.py")))
    assert {path.read_bytes()[:4] for path in compiled} == {magic}


def test_a_change_of_any_module_is_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "a.py").write_text("A = 1")
    monkeypatch.setattr(bundling, "FUNCTIONS", tmp_path)
    before = CodeBundler(host=True).fingerprint()

    (tmp_path / "__pycache__" / "a.pyc").touch()
    (tmp_path / "requirements.in").touch()
    assert CodeBundler(host=True).fingerprint() == before
    (tmp_path / "a.py").write_text("A = 2")
    assert CodeBundler(host=True).fingerprint() != before
