"""The table of dead letters, read where it lies: the API does not show it yet."""

from collections.abc import Mapping
from typing import Any

from botocore.config import Config
from botocore.session import Session

from tickwheel.local import AwsSettings


class DeadLetterTable:
    """Reads the dead letters of a local stack. outputs: of its stacks."""

    def __init__(self, aws: AwsSettings, outputs: Mapping[str, str]) -> None:
        settings: dict[str, Any] = aws.as_kwargs()
        # Without `proxies` a proxy of the environment would be asked for an address of this machine.
        self._dynamodb: Any = Session().create_client("dynamodb", config=Config(proxies={}), **settings)
        self._table = next(name for output, name in outputs.items() if output.startswith("ExportsOutputRefDeadLetters"))

    def job_ids(self) -> frozenset[str]:
        """The ids of all jobs that are in the table."""
        pages = self._dynamodb.get_paginator("scan").paginate(TableName=self._table, ConsistentRead=True)
        return frozenset(item["i"]["S"] for page in pages for item in page["Items"] if "i" in item)
