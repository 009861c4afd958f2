"""Which trace a job belongs to, after W3C Trace Context (https://www.w3.org/TR/trace-context/, sections 3.2 and 4.3)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

SAMPLED = 0x01
"""Whoever is called may record: a receiver that does as its caller says drops its part of the trace without it."""

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII | re.DOTALL)
_FORBIDDEN_VERSION = "ff"
_VERSION = "00"
_KNOWN_FLAGS = 0x03


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A place in a trace: its id, 32 hexadecimal digits, the span that what follows belongs to, 16 of them, and its flags."""

    trace_id: str
    span_id: str
    flags: int

    def __str__(self) -> str:
        """As the header `traceparent`."""
        return f"{_VERSION}-{self.trace_id}-{self.span_id}-{self.flags:02x}"

    @property
    def xray(self) -> str:
        """As the header of AWS X-Ray, which cuts the same trace id in two.

        See https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader for its form. It repeats that a trace is not to be sampled, and not that it is: Lambda does as it is told, and whoever samples all
        of his own would have all of ours traced. Without a decision X-Ray's own rate decides.
        """
        root = f"1-{self.trace_id[:8]}-{self.trace_id[8:]}"
        return f"Root={root};Parent={self.span_id}" + ("" if self.flags & SAMPLED else ";Sampled=0")


def parse_traceparent(header: str | None) -> Trace | None:
    """The trace that a header names; None for one that is not valid, which is to be ignored.

    Of a version after 00 the part that 00 knows is read. Flags that nobody has defined are cleared.
    """
    found = _FORM.fullmatch((header or "").strip(" \t"))
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if version == _FORBIDDEN_VERSION or (version == _VERSION and rest is not None):
        return None
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    return Trace(trace_id=trace_id, span_id=span_id, flags=int(flags, 16) & _KNOWN_FLAGS)


def attempt_trace(brought: Trace | None, *, key: str, attempt: int, fence: int) -> Trace:
    """What the target of an attempt receives: its trace, and the attempt as the span that called it.

    brought: by the submission. A job without one has a trace all the same, made from its key, so that all its attempts
    share it and nothing is stored. Each claim of an attempt is a span of its own.
    """
    return Trace(
        trace_id=brought.trace_id if brought else _hex(key, size=16),
        span_id=_hex(f"{key}#{attempt}#{fence}", size=8),
        flags=brought.flags if brought else SAMPLED,
    )


def _hex(text: str, *, size: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()
