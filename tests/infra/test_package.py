import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import aws_cdk as cdk
import pytest

from functions.api.openapi import document
from infra import package
from infra.package import LayerBundler, MissingTool, Package
from infra.stage import Stage


def test_the_zip_holds_the_functions_folder_and_nothing_beside_it(tmp_path: Path) -> None:
    app = cdk.App(context={"aws:cdk:bundling-stacks": []}, analytics_reporting=False, outdir=str(tmp_path))
    stack = cdk.Stack(app, "Stack")
    Package(stack, "Package", stage=Stage.named("dev")).code.bind(stack)
    app.synth()
    (asset,) = [folder for folder in tmp_path.glob("asset.*") if (folder / "functions").is_dir()]
    assert [entry.name for entry in asset.iterdir()] == ["functions"]
    assert (asset / "functions" / "domain" / "wheel.py").is_file()
    assert json.loads((asset / "functions" / "api" / "openapi.json").read_text()) == json.loads(json.dumps(document()))
    assert not list(asset.rglob("requirements*"))
    assert not list(asset.rglob("__pycache__"))


def test_the_layer_is_rebuilt_for_other_pins_or_another_platform_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = LayerBundler(host=False).fingerprint()
    assert LayerBundler(host=False).fingerprint() == before
    assert LayerBundler(host=True).fingerprint() != before
    other = tmp_path / "requirements.txt"
    other.write_text("boto3==1.0\n")
    monkeypatch.setattr(package, "REQUIREMENTS", other)
    assert LayerBundler(host=False).fingerprint() != before


def test_the_layer_keeps_only_the_models_of_the_services_that_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def install(command: list[str], *, check: bool) -> None:
        commands.append(command)
        for model in ("ec2", "iam", *package.SERVICES):
            for library in ("botocore", "boto3"):
                (tmp_path / "python" / library / "data" / model).mkdir(parents=True)
        (tmp_path / "python" / "botocore" / "data" / "endpoints.json").touch()
        (tmp_path / "python" / "botocore" / "__pycache__").mkdir()

    monkeypatch.setattr(package.subprocess, "run", install)
    assert LayerBundler(host=False).try_bundle(str(tmp_path))
    (command,) = commands
    assert command[command.index("--python-version") + 1] == "3.13"
    assert command[command.index("--python-platform") + 1] == "aarch64-manylinux_2_28"
    models = sorted(entry.name for entry in (tmp_path / "python" / "botocore" / "data").iterdir())
    assert models == sorted(["endpoints.json", *package.SERVICES])
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
    monkeypatch.setattr(package, "REQUIREMENTS", other)

    with pytest.raises(subprocess.CalledProcessError):
        LayerBundler(host=True).try_bundle(str(tmp_path / "layer"))

    assert "Hash mismatch" in capfd.readouterr().err


def test_a_layer_of_a_pin_without_a_hash_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "requirements.txt"
    other.write_text("xxhash==4.1.0\n")
    monkeypatch.setattr(package, "REQUIREMENTS", other)

    with pytest.raises(subprocess.CalledProcessError):
        LayerBundler(host=True).try_bundle(str(tmp_path / "layer"))

    assert "--require-hashes" in capfd.readouterr().err


def test_the_layer_has_a_model_for_every_service_that_jobs_call() -> None:
    assert set(package.SERVICES) >= {"lambda", "sqs", "sns", "events", "stepfunctions"}


def test_without_uv_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "ROOT", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(MissingTool, match=r"uv is needed to bundle the layer .* run `make setup`"):
        LayerBundler(host=False).try_bundle(str(tmp_path))
