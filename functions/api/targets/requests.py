"""What is asked of breakers."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from functions.api.http.requests import StrictModel, Tenant, checked
from functions.domain.key_lengths import DESTINATION, fits
from functions.domain.targets.targets import parse_target


def _destination(value: str) -> str:
    destination = checked(parse_target, value).destination
    if not fits(destination, DESTINATION):
        raise PydanticCustomError(
            "destination",
            "is longer than {limit} characters: there are no breakers of such destinations",
            {"limit": DESTINATION},
        )
    return destination


class BreakersQuery(StrictModel):
    """The breakers of a tenant after a destination, in the order of their destinations."""

    tenant: Tenant
    limit: Annotated[int, Field(ge=1, le=500)] = 100
    after: Annotated[
        str,
        Field(
            max_length=DESTINATION,
            pattern=r"^[\x20-\x7e]*$",
            description="The `next` of the previous page.",
        ),
    ] = ""


class ResetBody(
    StrictModel, json_schema_extra={"examples": [{"tenant": "acme", "destination": "https://example.com"}]}
):
    """The breaker to close."""

    tenant: Tenant
    destination: Annotated[
        str,
        AfterValidator(_destination),
        Field(description="The destination as it is listed, or any target at that destination."),
    ]
