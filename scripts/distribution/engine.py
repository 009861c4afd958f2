"""The source of the second wheel, `tickwheel-engine`: what runs in Lambda, the stacks, and what tests a scheduler on virtual time.

`tickwheel` itself is the client and the command: small, and without what a deployment needs. What deploys asks for
`tickwheel[cdk]`, which brings this one, of the same version.
"""

import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from functions.api import openapi
from scripts.distribution.relocation import relocated

ROOT = Path(__file__).resolve().parents[2]
ENGINE = "tickwheel_engine"
PACKAGES = ("functions", "infra", "testkit")
"""Folders of the repository that go into it, each below the one name."""

_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.part", "requirements.in")
_DESCRIPTION = "What Tickwheel deploys: its functions, its stacks for the AWS CDK, and its test kit."
_DATA = ("*.json", "*.jsonl", "*.txt", "*.toml", "py.typed")


def write_source(folder: Path) -> None:
    """Write a project to build the wheel from into an empty folder: the packages, relocated, and their metadata.

    Raises Unmovable.
    """
    openapi.write(ROOT / "functions")
    package = folder / ENGINE
    for name in PACKAGES:
        shutil.copytree(ROOT / name, package / name, ignore=_LEFT_OUT)
    relocate(package)
    (package / "__init__.py").write_text(f'"""{_DESCRIPTION}"""\n')
    (package / "py.typed").touch()
    for name in ("LICENSE", "README.md"):
        shutil.copy(ROOT / name, folder)
    (folder / "pyproject.toml").write_text("\n".join(_project()))


def relocate(folder: Path) -> None:
    """Let the modules below a folder import the packages by where they are installed. Raises Unmovable."""
    for path in folder.rglob("*.py"):
        path.write_text(relocated(path.read_text(), packages=PACKAGES, under=ENGINE))


def version() -> str:
    """That of both wheels."""
    return _pyproject()["project"]["version"]


def _project() -> Iterator[str]:
    project, tool = (_pyproject()[part] for part in ("project", "tool"))
    requirements = tool["tickwheel"]["engine"]
    yield f"""
[project]
name = "tickwheel-engine"
version = "{project["version"]}"
description = "{_DESCRIPTION}"
readme = "README.md"
license = "{project["license"]}"
license-files = ["LICENSE"]
requires-python = "{project["requires-python"]}"
dependencies = {_listed(requirements["dependencies"])}

[project.optional-dependencies]"""
    for name, needed in requirements["optional-dependencies"].items():
        yield f"{name} = {_listed(needed)}"
    yield f"""
[build-system]
requires = ["setuptools>=80"]
build-backend = "setuptools.build_meta"

[tool.setuptools.packages.find]
include = ["{ENGINE}*"]

[tool.setuptools.package-data]
"*" = {_listed(_DATA)}
"""


def _listed(items: tuple[str, ...] | list[str]) -> str:
    return "[" + ", ".join(f'"{item}"' for item in items) + "]"


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())
