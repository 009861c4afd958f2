"""Who may send jobs to which queue: what a stage may say of it, and how IAM is told."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from functions.domain.errors import InvalidInput
from functions.domain.jobs.submission_queues import TENANT_OF_QUEUE
from functions.domain.tenants.access import ANYBODY, check_pattern
from infra.stage_parts import InvalidStage

MOST_QUEUES = 5
"""Their addresses stand in the environment of the API, which has room for 4 KB
(https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html)."""

MOST_SENDERS = 20


def check_queues(
    stage: str, queues: Mapping[str, Sequence[str]], *, fed: Collection[str] = (), files: bool = False
) -> None:
    """Tenants, each with the roles and users that may send. fed: those that event rules send to.

    files: whether the stage takes files, whose addresses need as much room as those of a tenant. Raises InvalidStage.
    """
    if len(queues) > (most := MOST_QUEUES - files):
        raise InvalidStage(
            f"{stage}: submission_queues has {len(queues)} tenants: use at most {most}; the others submit by the API or by files"
        )
    for tenant, senders in queues.items():
        where = f"{stage}: submission_queues, {tenant}"
        if not TENANT_OF_QUEUE.fullmatch(tenant):
            raise InvalidStage(f"{where}: the name of a queue cannot hold this id: use {TENANT_OF_QUEUE.pattern}")
        if not (tenant not in fed) <= len(senders) <= MOST_SENDERS:
            raise InvalidStage(
                f"{where}: has {len(senders)} senders: name 1 to {MOST_SENDERS}, or {ANYBODY!r} for whomever IAM of the account lets send"
            )
        for sender in senders:
            _check_sender(where, sender)


def _check_sender(where: str, sender: str) -> None:
    try:
        check_pattern(sender)
    except InvalidInput as error:
        raise InvalidStage(f"{where}: {error}") from None
    if "*" in sender and sender != ANYBODY:
        # IAM's * also stands for a path: role/orders-* would be role/orders-/anything, too.
        raise InvalidStage(
            f"{where}: {sender!r} has a *: write whole names, in a policy of IAM it stands for more than a name"
        )


def principal_arns(senders: Sequence[str]) -> list[str]:
    """The senders as `aws:PrincipalArn` has them: with a path, which is not known of one that is named without."""
    arns: list[str] = []
    for sender in senders:
        before, slash, name = sender.partition("/")
        arns.append(sender)
        if "/" not in name:
            arns.append(f"{before}{slash}*/{name}")
    return arns
