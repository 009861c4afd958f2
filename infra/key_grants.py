"""Who may use a customer's key: each function through the services, and for the very things, that it may use anyway.

What was written with a former key keeps it: an object, a message in a queue, a version of a secret. Functions go on opening that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from infra.package import Function

_READS = frozenset(
    {"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:Scan", "dynamodb:ConditionCheckItem"}
)
_TABLE_WRITES = (
    "kms:Encrypt",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
)


def unlock(functions: Sequence[Function], *, key: kms.IKey | None, former: Sequence[str]) -> None:
    """Let each function use the key, and open with the former ones (ARNs) what it may read."""
    for function in functions:
        statements = _statements(function, key=key.key_arn) if key is not None else []
        if former:
            statements += _statements_of_former(function, keys=former)
        for statement in statements:
            function.role.add_to_principal_policy(statement)


def _statements(function: Function, *, key: str) -> list[iam.PolicyStatement]:
    needed: dict[tuple[str, str], dict[str, None]] = {}
    for action, service, arn in _granted(function):
        for use in _uses(action):
            needed.setdefault((service, use), {})[arn] = None
    stack = cdk.Stack.of(function)
    statements = [
        _statement(uses, keys=[key], service=service, arns=arns, stack=stack)
        for (service, arns), uses in _by_arns(needed).items()
    ]
    if any(service == "dynamodb" for service, _ in needed):
        # A description has no encryption context.
        statements.append(
            iam.PolicyStatement(
                actions=["kms:DescribeKey"],
                resources=[key],
                conditions={"StringEquals": {"kms:ViaService": _via("dynamodb", stack)}},
            )
        )
    return statements


def _statements_of_former(function: Function, *, keys: Sequence[str]) -> list[iam.PolicyStatement]:
    opened: dict[str, dict[str, None]] = {}
    for action, service, arn in _granted(function):
        # Whoever sends needs Decrypt for a data key of the present key alone.
        if action != "sqs:SendMessage" and "kms:Decrypt" in _uses(action):
            opened.setdefault(service, {})[arn] = None
    stack = cdk.Stack.of(function)
    return [
        _statement(["kms:Decrypt"], keys=keys, service=service, arns=sorted(arns), stack=stack)
        for service, arns in opened.items()
    ]


def _granted(function: Function) -> Iterator[tuple[str, str, str]]:
    """Action, service and thing of each grant that a key matters to."""
    for action, arn in function.granted:
        service = action.partition(":")[0]
        # Of this app. A target that a stage allows by a pattern has a key of its own, whose policy says who may use it.
        if service in _CONTEXTS and cdk.Token.is_unresolved(arn):
            # With a key of the bucket S3 tells of the bucket, whatever the object
            # (https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-key.html).
            yield action, service, arn.partition("/")[0] if service == "s3" else arn


def _statement(
    uses: list[str], *, keys: Sequence[str], service: str, arns: Sequence[str], stack: cdk.Stack
) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        actions=uses,
        resources=list(keys),
        conditions={
            "StringEquals": {
                "kms:ViaService": _via(service, stack),
                f"kms:EncryptionContext:{_CONTEXTS[service]}": [_told(service, arn) for arn in arns],
            }
        },
    )


def _by_arns(needed: Mapping[tuple[str, str], Mapping[str, None]]) -> dict[tuple[str, tuple[str, ...]], list[str]]:
    """What is allowed of the same ARNs goes into one statement: a role's policies have 10,240 characters."""
    grouped: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (service, use), arns in needed.items():
        grouped.setdefault((service, tuple(sorted(arns))), []).append(use)
    return grouped


_CONTEXTS = {
    "dynamodb": "aws:dynamodb:tableName",
    "s3": "aws:s3:arn",
    "secretsmanager": "SecretARN",
    "sqs": "aws:sqs:arn",
}
"""The encryption context that each service sends to KMS."""


def _uses(action: str) -> tuple[str, ...]:
    """What a service does with the key when it is asked for this."""
    match action:
        case "sqs:SendMessage":
            return ("kms:Decrypt", "kms:GenerateDataKey")
        case "s3:PutObject":
            return ("kms:GenerateDataKey",)
        case "sqs:ReceiveMessage" | "s3:GetObject" | "secretsmanager:GetSecretValue":
            return ("kms:Decrypt",)
        case _ if action in _READS:
            return ("kms:Decrypt",)
        case _ if action.startswith("dynamodb:"):
            return ("kms:Decrypt", *_TABLE_WRITES)
        case _:
            return ()


def _told(service: str, arn: str) -> str:
    """What stands in the encryption context: a table's name, else the ARN itself; of an object, its bucket's."""
    return cdk.Fn.select(1, cdk.Fn.split("/", arn)) if service == "dynamodb" else arn


def _via(service: str, stack: cdk.Stack) -> str:
    return f"{service}.{stack.region}.amazonaws.com"
