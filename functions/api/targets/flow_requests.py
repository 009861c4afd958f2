"""What is asked of flows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from functions.api.http.flow_body import FlowKey, LimitsBody
from functions.api.http.requests import StrictModel, Tenant
from functions.domain.key_lengths import FLOW
from functions.domain.targets.flows import THE_STAGE, FlowId

_Owner = Annotated[
    Tenant | None, Field(description="Whose flow it is. Without a tenant: the stage's, for operators only.")
]


class FlowPath(StrictModel):
    """What a path names."""

    key: FlowKey


class FlowQuery(StrictModel):
    """A flow of a tenant, or of the stage."""

    tenant: _Owner = None

    @property
    def owner(self) -> str:
        """The owner in the domain."""
        return THE_STAGE if self.tenant is None else self.tenant

    def flow(self, key: str) -> FlowId:
        """The flow of the domain."""
        return FlowId(self.owner, key)


class FlowsQuery(FlowQuery):
    """The flows of a tenant, or of the stage, after a key, in the order of their keys."""

    limit: Annotated[int, Field(ge=1, le=500)] = 100
    after: Annotated[
        str,
        Field(
            max_length=FLOW,
            pattern=r"^[A-Za-z0-9._:-]*$",
            description="The `next` of the previous page.",
        ),
    ] = ""


class FlowLimitsBody(LimitsBody, json_schema_extra={"examples": [{"rate": "60/min", "burst": 10, "concurrency": 5}]}):
    """The limits of a flow: a rate, a concurrency, or both. They replace those that were set before."""

    @model_validator(mode="after")
    def _limits_something(self) -> FlowLimitsBody:
        if self.limits() is None:
            raise PydanticCustomError("limits", "must have a rate, a concurrency, or both, or be ordered")
        return self
