"""Counts what DynamoDB says each call consumed: botocore handlers, so the measured code need not ask for it."""

import threading
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from botocore.model import OperationModel

from bench.boundary import Handler

_READS = frozenset({"BatchGetItem", "GetItem", "Query", "TransactGetItems"})
_WRITES = frozenset({"BatchWriteItem", "DeleteItem", "PutItem", "UpdateItem"})
_TRANSACTION = "TransactWriteItems"
_BATCH = "BatchGetItem"
_TRANSACTED = 2.0
_LOST = "ConditionalCheckFailedException"
_EMPTY_QUERY = 0.5
_MISSED = 0.5


class Meter:
    """Write and read units by table since it was last read.

    It corrects DynamoDB Local where it reports other than AWS bills: a lost condition is a write unit and each item of
    a transaction two, done or cancelled (rows of up to 1 KB), and a query that finds nothing is half a read unit, as is
    each key of a batch that is not there (a whole one where the batch is consistent).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writes: dict[str, float] = defaultdict(float)
        self._reads: dict[str, float] = defaultdict(float)

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """What to register, by event."""
        return {"before-parameter-build.dynamodb": self._ask, "after-call.dynamodb": self._note}

    def take(self, *tables: str) -> tuple[float, float]:
        """Write and read units of these tables; they start from zero again."""
        with self._lock:
            writes = sum(self._writes.pop(table, 0.0) for table in tables)
            return writes, sum(self._reads.pop(table, 0.0) for table in tables)

    def _ask(self, params: dict[str, Any], model: OperationModel, context: dict[str, Any], **_: Any) -> None:
        context["metered_table"] = params.get("TableName")
        if model.name == _TRANSACTION:
            items = params.get("TransactItems", ())
            context["metered_items"] = [part["TableName"] for item in items for part in item.values()]
        if model.name == _BATCH:
            context["metered_batch"] = params["RequestItems"]
        if model.name in _READS | _WRITES:
            params["ReturnConsumedCapacity"] = "TOTAL"

    def _note(self, model: OperationModel, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        if model.name == "CreateTable":
            return
        if model.name == _TRANSACTION:
            for table in context["metered_items"]:
                self._add(self._writes, table, _TRANSACTED)
            return
        if model.name not in _READS | _WRITES:
            raise NotImplementedError(f"the meter cannot tell what {model.name} costs")
        table = context["metered_table"]
        if parsed.get("Error", {}).get("Code") == _LOST:
            self._add(self._writes, table, 1.0)
            return
        if model.name == _BATCH:
            self._note_missed(context["metered_batch"], parsed)
        consumed = parsed.get("ConsumedCapacity", [])
        for part in consumed if isinstance(consumed, list) else [consumed]:
            units = part["CapacityUnits"]
            if model.name == "Query":
                units = max(units, _EMPTY_QUERY)
            self._add(self._reads if model.name in _READS else self._writes, part["TableName"], units)

    def _note_missed(self, batch: Mapping[str, Any], parsed: Mapping[str, Any]) -> None:
        for table, wanted in batch.items():
            unread = parsed.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
            missed = len(wanted["Keys"]) - len(unread) - len(parsed.get("Responses", {}).get(table, []))
            self._add(self._reads, table, missed * _MISSED * (2 if wanted.get("ConsistentRead") else 1))

    def _add(self, to: dict[str, float], table: str, units: float) -> None:
        with self._lock:
            to[table] += units
