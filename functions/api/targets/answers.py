"""What the API answers about breakers: the shapes of its bodies, and these from what the rules found."""

from collections.abc import Sequence
from typing import Annotated

from typing_extensions import TypedDict

from functions.api.http import shapes
from functions.api.http.breaker_answers import Breaker, breaker_body
from functions.domain.targets import breaker as rules


class Breakers(TypedDict):
    """A page of breakers."""

    breakers: list[Breaker]
    next: str | None
    """The `after` of the next page, or `null` on the last page."""


class Reset(TypedDict):
    """A closed breaker."""

    tenant: shapes.TenantId
    destination: shapes.Destination
    state: Annotated[str, shapes.one_of([rules.CLOSED])]
    was_closed: bool
    """Whether the breaker was closed already."""


def breakers_body(breakers: Sequence[rules.Breaker], *, has_more: bool) -> Breakers:
    """A page of a list."""
    return {
        "breakers": [breaker_body(breaker) for breaker in breakers],
        "next": breakers[-1].destination if has_more and breakers else None,
    }


def reset_body(tenant: str, destination: str, *, was_closed: bool) -> Reset:
    """A breaker that is closed."""
    return {"tenant": tenant, "destination": destination, "state": rules.CLOSED, "was_closed": was_closed}
