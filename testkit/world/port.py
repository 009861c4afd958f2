"""The ports of one process: each call goes through it, and may fail as the adapters report it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from functions.ports.ready_queue import Rejected
from testkit.world.process import Process


@dataclass(frozen=True)
class Port:
    """Passes the calls to a port through its process. Arguments are kept as they are at that moment."""

    process: Process
    name: str
    port: Any
    around: Callable[[Process, str, Callable[[], Any]], Any]

    def __getattr__(self, call: str) -> Any:
        made = getattr(self.port, call)
        name = f"{self.name}.{call}"

        def pass_on(*args: Any, **kwargs: Any) -> Any:
            kept = [dict(value) if isinstance(value, dict) else value for value in args]
            return self.process.through(
                name,
                lambda: self.around(self.process, name, lambda: made(*kept, **kwargs)),
                _failure(name, args),
                about=(*args, *kwargs.values()),
            )

        return pass_on


def _failure(name: str, args: Sequence[Any]) -> Any:
    """As the adapters report that a service gave no answer; None where they raise."""
    if name in ("timers.put", "timers.put_alarms"):
        return list(args[0])
    if name == "ready.send":
        return [Rejected(timer, "no answer", is_permanent=False) for timer in args[0]]
    return None
