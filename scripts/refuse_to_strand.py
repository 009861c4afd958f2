"""Before the scheduler of a stage is destroyed: refuse while its queues hold jobs, which would go with them.

`python -m scripts.refuse_to_strand STAGE`, with the credentials of whoever destroys; FORCE=1 says nothing and allows it.
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

import boto3

KINDS = ("", "NotVisible", "Delayed")


def main(arguments: list[str]) -> int:
    """Answer 0 where nothing would be lost."""
    (stage,) = arguments
    if os.environ.get("FORCE") == "1":
        return 0
    held = {name: count for name, count in messages_of(f"Tickwheel-{stage}-Scheduler") if count}
    if not held:
        return 0
    waiting = ", ".join(f"{count} in {name}" for name, count in held.items())
    print(
        f"messages wait in the queues, and would be deleted with them: {waiting}.\n"
        "Let them drain (docs/upgrading.md says how), or set FORCE=1 and lose the jobs that have no row.",
        file=sys.stderr,
    )
    return 1


def messages_of(stack: str) -> Iterator[tuple[str, int]]:
    """Every queue of the stack that holds jobs, by its name, with all messages that it holds: visible, in flight and delayed."""
    cloudformation, sqs = _client("cloudformation"), _client("sqs")
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
    for resource in (resource for page in pages for resource in page["StackResourceSummaries"]):
        holds_jobs = resource["LogicalResourceId"].startswith(("Ready", "Submissions"))
        if resource["ResourceType"] == "AWS::SQS::Queue" and holds_jobs and resource.get("PhysicalResourceId"):
            url = resource["PhysicalResourceId"]
            names = [f"ApproximateNumberOfMessages{kind}" for kind in KINDS]
            counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
            yield url.rpartition("/")[2], sum(int(counts[name]) for name in names)


def _client(service: str) -> Any:
    return boto3.client(service)  # pyright: ignore[reportCallIssue, reportArgumentType]  a name that varies


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
