"""Tickwheel's client, command line and local cloud."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Former(ModuleType):
    """A module of the client under its former name, which answers until 1.0."""

    def __getattr__(self, name: str) -> Any:
        module = self.__name__.removeprefix("tickwheel.")
        return getattr(import_module(f"tickwheel.client.{module}"), name)


for _name in ("breakers", "dead_letters", "fires", "health", "jobs", "operations", "pulse", "schedules", "tenants"):
    sys.modules[f"tickwheel.{_name}"] = _Former(f"tickwheel.{_name}")
