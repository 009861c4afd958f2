"""Tables on DynamoDB's own engine, and what they hold: read again, row by row, where something was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from functions.adapters.dynamodb.table import Item, Table, plain
from functions.adapters.dynamodb.tables import TableSchema
from functions.domain.instants import to_seconds

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Key = tuple[str, ...]

_MOST_WRITTEN = 25


def create_table(client: DynamoDBClient, schema: TableSchema, *, name: str | None = None) -> None:
    """Create an empty table; name: another than its own."""
    keys = [key for key in (schema.partition_key, schema.sort_key) if key is not None]
    description: Any = {
        "KeySchema": [
            {"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
        ],
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in keys],
    }
    client.create_table(TableName=name or schema.name, BillingMode="PAY_PER_REQUEST", **description)


@dataclass
class WatchedTable:
    """One table. listeners: called with the key of each row that has changed, and the row, None where there is none any more.

    Nobody else writes to it, so that a row that was not named in a request since it was read is as it was.
    """

    stored: Table
    schema: TableSchema
    listeners: list[Callable[[Key, Item | None], None]] = field(default_factory=list)
    _items: dict[Key, Item] = field(default_factory=dict)
    _touched: dict[Key, None] = field(default_factory=dict)

    def create(self) -> None:
        """It is empty, and in memory."""
        create_table(self.stored.client, self.schema, name=self.stored.name)

    def touch(self, item: Item) -> None:
        """A request names this key, or this row."""
        self._touched[self._key_of(item)] = None

    def look(self) -> Mapping[Key, Item]:
        """All rows, as of now."""
        touched, self._touched = list(self._touched), {}
        found = self.stored.get_many(map(self._key, touched), is_consistent=True)
        items = {self._key_of(item): item for item in found}
        for key in touched:
            self._note(key, items.get(key))
        return self._items

    def scan(self) -> dict[Key, Item]:
        """All rows, as the engine has them."""
        pages = self.stored.client.get_paginator("scan").paginate(TableName=self.stored.name, ConsistentRead=True)
        items = [plain(item) for page in pages for item in page["Items"]]
        return {self._key_of(item): item for item in items}

    def expire(self, now: datetime) -> None:
        """What the ttl does, in the end. The engine does it by the clock of its machine, where no time passes."""
        ttl = self.schema.ttl_attribute
        if ttl is None:
            return
        over = [key for key, item in self.look().items() if ttl in item and item[ttl] <= to_seconds(now)]
        for start in range(0, len(over), _MOST_WRITTEN):
            self.stored.delete_many(map(self._key, over[start : start + _MOST_WRITTEN]))

    @property
    def _key_names(self) -> list[str]:
        return [name for name in (self.schema.partition_key, self.schema.sort_key) if name is not None]

    def _key(self, key: Key) -> Item:
        return dict(zip(self._key_names, key, strict=True))

    def _key_of(self, item: Item) -> Key:
        return tuple(item[name] for name in self._key_names)

    def _note(self, key: Key, item: Item | None) -> None:
        if item == self._items.get(key):
            return
        if item is None:
            del self._items[key]
        else:
            self._items[key] = item
        for listener in self.listeners:
            listener(key, item)


class Tables:
    """The tables of one world, by the names of their schemas, each with a prefix of its own."""

    def __init__(self, client: DynamoDBClient, schemas: Sequence[TableSchema], *, prefix: str) -> None:
        self._client = client
        self._tables = {
            schema.name: WatchedTable(Table(client, f"{prefix}-{schema.name}"), schema) for schema in schemas
        }
        self._by_name = {table.stored.name: table for table in self._tables.values()}
        self._die: Callable[[], NoReturn] | None = None
        self._has_written = False
        for table in self._tables.values():
            table.create()
        client.meta.events.register("before-parameter-build.dynamodb", self._hear)

    def __getitem__(self, schema: TableSchema) -> WatchedTable:
        return self._tables[schema.name]

    def __iter__(self) -> Iterator[WatchedTable]:
        return iter(self._tables.values())

    def drop(self) -> None:
        """There are none any more; what they held can be looked at still.

        Raises AssertionError when a row is not as it was last looked at: then all that was judged by it is worth nothing.
        """
        self._client.meta.events.unregister("before-parameter-build.dynamodb", self._hear)
        for table in self:
            assert table.look() == table.scan(), f"rows of {table.stored.name} were written that no request has named"
            self._client.delete_table(TableName=table.stored.name)

    def cut_short(self, make: Callable[[], Any], die: Callable[[], NoReturn]) -> Any:
        """Make a call of an adapter; whoever makes it dies before its second write, if it comes to that."""
        self._die, self._has_written = die, False
        try:
            return make()
        finally:
            self._die = None

    def _hear(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        """Whatever a request may write is touched, whether it is refused or not."""
        written = [(name, item) for name, item in _written(model.name, params) if name in self._by_name]
        if written and self._die is not None:
            if self._has_written:
                self._die()
            self._has_written = True
        for name, item in written:
            self._by_name[name].touch(plain(item))


def _written(call: str, params: Mapping[str, Any]) -> Iterator[tuple[str, Item]]:
    """The table, and the row or its key, of each write of a request."""
    if call in ("PutItem", "UpdateItem", "DeleteItem"):
        yield params["TableName"], params["Item" if call == "PutItem" else "Key"]
    elif call == "TransactWriteItems":
        for write in params["TransactItems"]:
            for kind, request in write.items():
                if kind != "ConditionCheck":
                    yield request["TableName"], request["Item" if kind == "Put" else "Key"]
    elif call == "BatchWriteItem":
        for name, writes in params["RequestItems"].items():
            for write in writes:
                put = write.get("PutRequest")
                yield name, put["Item"] if put else write["DeleteRequest"]["Key"]
