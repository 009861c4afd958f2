"""With which others a job is given to its target, as a request has it."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema, field_validator, model_validator
from pydantic_core import PydanticCustomError

from functions.api.http import requests
from functions.domain.jobs.collect import (
    DEFAULT_MEMBERS,
    KEY,
    MAX_MEMBERS,
    MAX_WINDOW,
    MEMBER_PAYLOAD_LIMIT,
    MIN_WINDOW,
    Collect,
)
from functions.domain.schedules.cron import parse_cron
from functions.domain.schedules.zones import zone_of

_Window = Annotated[requests.Duration, requests.between(MIN_WINDOW, MAX_WINDOW, "must be from 1 second to 31 days")]


def _check_key(key: str) -> str:
    if not KEY.fullmatch(key):
        raise PydanticCustomError("key", "must match {pattern}", {"pattern": KEY.pattern})
    return key


class CollectBody(requests.StrictModel):
    """When jobs of a key are given to their target together: after `for`, at `at`, or as soon as `max` of them wait."""

    key: Annotated[
        str,
        AfterValidator(_check_key),
        WithJsonSchema({"type": "string", "pattern": f"^{KEY.pattern}$", "examples": ["export"]}),
    ]
    window: Annotated[
        _Window | None, Field(alias="for", description="How long the first job waits for others, at most.")
    ] = None
    most: Annotated[
        int,
        Field(
            alias="max",
            ge=1,
            le=MAX_MEMBERS,
            strict=True,
            description="How many jobs are given in one call. As soon as so many wait, they are.",
        ),
    ] = DEFAULT_MEMBERS
    timezone: Annotated[str, Field(description="The time zone of `at`.")] = "UTC"
    at: Annotated[
        str | None,
        Field(description="A cron expression: jobs that wait when it comes are given.", examples=["0 7 * * *"]),
    ] = None

    @field_validator("timezone")
    @classmethod
    def _is_a_zone(cls, value: str) -> str:
        requests.checked(zone_of, value)
        return value

    @field_validator("at")
    @classmethod
    def _is_a_cron(cls, value: str | None) -> str | None:
        if value is not None:
            requests.checked(parse_cron, value)
        return value

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.window is None and self.at is None:
            raise PydanticCustomError(
                "collect", "needs for or at: without a time the last jobs of a key would wait for others for ever"
            )
        if self.at is None and self.timezone != "UTC":
            raise PydanticCustomError("collect", "has a timezone without at: leave it out, or give a cron expression")
        return self

    def terms(self) -> Collect:
        """The terms of the domain."""
        return Collect(key=self.key, window=self.window, most=self.most, at=self.at or "", timezone=self.timezone)


def check_company(value: CollectBody | None, info: ValidationInfo) -> CollectBody | None:
    """The terms themselves, where nothing else of the job keeps it from being given together with others."""
    if value is None:
        return None
    for name, usual, reason in _EXCLUDED:
        # What was refused itself is a problem of its own.
        if name in info.data and info.data[name] != usual:
            raise PydanticCustomError("collect", "excludes {name}: {reason}", {"name": name, "reason": reason})
    size = len(requests.compact_json(info.data.get("payload")).encode())
    if size > MEMBER_PAYLOAD_LIMIT:
        raise PydanticCustomError(
            "collect",
            "takes payloads of at most {limit} bytes, but this one has {size}: keep what is larger elsewhere, and send its address",
            {"limit": MEMBER_PAYLOAD_LIMIT, "size": size},
        )
    return value


_EXCLUDED: tuple[tuple[str, object, str], ...] = (
    ("delivery", "exactly_once", "how each job of a call has ended is kept in the ledger, so leave delivery out"),
    ("precision", "default", "a job is given when its window closes, so leave precision out"),
    ("expires_after", None, "a job is given when its window closes, so choose a shorter one"),
    ("run_deadline", None, "a run begins when its window closes, so use retry.max_age"),
    ("flow", (), "one call is made for all jobs of a key, so bound it by for and max"),
)
