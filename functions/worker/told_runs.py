"""Runs as lines for a developer's terminal: what was called, what it printed, what it raised, and how that ended.

For `tickwheel dev` alone, which asks a local cloud for it: such lines hold what handlers print and the texts of their exceptions,
and no other line does.
"""

from __future__ import annotations

import io
import json
import logging
import sys
import time
import traceback
from collections.abc import Awaitable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from inspect import isawaitable
from types import TracebackType
from typing import Any, TextIO

from functions.adapters.targets.handlers import Handler
from functions.domain.targets.options import TargetOptions
from functions.ports.targets import Failed, Invocation, Outcome, Pending, Targets

KEY = "tickwheel_run"
"""The one member of such a line."""

MOST_OF_A_LINE = 2_000
"""Characters that are told of what a handler prints at once."""

_OWN = __name__.removesuffix("worker.told_runs")
_REGISTRY = "tickwheel.handlers"


@dataclass(slots=True)
class _Run:
    """begun: the beginning of a line, which print writes in parts."""

    invocation: Invocation
    begun: str = ""

    def say(self, text: str) -> None:
        """Tell whole lines, and keep the beginning of the next."""
        *whole, self.begun = (self.begun + text).split("\n")
        self.begun = self.begun[:MOST_OF_A_LINE]
        for line in whole:
            _tell("said", self.invocation, text=line[:MOST_OF_A_LINE])

    def end(self) -> None:
        """Tell what is left."""
        if self.begun:
            self.say("\n")


_run: ContextVar[_Run | None] = ContextVar("run", default=None)


class ToldTargets:
    """Tells of each call of a target, whatever its kind."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets

    def call(
        self, target: str, payload: str | None, invocation: Invocation, *, options: TargetOptions, timeout: timedelta
    ) -> Outcome:
        """Call once, and tell how that ended."""
        _tell("began", invocation, target=target)
        began_at = time.monotonic()
        outcome = self._targets.call(target, payload, invocation, options=options, timeout=timeout)
        took_ms = round(1_000 * (time.monotonic() - began_at))
        _tell("ended", invocation, target=target, took_ms=took_ms, **_told_of(outcome))
        return outcome


def tell_output() -> None:
    """From now on, tell what is printed or logged within a run, line by line, as of that run."""
    sys.stdout, sys.stderr = _Lines(sys.stdout), _Lines(sys.stderr)
    logging.getLogger().addHandler(_Records())
    if logging.getLogger().getEffectiveLevel() > logging.INFO:
        logging.getLogger().setLevel(logging.INFO)


def tell_not_loaded(module: str, error: BaseException) -> None:
    """Tell of a module whose import has failed, with its traceback."""
    for line in "".join(traceback.format_exception(type(error), error, _users_part(error))).splitlines():
        _write({"what": "not_loaded", "handlers": module, "text": line[:MOST_OF_A_LINE]})


def _told_of(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Failed(error, error_class, is_permanent):
            return {"outcome": "failed", "error_class": error_class, "error": error, "is_permanent": is_permanent}
        case Pending():
            return {"outcome": "held"}
        case _:
            return {"outcome": "succeeded"}


def telling(handler: Handler) -> Handler:
    """The same handler, which tells of what it raises."""

    def call(payload: Any, invocation: Invocation) -> Any:
        run = _Run(invocation)
        _run.set(run)  # each call has a thread of its own, and so a context
        try:
            value = handler(payload, invocation)
        except BaseException as error:
            _tell_raised(error, run)
            raise
        if isawaitable(value):
            return watched(value, run)
        run.end()
        return value

    async def watched(value: Awaitable[Any], run: _Run) -> Any:
        try:
            answer = await value
        except BaseException as error:
            _tell_raised(error, run)
            raise
        run.end()
        return answer

    return call


def _tell_raised(error: BaseException, run: _Run) -> None:
    """Its traceback from where a user's code begins."""
    run.end()
    run.say("".join(traceback.format_exception(type(error), error, _users_part(error))))


def _users_part(error: BaseException) -> TracebackType | None:
    place = error.__traceback__
    while place is not None and _is_own(place.tb_frame.f_globals.get("__name__", "")):
        place = place.tb_next
    return place


def _is_own(module: str) -> bool:
    return module.startswith((_OWN, "importlib")) or module == _REGISTRY


class _Lines(io.TextIOBase):
    """A stream that tells what a run writes, and passes on everything else."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Whole lines of a run are told."""
        run = _run.get()
        if run is None:
            return self._stream.write(text)
        run.say(text)
        return len(text)

    def flush(self) -> None:
        """Pass it on."""
        self._stream.flush()


class _Records(logging.Handler):
    """Tells what a run logs. What the functions log themselves belongs to no run."""

    def emit(self, record: logging.LogRecord) -> None:
        run = _run.get()
        if run is not None:
            text = f"{record.levelname} {record.name}: {record.getMessage()}\n"
            if record.exc_info:
                text += "".join(traceback.format_exception(*record.exc_info))
            run.end()
            run.say(text)


def _tell(what: str, invocation: Invocation, **members: Any) -> None:
    line = {"what": what, "job_id": invocation.job_id, "tenant": invocation.tenant, "attempt": invocation.attempt}
    _write({**line, **members})


def _write(line: Mapping[str, Any]) -> None:
    stream = sys.__stderr__
    if stream is not None:
        stream.write(json.dumps({KEY: {"at": time.time(), **line}}) + "\n")
        stream.flush()
