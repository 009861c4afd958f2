"""Grants that no recorded call makes use of, each with the reason why it stays: nobody but AWS itself uses most."""

EVERYBODY = {
    "kms:*": "The service that keeps the data asks with the function's role, and through that service alone.",
    "logs:CreateLogStream": "Lambda's own agent writes the log, with the function's role.",
    "logs:PutLogEvents": "Lambda's own agent writes the log, with the function's role.",
    "xray:PutTelemetryRecords": "Lambda's own X-Ray agent sends it, and knows no resources.",
    "xray:PutTraceSegments": "Lambda's own X-Ray agent sends the traces, and knows no resources.",
}

_POLLED = dict.fromkeys(
    ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"),
    "The poller of the event source mapping asks with the function's role.",
)
_GONE_OR_FORBIDDEN = {
    "s3:ListBucket": "Without it S3 answers 403 for an object that is gone, as for one that is forbidden.",
}

_FIRST_USE = {
    "secretsmanager:CreateSecret": "Where a stage has its secret made on first use: once, and the stages of the tests have theirs.",
}

BY_FUNCTION = {
    "api": _POLLED | _GONE_OR_FORBIDDEN | _FIRST_USE,
    "worker": _POLLED | _GONE_OR_FORBIDDEN | _FIRST_USE,
    "dead_letters": _POLLED,
}


def reason(function: str, action: str) -> str | None:
    """Why a function is granted an action that it never makes itself; None when nobody knows."""
    known = EVERYBODY | BY_FUNCTION.get(function, {})
    return known.get(action) or known.get(f"{action.partition(':')[0]}:*")


SOMETIMES = frozenset(
    {("api", action) for action in _POLLED} | {(name, action) for name in ("api", "worker") for action in _FIRST_USE}
)
"""Granted only where a stage has submission queues, or its secret is made on first use."""


def reasons() -> frozenset[tuple[str, str]]:
    """Every function and action with a reason of its own."""
    return frozenset((function, action) for function, actions in BY_FUNCTION.items() for action in actions)
