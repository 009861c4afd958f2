"""Python targets: every module of this folder may register functions, which jobs call as `handler:NAME`.

    @handler("invoice")
    def send_invoice(payload: Any, invocation: Invocation) -> Any:
        ...

A handler runs in the worker. It raises to fail its attempt, and what it returns, a JSON value, is the job's result.
It may be called again for the same job: `invocation.idempotency_key` is the same then, and `invocation.fence` larger.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from functions.worker.handlers.registry import HANDLERS, handler

__all__ = ["HANDLERS", "handler"]

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
