"""Where a command goes: the scheduler that its options, the environment or the context in use name."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from tickwheel.client.contexts import LOCAL, context_in_use, get_context
from tickwheel.client.endpoint import ENVIRONMENT_VARIABLE, Endpoint, find_endpoint, local_endpoint

CONTEXT_VARIABLE = "TICKWHEEL_CONTEXT"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A scheduler. context: the name by which it was found; profile and region: what it says of them."""

    endpoint: str
    context: str | None = None
    profile: str | None = None
    region: str | None = None

    def __str__(self) -> str:
        return self.endpoint if self.context is None else f"{self.context} ({self.endpoint})"

    @property
    def as_json(self) -> Mapping[str, str | None]:
        """For a script."""
        return {"context": self.context, "endpoint": self.endpoint}


def find_place(*, endpoint: str | None, context: str | None) -> Place:
    """By options, else by the environment, else the context in use, else the local cloud. Raises NoEndpoint."""
    if endpoint is not None:
        return Place(endpoint=Endpoint(endpoint).url)
    if context is None and not os.environ.get(ENVIRONMENT_VARIABLE):
        context = os.environ.get(CONTEXT_VARIABLE) or context_in_use()
    if context is None:
        return Place(endpoint=find_endpoint(None).url)
    if context == LOCAL:
        return Place(endpoint=local_endpoint().url, context=LOCAL)
    found = get_context(context)
    return Place(endpoint=found.endpoint, context=found.name, profile=found.profile, region=found.region)
