"""The queues that jobs may be sent to: one for each tenant that a stage names, so that the queue says whose a job is."""

from __future__ import annotations

import re
from datetime import timedelta

from functions.domain.instants import MINUTE, SECOND

TENANT_OF_QUEUE = re.compile(r"[A-Za-z0-9_-]{1,48}", re.ASCII)
"""Ids of tenants that can have one: its name ends with the id, and has at most 80 letters, digits, hyphens and underscores
(https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html)."""

MOST_BYTES = 900 * 1_024
"""Of a message that is taken. SQS has 1,048,576, attributes included
(https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html): what is left has room for keys and
problems, where a part of a message is sent on."""

GIVE_UP_AFTER = timedelta(days=7)
"""How long jobs that may not come in yet are kept before they are refused for good."""

LIFE = GIVE_UP_AFTER + timedelta(days=1)
"""How long SQS keeps a message: less than in the queue of the refused, so that none is lost between the two."""

_LONGEST_WAIT = 15 * MINUTE

MOST_RECEIVES = 1_000
"""SQS's most. Whoever waits a quarter of an hour between two receives needs 700 of them for GIVE_UP_AFTER."""


def queue_name(stage: str, tenant: str) -> str:
    """Where jobs of a tenant are sent."""
    return f"{_prefix(stage)}{tenant}"


def refused_name(stage: str, tenant: str) -> str:
    """Where those are found that were refused."""
    return f"Tickwheel-{stage}-refused-{tenant}"


def files_name(stage: str) -> str:
    """Where the turns of files of jobs are."""
    return f"Tickwheel-{stage}-files"


def tenant_of(stage: str, name: str) -> str:
    """Whose queue has this name. Raises ValueError for one of no tenant of this stage."""
    if not name.startswith(_prefix(stage)):
        raise ValueError(f"{name} is no submission queue of {stage}")
    return name.removeprefix(_prefix(stage))


def wait_before_next(receive_count: int, retry_after: timedelta) -> timedelta:
    """How long a message stays hidden whose jobs may not come in yet. retry_after: when one of them may, as far as that is known."""
    doubled = SECOND * 2 ** min(receive_count, 20)
    return min(max(doubled, retry_after), _LONGEST_WAIT)


def _prefix(stage: str) -> str:
    return f"Tickwheel-{stage}-submissions-"
