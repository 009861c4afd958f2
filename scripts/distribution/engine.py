"""The source of the second wheel, `tickwheel-engine`: what runs in Lambda, the stacks, and what tests, simulates and verifies a scheduler.

`tickwheel` itself is the client and the command: small, and without what a deployment needs. What deploys asks for
`tickwheel[cdk]` or `tickwheel[local]`, which bring this one, of the same version.
"""

import json
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from functions.api import openapi
from scripts import install_tools
from scripts.distribution.relocation import relocated

ROOT = Path(__file__).resolve().parents[2]
ENGINE = "tickwheel_engine"
PACKAGES = ("functions", "infra", "testkit", "verification", "simulation", "doctor", "smoke", "bench")
"""Packages of the repository that go into it, each below the one name."""

ONLY: Mapping[str, tuple[str, ...]] = {
    "bench": (
        "__init__.py",
        "audit.py",
        "budgets.py",
        "cost.py",
        "cost_eventbridge.py",
        "cost_fill.py",
        "cost_inputs.py",
        "cost_others.py",
        "cost_report.py",
        "cost_terms.py",
        "cost_traces.py",
        "deployed.*",
        "free_tiers.*",
        "prices.*",
        "results.py",
        "results/logs.json",
        "results/metrics.json",
        "results/promotion.json",
        "results/requests.json",
        "results/units.json",
    )
}
"""Of these packages the files of these patterns: what `tickwheel cost` computes with. Benchmarks measure a checkout."""

APP = ("app.py", "cdk.json")
"""The application of the CDK, which a local cloud deploys."""

EXAMPLES = ("kubernetes-periodics.jsonl",)
"""What the demo imports."""

CDK_CLI = "aws-cdk"
"""A package of npm."""

_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.part", "requirements.in")
_DESCRIPTION = (
    "What Tickwheel deploys: its functions, its stacks for the AWS CDK, and what tests, simulates and verifies it."
)
_DATA = ("*.json", "*.jsonl", "*.txt", "*.toml", "py.typed", "app.py")


def write_source(folder: Path) -> None:
    """Write a project to build the wheel from into an empty folder: the packages, relocated, and their metadata.

    Raises Unmovable.
    """
    openapi.write(ROOT / "functions")
    package = folder / ENGINE
    for name in PACKAGES:
        if name in ONLY:
            _copy(ROOT / name, package / name, patterns=ONLY[name])
        else:
            shutil.copytree(ROOT / name, package / name, ignore=_LEFT_OUT)
    _copy(ROOT, package / "app", patterns=APP)
    _write_npm_locks(package / "npm")
    _copy(ROOT / "examples", package / "examples", patterns=EXAMPLES)
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


def _copy(source: Path, target: Path, *, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        found = sorted(source.glob(pattern))
        if not found:
            raise FileNotFoundError(f"{source / pattern}: name another file of it in {Path(__file__).name}")
        for file in found:
            copied = target / file.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copied)


def _write_npm_locks(folder: Path) -> None:
    """What a checkout installs from npm as it is pinned there, a lock file for each, of packages that need no others."""
    pins = ROOT / "scripts" / "npm"
    locked = json.loads((pins / "package-lock.json").read_text())["packages"][f"node_modules/{CDK_CLI}"]
    if needs := set(locked) & {"dependencies", "optionalDependencies", "peerDependencies"}:
        raise ValueError(f"{CDK_CLI} has {', '.join(needs)} now: put what they name into the lock file of the wheel")
    _write_npm_lock(folder / "cdk", CDK_CLI, locked)
    name, _, pinned = install_tools.DYNAMODB_LOCAL.rpartition("@")
    integrity = f"sha512-{install_tools.DYNAMODB_LOCAL_SHA512}"
    _write_npm_lock(folder / "dynamodb_local", name, {"version": pinned, "integrity": integrity})


def _write_npm_lock(folder: Path, name: str, locked: Mapping[str, Any]) -> None:
    top = {"name": f"tickwheel-{folder.name}", "version": version(), "dependencies": {name: locked["version"]}}
    packages = {"": top, f"node_modules/{name}": locked}
    lock = {"name": top["name"], "version": top["version"], "lockfileVersion": 3, "packages": packages}
    folder.mkdir(parents=True)
    for file, content in (("package.json", {**top, "private": True}), ("package-lock.json", lock)):
        (folder / file).write_text(json.dumps(content, indent=2) + "\n")


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
