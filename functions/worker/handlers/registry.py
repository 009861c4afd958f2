"""The names under which jobs call Python functions."""

from __future__ import annotations

from collections.abc import Callable

from functions.adapters.targets.handlers import Handler

HANDLERS: dict[str, Handler] = {}


def handler(name: str) -> Callable[[Handler], Handler]:
    """Register a function as `handler:NAME`. Raises ValueError for a name that is taken."""

    def register(function: Handler) -> Handler:
        if name in HANDLERS:
            raise ValueError(f"there are two handlers called {name!r}")
        HANDLERS[name] = function
        return function

    return register
