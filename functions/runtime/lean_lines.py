"""Which events are written, and what of Powertools' own keys their lines have: CloudWatch bills a log by its bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from functions.domain.events import EVENTS, KEYS, is_sampled
from functions.domain.lifecycle import State

_SAID_ELSEWHERE = frozenset(
    {"location", "timestamp", "cold_start", "function_name", "function_memory_size", "function_arn"}
)
"""By the code that the message names, by CloudWatch, by Lambda's own lines, and by the name of the log group."""

_TRACE = "_X_AMZN_TRACE_ID"


class LeanLines(LambdaPowertoolsFormatter):
    """A line's message and keys, its service, and for whoever looks into it the ids of its invocation."""

    def serialize(self, log: Mapping[str, Any]) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Without what nobody asks of a line, or of one of a job for which all went well."""
        left_out = set(_SAID_ELSEWHERE)
        if log.get("level") == "INFO":
            left_out.add("level")
        if "Sampled=1" not in os.environ.get(_TRACE, ""):
            left_out.add("xray_trace_id")  # of a trace that is not kept
        if log.get("message") == "job_settled" and log.get("outcome") == State.SUCCEEDED:
            left_out.add("function_request_id")
        return super().serialize({key: value for key, value in log.items() if key not in left_out})  # pyright: ignore[reportArgumentType]


def told(name: str, keys: Mapping[str, object], *, is_detailed: bool) -> Mapping[str, object] | None:
    """What of an event is written: declared keys alone. None where all is well and nobody needs the line.

    is_detailed: everything is written.
    """
    declared = {key: value for key, value in keys.items() if key in KEYS}
    shape = EVENTS.get(name)
    if is_detailed or shape is None:
        return declared
    if shape.tells and not any(map(_says_something, map(declared.get, shape.tells))):
        return None
    if not shape.of_many:
        return declared
    for key in shape.of_many:
        declared[key] = [job_id for job_id in _ids(declared.get(key)) if is_sampled(job_id)]
    return declared if any(declared[key] for key in shape.of_many) else None


def _says_something(value: object) -> bool:
    return any(value.values()) if isinstance(value, Mapping) else bool(value)


def _ids(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list | tuple) else []
