"""The kinds of targets; of each AWS service, the ARNs of its resources and the IAM actions of whoever calls them.

A kind of AWS is declared here, called in `functions/adapters/targets/aws.py` and described in docs/targets.md: patterns of
allowed targets, the worker's grants and the texts of refusals follow from its declaration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What is called; ARNs have the name of their service."""

    HTTP = "http"
    HANDLER = "handler"
    LAMBDA = "lambda"
    SQS = "sqs"
    SNS = "sns"
    EVENTS = "events"
    STATES = "states"


QUALIFIER = re.compile(r"\$LATEST|[A-Za-z0-9_-]{1,128}", re.ASCII)
QUALIFIER_LETTERS = re.compile(r"[$A-Za-z0-9_*?-]+", re.ASCII)
_FIFO_LETTERS = re.compile(r"[A-Za-z0-9_*?-]*(\.[fio*?]*)?", re.ASCII)
_DOTTED_LETTERS = re.compile(r"[A-Za-z0-9_.*?-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What an ARN of a service has behind the account: prefix, name, and a version or alias where it may have one.

    letters: of a name with wildcards. calls: the IAM action that calls it. looks_up: others that the call needs. client:
    what boto3 calls the service, where ARNs call it otherwise.
    """

    prefix: str = ""
    name: re.Pattern[str]
    letters: re.Pattern[str]
    calls: str
    looks_up: tuple[str, ...] = ()
    client: str = ""
    is_qualified: bool = False


SERVICES: Mapping[Kind, Service] = {
    Kind.LAMBDA: Service(
        prefix="function:",
        name=re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII),
        letters=re.compile(r"[A-Za-z0-9_*?-]+", re.ASCII),
        calls="lambda:InvokeFunction",
        is_qualified=True,
    ),
    Kind.SQS: Service(
        name=re.compile(r"[A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo", re.ASCII),
        letters=_FIFO_LETTERS,
        calls="sqs:SendMessage",
        looks_up=("sqs:GetQueueUrl",),
    ),
    Kind.SNS: Service(
        name=re.compile(r"[A-Za-z0-9_-]{1,256}|[A-Za-z0-9_-]{1,251}\.fifo", re.ASCII),
        letters=_FIFO_LETTERS,
        calls="sns:Publish",
    ),
    Kind.EVENTS: Service(
        prefix="event-bus/",
        name=re.compile(r"[A-Za-z0-9_.-]{1,256}", re.ASCII),
        letters=_DOTTED_LETTERS,
        calls="events:PutEvents",
    ),
    Kind.STATES: Service(
        prefix="stateMachine:",
        name=re.compile(r"[A-Za-z0-9_.-]{1,80}", re.ASCII),
        letters=_DOTTED_LETTERS,
        calls="states:StartExecution",
        client="stepfunctions",
        is_qualified=True,
    ),
}


def client_of(kind: Kind) -> str:
    """What boto3 calls the service of a kind."""
    return SERVICES[kind].client or kind.value
