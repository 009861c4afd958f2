"""The handlers of a user, from the layer that a stage has of them.

Nothing here imports `tickwheel`: the layer has the one module of it that handlers register by, under the name that they know.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from functions.adapters.targets.handlers import Handler
from functions.ports.targets import Invocation
from functions.runtime.handler_files import HandlerFiles
from functions.worker import handlers as own_handlers

REGISTRY = "tickwheel.handlers"
"""What users import, in the layer."""

_DATA = Path("botocore", "data")

Note = Callable[[str, BaseException], None]
"""Is called with a module that could not be imported, and why, while that is handled."""


class NotLoadedError(Exception):
    """The module of a handler could not be imported: its jobs are retried, for the next deployment may load it."""


class RegisteredHandlers(Mapping[str, Handler]):
    """Those of this package, and what the layer has. A module of it that fails to load takes only its own handlers with it.

    around: what stands around each of the layer's.
    """

    def __init__(
        self,
        own: Mapping[str, Handler],
        files: HandlerFiles,
        *,
        note: Note,
        around: Callable[[Handler], Handler] | None = None,
    ) -> None:
        self._own = own
        self._files = files
        self._note = note
        self._around = around
        self._folders: list[Path] = []
        self._users: Mapping[str, Handler] = {}
        self._load()

    def __getitem__(self, name: str) -> Handler:
        return self._own[name] if name in self._own else self._users[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._own, **self._users})

    def __len__(self) -> int:
        return len({**self._own, **self._users})

    def refresh(self) -> None:
        """Load what has changed, where it can: on a local cloud whose user is writing them."""
        if self._files.is_live and self._files.folders() != self._folders:
            self._load()

    def _load(self) -> None:
        before, self._folders = self._folders, self._files.folders()
        # Last: what this package imports itself stays what it is.
        sys.path[:] = [place for place in sys.path if Path(place) not in before] + [str(each) for each in self._folders]
        if not self._folders:
            self._users = {}
            return
        modules = self._files.modules()
        theirs = {name: module for name, module in modules.items() if not module.startswith(own_handlers.__name__)}
        if before:
            _forget({REGISTRY, *(module.partition(".")[0] for module in theirs.values())})
        for folder in self._folders:
            if (folder / _DATA).is_dir():
                # The models of the services that boto3 knows; the layer of the functions has those of a few.
                os.environ.setdefault("AWS_DATA_PATH", str(folder / _DATA))
        found = _loaded(theirs, self._note)
        self._users = found if self._around is None else {name: self._around(each) for name, each in found.items()}


def as_registered(handler: Handler, invocation_type: Any) -> Handler:
    """The handler, which is given the invocation as the type that its module knows."""
    names = [each.name for each in fields(invocation_type)]

    def call(payload: Any, invocation: Invocation) -> Any:
        return handler(payload, invocation_type(**{name: getattr(invocation, name) for name in names}))

    return call


def _loaded(theirs: Mapping[str, str], note: Note) -> dict[str, Handler]:
    broken = _import_all(sorted(set(theirs.values())), note)
    registry = importlib.import_module(REGISTRY)
    made: dict[str, Handler] = {}
    for name, module in theirs.items():
        if module in broken:
            made[name] = _failing(module, broken[module])
        elif name in registry.HANDLERS:
            made[name] = as_registered(registry.HANDLERS[name], registry.Invocation)
    return made


def _import_all(modules: list[str], note: Note) -> Mapping[str, str]:
    """Why modules could not be imported, by their names."""
    broken: dict[str, str] = {}
    for module in modules:
        try:
            importlib.import_module(module)
        except BaseException as error:  # noqa: BLE001  a module that wants to end its process has failed for itself
            broken[module] = f"{type(error).__name__}: {error}"
            note(module, error)
    return broken


def _forget(packages: set[str]) -> None:
    """Import them anew: what is under way goes on with what it has."""
    for name in [name for name in sys.modules if any(name == each or name.startswith(f"{each}.") for each in packages)]:
        del sys.modules[name]
    importlib.invalidate_caches()


def _failing(module: str, why: str) -> Handler:
    def fail(_: Any, __: Invocation) -> Any:
        raise NotLoadedError(f"its module {module} could not be imported: {why}")

    return fail
