"""A flow, and its limits, as a request has them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidationInfo, WithJsonSchema, field_validator
from pydantic_core import PydanticCustomError

from functions.api.http import requests
from functions.domain.targets.flows import (
    KEY,
    MAX_BURST,
    MAX_CONCURRENCY,
    RATE,
    FlowLimits,
    FlowScope,
    NamedFlow,
    check_flow_key,
    parse_rate,
)

FlowKey = Annotated[
    str,
    requests.obeying(check_flow_key),
    WithJsonSchema({"type": "string", "pattern": f"^{KEY.pattern}$", "examples": ["stripe"]}),
]
LIMITS = ("rate", "burst", "concurrency", "ordered")


class LimitsBody(requests.StrictModel):
    """What a flow lets run. What is left out is not limited."""

    rate: Annotated[
        str | None,
        Field(
            json_schema_extra={"pattern": f"^{RATE.pattern}$"},
            description="How many calls may start in a unit of time: a number of at most 1000, and `s`, `min`, `h` or `d`.",
            examples=["60/min"],
        ),
    ] = None
    burst: Annotated[
        int | None,
        Field(
            ge=1,
            le=MAX_BURST,
            strict=True,
            description="How many calls may start at once after a while of none. By default a tenth of the rate's count, and at least what comes in within two seconds.",
        ),
    ] = None
    concurrency: Annotated[
        int | None,
        Field(ge=1, le=MAX_CONCURRENCY, strict=True, description="How many calls may run at the same time."),
    ] = None
    ordered: Annotated[
        bool,
        Field(
            strict=True,
            description="Whether jobs run one after the other, in the order of their due times, each through all of its attempts.",
        ),
    ] = False

    @field_validator("rate")
    @classmethod
    def _is_a_rate(cls, value: str | None) -> str | None:
        if value is not None:
            requests.checked(parse_rate, value)
        return value

    @field_validator("burst")
    @classmethod
    def _has_a_rate(cls, value: int | None, info: ValidationInfo) -> int | None:
        # A rate that was refused is a problem of its own.
        if value is not None and "rate" in info.data and info.data["rate"] is None:
            raise PydanticCustomError("burst", "needs a rate")
        return value

    def limits(self) -> FlowLimits | None:
        """The limits of the domain; None where it has none."""
        if self.rate is None and self.concurrency is None and not self.ordered:
            return None
        rate = None if self.rate is None else parse_rate(self.rate)
        return FlowLimits(rate=rate, burst=self.burst or 0, concurrency=self.concurrency, is_ordered=self.ordered)


class FlowBody(LimitsBody):
    """A flow as a job names it. Its limits apply unless limits were set for the flow itself."""

    key: FlowKey
    scope: Annotated[
        FlowScope,
        Field(description="Whose jobs share it: those of the tenant, or those of all tenants of the stage."),
    ] = FlowScope.TENANT

    @field_validator("scope")
    @classmethod
    def _leaves_limits_to_operators(cls, value: FlowScope, info: ValidationInfo) -> FlowScope:
        given: dict[str, Any] = {name: info.data[name] for name in LIMITS if info.data.get(name)}
        if value is FlowScope.STAGE and given:
            limits = " and ".join(given)
            raise PydanticCustomError(
                "scope", "excludes {limits}: the limits of the stage's flows are set by an operator", {"limits": limits}
            )
        return value

    def named(self) -> NamedFlow:
        """The flow of the domain."""
        return NamedFlow(key=self.key, scope=self.scope, limits=self.limits())
