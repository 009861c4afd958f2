"""Jobs that are given to their target together."""

import re
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Any

from tickwheel.client.durations import parse_duration
from tickwheel.client.fields import count_problems, duration_problems, read_part, said, text_problems
from tickwheel.errors import FieldProblem, InvalidJob

_ON_THE_WIRE = {"window": "for", "most": "max"}
"""Names that are words of Python."""

_BETWEEN = re.compile(r",(?=(?:for|max|at|timezone)=)", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True)
class Collect:
    """Jobs of the same key, target and terms are given to their target in one call.

    That is when the first of them has waited for `window`, when the cron expression `at` comes (in `timezone`), or as soon as
    `most` of them wait. One of `window` and `at` is needed. In JSON they are called `for` and `max`. Raises InvalidJob.
    """

    key: str
    _: KW_ONLY
    window: timedelta | None = None
    most: int | None = None
    at: str | None = None
    timezone: str | None = None

    def __post_init__(self) -> None:
        problems = [
            *text_problems("collect.key", self.key),
            *duration_problems("collect.for", self.window),
            *count_problems("collect.max", self.most),
            *([] if self.at is None else text_problems("collect.at", self.at)),
            *([] if self.timezone is None else text_problems("collect.timezone", self.timezone)),
        ]
        if self.window is None and self.at is None:
            problems.append(FieldProblem("collect", "needs window (`for`) or at"))
        if problems:
            raise InvalidJob(problems)

    def as_json(self) -> dict[str, Any]:
        """The terms on the wire, without what is left to the scheduler."""
        return said({_ON_THE_WIRE.get(name, name): value for name, value in vars(self).items()})

    @classmethod
    def parse(cls, text: str) -> "Collect":
        """Reads `export,for=1h,max=100`, or `digest,at=0 7 * * *,timezone=Europe/Berlin`; raises ValueError."""
        key, *parts = _BETWEEN.split(text)
        given = dict(part.split("=", 1) for part in parts)
        if "," in key or len(given) < len(parts) or not _COUNT.fullmatch(given.get("max", "1")):
            raise ValueError(f"{text!r} says not what to collect: write export,for=1h,max=100, or digest,at=0 7 * * *")
        try:
            return cls(
                key,
                window=parse_duration(given["for"]) if "for" in given else None,
                most=int(given["max"]) if "max" in given else None,
                at=given.get("at"),
                timezone=given.get("timezone"),
            )
        except InvalidJob as invalid:
            raise ValueError(str(invalid)) from None


def collect_problems(field: str, collect: Any) -> list[FieldProblem]:
    """Terms, or None."""
    return [] if collect is None or isinstance(collect, Collect) else [FieldProblem(field, "is a Collect")]


def parse_collect(body: Any) -> Collect:
    """Reads the terms of a job; raises InvalidJob with every problem by its place."""
    return read_part(
        "collect",
        body,
        _collect_of,
        InvalidJob,
        names=("key", "for", "max", "at", "timezone"),
        whole="collect",
        parsers={"for": parse_duration},
    )


def _collect_of(**values: Any) -> Collect:
    in_python = {wire: name for name, wire in _ON_THE_WIRE.items()}
    return Collect(**{"key": "", **{in_python.get(name, name): value for name, value in values.items()}})
