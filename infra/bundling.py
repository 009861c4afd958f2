"""What goes into the zips: the functions, the layer of what they import, and the bytecode of both.

Without Docker: wheels need no compiler, only the right name.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import aws_cdk as cdk
import jsii

import functions
from functions.domain.targets import kinds
from functions.domain.targets.kinds import client_of
from infra.package_index import environment_for_uv

FUNCTIONS = Path(next(iter(functions.__path__))).resolve()
REQUIREMENTS = FUNCTIONS / "requirements.txt"
TOOLS = FUNCTIONS.parent / ".tools"
"""Where a checkout keeps uv, and the Python of Lambda that `make deploy` fetches if the machine has none."""

PYTHON_VERSION = "3.13"
PLATFORM = "aarch64-manylinux_2_28"

EXCLUDED = ("__pycache__", "requirements.*", "*.part")
"""What stands in `functions/` and runs nowhere."""

SERVICES = {"dynamodb", "firehose", "lambda", "s3", "secretsmanager", "sqs", "sts", *map(client_of, kinds.SERVICES)}
"""Tickwheel's own and those of targets. Their botocore models stay in the layer; the other four hundred are nine tenths of its size."""

SETUP_HINT = "run `make setup` in a checkout, or `pip install uv`"


class MissingTool(RuntimeError):
    """A tool that bundling needs is not there; the message says how to get it."""


@jsii.implements(cdk.ILocalBundling)
class LayerBundler:
    """Installs the pinned requirements into a layer, and compiles them."""

    def __init__(self, *, host: bool) -> None:
        """Bundle for this interpreter if `host` is true, for Lambda otherwise."""
        self._host = host
        self._label = f"{sys.version_info[:2]} {platform.platform()}" if host else f"{PYTHON_VERSION} {PLATFORM}"
        self._python = sys.executable if host else lambda_python()

    def fingerprint(self) -> str:
        """Name the layer's content without building it: the pins, the platform and this recipe."""
        digest = recipe(self._label, python=self._python)
        digest.update(REQUIREMENTS.read_bytes())
        return digest.hexdigest()

    def try_bundle(self, output_dir: str, _options: object = None) -> bool:
        """Fill `output_dir`; raises instead of returning False, because there is no second way."""
        site = Path(output_dir) / "python"
        command = [*installing(host=self._host), "--require-hashes", "--target", str(site), "-r", str(REQUIREMENTS)]
        subprocess.run(command, check=True, env=environment_for_uv(os.environ))  # noqa: S603
        _prune(site)
        compile_folder(site, python=self._python, seen_at="/opt/python")
        return True


@jsii.implements(cdk.ILocalBundling)
class CodeBundler:
    """Copies the functions into a zip, and compiles them."""

    def __init__(self, *, host: bool) -> None:
        """Compile for this interpreter if `host` is true, for Lambda otherwise."""
        self._python = sys.executable if host else lambda_python()

    def fingerprint(self) -> str:
        """Name the content without building it."""
        digest = recipe(functions.__name__, python=self._python)
        for path in _sources():
            digest.update(str(path.relative_to(FUNCTIONS)).encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def try_bundle(self, output_dir: str, _options: object = None) -> bool:
        """Fill `output_dir`."""
        # In folders of their own, so that the package's name is a path in the zip.
        *above, last = functions.__name__.split(".")
        folder = Path(output_dir)
        for name in above:
            folder /= name
            folder.mkdir()
            (folder / "__init__.py").touch()
        shutil.copytree(FUNCTIONS, folder / last, ignore=shutil.ignore_patterns(*EXCLUDED))
        top = [*above, last][0]
        compile_folder(Path(output_dir, top), python=self._python, seen_at=f"/var/task/{top}")
        return True


@cache
def lambda_python() -> str | None:
    """A Python of Lambda's version on this machine, or None. Only that version's bytecode is read there."""
    try:
        command = [_uv(), "python", "find", "--no-config", "--no-project", PYTHON_VERSION]
    except MissingTool:  # a synthesis that bundles nothing needs none
        return None
    environment = {**os.environ, **({"UV_PYTHON_INSTALL_DIR": str(TOOLS / "pythons")} if TOOLS.is_dir() else {})}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    return found.stdout.strip() or None if found.returncode == 0 else None


def installing(*, host: bool) -> list[str]:
    """The command that installs wheels for this interpreter if `host` is true, for Lambda otherwise; what and where to is added.

    Raises MissingTool.
    """
    command = [_uv(), "pip", "install", "--quiet", "--no-config", "--only-binary", ":all:", "--python", sys.executable]
    return command if host else [*command, "--python-version", PYTHON_VERSION, "--python-platform", PLATFORM]


def recipe(label: str, *, python: str | None) -> hashlib._Hash:
    """The beginning of a fingerprint: what changes everything that is bundled."""
    digest = hashlib.sha256(label.encode())
    digest.update(b"bytecode" if python else b"sources")
    digest.update(Path(__file__).read_bytes())
    return digest


def _sources() -> Iterator[Path]:
    ignored = shutil.ignore_patterns(*EXCLUDED)
    for folder, folders, files in os.walk(FUNCTIONS):
        skipped = ignored(folder, [*folders, *files])
        folders[:] = sorted(set(folders) - skipped)
        yield from (Path(folder) / file for file in sorted(set(files) - skipped))


def _uv() -> str:
    # Beside this interpreter where `tickwheel[cdk]` brought it, which need not be on PATH.
    beside = Path(sysconfig.get_path("scripts"))
    for folder in (str(TOOLS / "bin"), str(beside), None):
        if (found := shutil.which("uv", path=folder)) is not None:
            return found
    raise MissingTool(
        f"uv is needed to bundle the layer and is neither in {TOOLS}, nor in {beside}, nor on PATH: {SETUP_HINT}"
    )


def _prune(site: Path) -> None:
    for models in (site / "botocore" / "data", site / "boto3" / "data"):
        for folder in models.iterdir():
            if folder.is_dir() and folder.name not in SERVICES:
                shutil.rmtree(folder)
    for folder in (*site.rglob("__pycache__"), site / "bin", site / "boto3" / "examples"):
        shutil.rmtree(folder, ignore_errors=True)
    (site / ".lock").unlink(missing_ok=True)


def compile_folder(folder: Path, *, python: str | None, seen_at: str) -> None:
    """Write the bytecode of a folder. seen_at: where Lambda has it, for tracebacks.

    Lambda's folders are read-only: what is not compiled here, each new environment compiles again. Its zips keep no exact
    times of files, so the bytecode is not compared with them.
    """
    if python is None:
        return
    paths = ["-s", str(folder), "-p", seen_at, str(folder)]
    command = [python, "-I", "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", *paths]
    subprocess.run(command, check=True)  # noqa: S603
