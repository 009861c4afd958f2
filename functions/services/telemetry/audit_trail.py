"""Collects the lines of an invocation for the audit trail, and sends them in one request at its end.

What is not taken goes to the log, whole, so that it can be loaded later: a job never waits for its line.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain

from functions.domain.audit import LINE_LIMIT, AuditLine, Ending, Record, encode_action, encode_ending, packed
from functions.domain.batches import batches
from functions.domain.faults import fault_of
from functions.ports.clock import Clock
from functions.ports.recorder import AuditStream, Journal, Untaken

SLOW = timedelta(seconds=1)
"""A stream that fails only after this holds jobs up."""

REST = timedelta(seconds=30)
"""How long such a stream is left alone: its lines go to the log at once."""


@dataclass(slots=True, kw_only=True)
class Trail:
    """The lines of a process, for many threads. identity: a fresh random name, for the line of an action."""

    clock: Clock
    stream: AuditStream
    journal: Journal
    identity: Callable[[], str]
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _lines: list[str] = field(default_factory=list[str], init=False)
    _rests_until: float = field(default=0.0, init=False)

    def note(self, line: AuditLine) -> None:
        """An action is stamped with the time of this."""
        if isinstance(line, Ending):
            encoded = encode_ending(line)
        else:
            encoded = encode_action(line, line_id=self.identity(), happened_at=self.clock.now())
        with self._lock:
            self._lines.append(encoded)

    def flush(self) -> None:
        """One request where anything was noted, none otherwise. Never raises."""
        with self._lock:
            lines, self._lines = self._lines, []
        if not lines:
            return
        records = list(packed(lines))
        try:
            untaken = self._put(records)
        except BaseException:  # the time of the invocation is up, wherever this is
            self._lose(Untaken(records, "it took too long"))
            raise
        self._lose(untaken)

    def _lose(self, untaken: Untaken) -> None:
        for part in _parts_of(untaken.records):
            # As values and not as texts: a log event holds twice as many of them.
            lost = [json.loads(line) for line in part]
            self.journal.event("audit_lines_lost", reason=untaken.reason, lines=lost)
            self.journal.count("audit_lines_lost", len(part))

    def _put(self, records: Sequence[Record]) -> Untaken:
        began_at = self.clock.monotonic()
        if began_at < self._rests_until:
            return Untaken(records, "the stream was slow to fail, and is left alone")
        try:
            untaken = self.stream.put(records)
        except Exception as error:  # noqa: BLE001  the lines are in the log then, and the jobs continue
            untaken = Untaken(records, fault_of(error))
        ended_at = self.clock.monotonic()
        if untaken.records and ended_at - began_at >= SLOW.total_seconds():
            self._rests_until = ended_at + REST.total_seconds()
        return untaken


def _parts_of(records: Sequence[Record]) -> Iterator[list[str]]:
    """The lines, as many at a time as a log event holds."""
    return batches(chain.from_iterable(records), size_of=lambda line: len(line.encode()), most_size=LINE_LIMIT)
