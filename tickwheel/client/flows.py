"""Flows: the rate and the concurrency that jobs share which name the same key."""

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime
from typing import Any, Literal

from tickwheel.client.answers import Answer
from tickwheel.client.fields import choice_problems, count_problems, names_of, read_part, said, text_problems
from tickwheel.errors import FieldProblem, InvalidJob

Scope = Literal["tenant", "stage"]

_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True)
class Flow:
    """A flow that a job names. Its calls start no faster than `rate` (`60/min`), and no more than `concurrency` run at once.

    Limits that were set for the flow itself go before these. burst: calls that may start at once after a while of none.
    ordered: its jobs run one after the other, by their due times. scope: "stage" for a flow of all tenants, whose limits an operator sets. Raises InvalidJob.
    """

    key: str
    _: KW_ONLY
    scope: Scope | None = None
    rate: str | None = None
    burst: int | None = None
    concurrency: int | None = None
    ordered: bool | None = None

    def __post_init__(self) -> None:
        problems = [
            *text_problems("flow.key", self.key),
            *choice_problems("flow.scope", self.scope, Scope),
            *([] if self.rate is None else text_problems("flow.rate", self.rate)),
            *count_problems("flow.burst", self.burst),
            *count_problems("flow.concurrency", self.concurrency),
            *([] if self.ordered in (None, True, False) else [FieldProblem("flow.ordered", "is true or false")]),
        ]
        if problems:
            raise InvalidJob(problems)

    def as_json(self) -> dict[str, Any]:
        """The flow on the wire, without what is left to the scheduler."""
        return said(vars(self))

    @classmethod
    def parse(cls, text: str) -> "Flow":
        """Reads `stripe`, or `stripe,rate=60/min,burst=10,concurrency=5`, or `smtp,scope=stage`; raises ValueError."""
        key, *parts = text.split(",")
        given = dict(part.split("=", 1) for part in parts if "=" in part)
        if len(given) < len(parts) or not set(given) <= {"scope", "rate", "burst", "concurrency", "ordered"}:
            raise ValueError(f"{text!r} is not a flow: write stripe, or stripe,rate=60/min,burst=10,concurrency=5")
        counts = {name: _count(given.pop(name)) for name in ("burst", "concurrency") if name in given}
        if given.get("ordered", "yes") != "yes":
            raise ValueError(f"{text!r} is not a flow: write ordered=yes, or leave it out")
        order = {"ordered": True} if given.pop("ordered", None) else {}
        try:
            return cls(key, **given, **counts, **order)  # type: ignore[arg-type]  # a scope that is none is refused
        except InvalidJob as invalid:
            raise ValueError(str(invalid)) from None


def flow_problems(field: str, flows: Any) -> list[FieldProblem]:
    """Flows, in a list."""
    if isinstance(flows, Sequence) and all(isinstance(flow, Flow) for flow in flows):
        return []
    return [FieldProblem(field, "is a list of flows")]


def parse_flows(value: Any) -> list[Flow]:
    """Reads the flows of a job; raises ValueError, or InvalidJob with every problem by its place."""
    if not isinstance(value, list):
        raise ValueError("is a list of flows")  # noqa: TRY004  # a parser's error is a ValueError
    flows: list[Flow] = []
    problems: list[FieldProblem] = []
    for place, body in enumerate(value):
        try:
            flows.append(read_part("flow", body, _flow_of, InvalidJob, names=names_of(Flow), whole="a flow"))
        except InvalidJob as invalid:
            there = f"flow.{place}"
            problems += [replace(each, field=each.field.replace("flow", there, 1)) for each in invalid.problems]
    if problems:
        raise InvalidJob(problems)
    return flows


def _flow_of(**values: Any) -> Flow:
    return Flow(**{"key": "", **values})


def _count(text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)


@dataclass(frozen=True, kw_only=True)
class FlowLimits(Answer):
    """The limits of a flow; None is not limited. tenant: whose it is, None for one of the stage. rate: such as `60/min`.

    burst: calls that may start at once after a while of none. concurrency: calls that may run at the same time. ordered: one after the other.
    """

    tenant: str | None
    key: str
    rate: str | None
    burst: int | None
    concurrency: int | None
    ordered: bool = False


@dataclass(frozen=True, kw_only=True)
class FlowFigures(FlowLimits):
    """A flow and what goes on in it. is_set: the limits were set for it; else they are those of the job that goes next.

    waiting: jobs that wait for it, of `waiting_tenants`; has_more: more than were counted. next_start_at: before which its rate lets
    no call start, None without a rate. running: calls that run now, None without a concurrency.
    """

    is_set: bool
    waiting: int
    waiting_tenants: int
    has_more: bool
    next_start_at: datetime | None
    running: int | None
