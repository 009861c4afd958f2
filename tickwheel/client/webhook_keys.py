"""The keys that requests to HTTP targets are signed with."""

from dataclasses import dataclass, field

from tickwheel.client.answers import Answer


@dataclass(frozen=True)
class WebhookKey(Answer):
    """secret: `whsec_…`, as libraries of Standard Webhooks take it; it is not shown by `repr`."""

    id: str
    secret: str = field(repr=False)
