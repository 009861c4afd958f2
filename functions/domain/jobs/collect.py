"""When jobs of a key are given to their target together: `collect` of a job, as its tenant asked for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from functions.domain import key_lengths
from functions.domain.errors import InvalidJob
from functions.domain.instants import DAY, MILLISECOND, SECOND

KEY = re.compile(rf"[A-Za-z0-9._:-]{{1,{key_lengths.COLLECTION}}}", re.ASCII)

MAX_MEMBERS = 500
"""Jobs of a release: each has its end written, and all of that within the lease of one attempt."""

DEFAULT_MEMBERS = 100
MIN_WINDOW = SECOND
MAX_WINDOW = 31 * DAY
"""How long a job may wait for its release: where the next time of a cron is later, it does not wait for that."""

MEMBER_PAYLOAD_LIMIT = 8_192
"""Bytes of the payload of one job, as compact JSON. It stands in the row, so that a release fetches nothing from S3."""

_UTC = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """With which others a job is given to its target, and when.

    window: from the first job that waits on. most: jobs that wait, which let the release begin at once, and jobs of a release. at: a
    cron expression, in `timezone`, empty for none. Whatever comes first counts. Raises InvalidJob.
    """

    key: str
    window: timedelta | None = None
    most: int = DEFAULT_MEMBERS
    at: str = ""
    timezone: str = _UTC

    def __post_init__(self) -> None:
        if not KEY.fullmatch(self.key):
            raise InvalidJob(f"must match {KEY.pattern}", field="key", value=self.key[:80])
        if not 1 <= self.most <= MAX_MEMBERS:
            raise InvalidJob(f"must be from 1 to {MAX_MEMBERS}", field="max", value=self.most)
        if self.window is not None and not MIN_WINDOW <= self.window <= MAX_WINDOW:
            raise InvalidJob("must be from 1 second to 31 days", field="for", value=self.window.total_seconds())
        if self.window is None and not self.at:
            raise InvalidJob(
                "needs `for` or `at`: without a time the last jobs of a key would wait for others for ever",
                field="key",
                value=self.key,
            )
        if not self.at and self.timezone != _UTC:
            raise InvalidJob(
                "is for `at`: leave it out, or give a cron expression", field="timezone", value=self.timezone
            )


def write_collect(collect: Collect) -> dict[str, Any]:
    """As it is stored. What is usual is left out."""
    record: dict[str, Any] = {"k": collect.key}
    if collect.window is not None:
        record["f"] = collect.window // MILLISECOND
    if collect.most != DEFAULT_MEMBERS:
        record["m"] = collect.most
    if collect.at:
        record["a"] = collect.at
    if collect.timezone != _UTC:
        record["z"] = collect.timezone
    return record


def read_collect(record: Mapping[str, Any]) -> Collect:
    """What `write_collect` wrote. Raises InvalidJob."""
    return Collect(
        key=record["k"],
        window=record["f"] * MILLISECOND if "f" in record else None,
        most=record.get("m", DEFAULT_MEMBERS),
        at=record.get("a", ""),
        timezone=record.get("z", _UTC),
    )
