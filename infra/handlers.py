"""A user's handlers in the package: a layer with their code for the worker, and one with their names for the API."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import aws_cdk as cdk
import jsii

from functions.domain.targets.handler_names import FILE, FOLDER
from infra.bundling import REQUIREMENTS, compile_folder, installing, lambda_python, recipe
from infra.handler_names import InvalidHandlers, UserHandlers, own_handlers
from infra.package_index import environment_for_uv

USER_REQUIREMENTS = "requirements.txt"
"""In a folder of handlers: what is installed beside them."""

SITE = f"python/{FOLDER}"
"""In a layer: where the functions look."""

_TICKWHEEL = "tickwheel"
_REGISTRY = "handlers.py"


def names_of(handlers: UserHandlers | None) -> dict[str, str]:
    """All that a stage has, each with its module."""
    return {**own_handlers(), **(handlers.modules if handlers is not None else {})}


@jsii.implements(cdk.ILocalBundling)
class NamesBundler:
    """Writes the names of handlers into a layer."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def fingerprint(self) -> str:
        """Name the content without building it."""
        return hashlib.sha256(_written(self._names).encode()).hexdigest()

    def try_bundle(self, output_dir: str, _options: object = None) -> bool:
        """Fill `output_dir`."""
        site = Path(output_dir, SITE)
        site.mkdir(parents=True)
        (site / FILE).write_text(_written(self._names))
        return True


@jsii.implements(cdk.ILocalBundling)
class HandlersBundler:
    """Copies a user's handlers into a layer, with the module that they register by, and installs what they ask for.

    The layer has them in a folder of its own, which the worker looks into last: nothing in it takes the place of what the
    functions import.
    """

    def __init__(self, handlers: UserHandlers, *, host: bool) -> None:
        """Bundle for this interpreter if `host` is true, for Lambda otherwise."""
        self._handlers = handlers
        self._host = host
        self._python = sys.executable if host else lambda_python()

    def fingerprint(self) -> str:
        """Name the content without building it."""
        digest = recipe(_written(names_of(self._handlers)), python=self._python)
        for path in (*self._handlers.sources(), _registry(), REQUIREMENTS, Path(__file__)):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
        for path in self._handlers.sources():
            digest.update(str(path.relative_to(self._handlers.folder)).encode())
        return digest.hexdigest()

    def try_bundle(self, output_dir: str, _options: object = None) -> bool:
        """Fill `output_dir`. Raises InvalidHandlers where what they ask for cannot be installed."""
        site = Path(output_dir, SITE)
        site.mkdir(parents=True)
        self.install(site)
        write_code(self._handlers, site)
        compile_folder(site, python=self._python, seen_at=f"/opt/{SITE}")
        return True

    def install(self, site: Path) -> None:
        """What the handlers ask for, in versions that go with those of the functions."""
        wanted = self._handlers.folder / USER_REQUIREMENTS
        if not wanted.is_file():
            return
        command = [*installing(host=self._host), "--constraint", str(REQUIREMENTS), "--target", str(site)]
        command += ["-r", str(wanted)]
        environment = environment_for_uv(os.environ)
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
        if done.returncode != 0:
            raise InvalidHandlers(f"{wanted} cannot be installed:\n{done.stderr.strip()}")
        shutil.rmtree(site / "bin", ignore_errors=True)
        (site / ".lock").unlink(missing_ok=True)


def write_code(handlers: UserHandlers, site: Path, *, libraries: Path | None = None) -> None:
    """Write the modules of handlers, the module that they register by, and their names. libraries: where those are, if not there too."""
    for path in handlers.sources():
        if path.name == USER_REQUIREMENTS:
            continue
        copy = site / handlers.package / path.relative_to(handlers.folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    if (
        not (libraries or site).joinpath(_TICKWHEEL, _REGISTRY).exists()
    ):  # whose handlers submit jobs asks for the whole of it
        ours = site / _TICKWHEEL
        ours.mkdir(exist_ok=True)
        (ours / "__init__.py").touch()
        shutil.copyfile(_registry(), ours / _REGISTRY)
    (site / FILE).write_text(_written(names_of(handlers)))


def _registry() -> Path:
    """The module that handlers register by, which is found without an import of its package."""
    spec = find_spec(_TICKWHEEL)
    if spec is None or not spec.submodule_search_locations:
        raise InvalidHandlers("tickwheel is not installed beside what deploys: install tickwheel with its extra `cdk`")
    return Path(next(iter(spec.submodule_search_locations))) / _REGISTRY


def _written(names: dict[str, str]) -> str:
    return json.dumps(names, sort_keys=True)
