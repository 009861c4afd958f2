"""One table of DynamoDB: requests and answers in plain values.

Those are texts, whole numbers, bytes, True and False, instants (kept in ms, and read as numbers), sets of texts, and maps of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import REFUSED, is_refused, patiently
from functions.domain.instants import from_ms, to_ms

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Item = Mapping[str, Any]
"""A row, a key or the values of an expression by their names, in plain values; empty where there is no such row."""

_READ_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Write:
    """What has come of a write. item: what it returns or, where it was refused, what it found.

    found: of a refused transaction, what each of its parts found; None for one that was not refused itself.
    """

    is_done: bool
    item: Item = field(default_factory=dict[str, Any])
    found: Sequence[Item | None] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What a query has found. last: the key behind which it continues; empty when nothing follows."""

    items: list[Item]
    last: Item


@dataclass(frozen=True, slots=True)
class Table:
    """Its requests.

    tries: how often a write is made that collides with a transaction on its row. It raises Busy after the last; one
    that is made once raises the error itself.

    What a keyword names that is not described is a value of the expressions: `owner` is `:owner` in them.
    """

    client: DynamoDBClient
    name: str

    def get(self, key: Item, *, is_consistent: bool = True) -> Item:
        """One read unit for each 4 KB, and half of that when it is not consistent."""
        answer = self.client.get_item(TableName=self.name, Key=attributes(key), ConsistentRead=is_consistent)
        return plain(answer.get("Item", {}))

    def get_some(self, keys: Iterable[Item]) -> list[Item]:
        """In one request: those that exist, but for what the store has left unread. Half a read unit for each 4 KB of a row."""
        request: Any = {self.name: {"Keys": [attributes(key) for key in keys]}}
        return self._found_among(self.client.batch_get_item(RequestItems=request))

    def get_many(self, keys: Iterable[Item], *, is_consistent: bool = False) -> list[Item]:
        """Half a read unit for each 4 KB of a row, and twice that when it is consistent. Those that exist."""
        found: list[Item] = []
        wanted = [attributes(key) for key in keys]
        while wanted:
            request: Any = {self.name: {"Keys": wanted[:_READ_AT_ONCE], "ConsistentRead": is_consistent}}
            answer = self.client.batch_get_item(RequestItems=request)
            found += self._found_among(answer)
            unprocessed: Any = answer.get("UnprocessedKeys", {}).get(self.name, {})
            wanted = [*unprocessed.get("Keys", []), *wanted[_READ_AT_ONCE:]]
        return found

    def query(
        self,
        condition: str,
        /,
        *,
        limit: int | None = None,
        after: Item | None = None,
        only: str = "",
        is_consistent: bool = False,
        newest_first: bool = False,
        **values: Any,
    ) -> Found:
        """One Query. after: the key behind which it begins. only: the attributes that are wanted."""
        request: dict[str, Any] = {
            "TableName": self.name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": _named(values),
            "ConsistentRead": is_consistent,
            "ScanIndexForward": not newest_first,
        }
        answer = self.client.query(**request, **_page(limit=limit, after=after, only=only))
        return _found(answer)

    def query_all(self, condition: str, /, **asked: Any) -> Iterator[Item]:
        """As many Queries as that takes."""
        found = self.query(condition, **asked)
        yield from found.items
        while found.last:
            found = self.query(condition, after=found.last, **asked)
            yield from found.items

    def page(self, condition: str, /, *, limit: int, **asked: Any) -> tuple[list[Item], bool]:
        """One Query, consistent; and whether there are more."""
        # One more: that a page is full does not say whether there is another.
        found = self.query(condition, limit=limit + 1, is_consistent=True, **asked)
        return found.items[:limit], len(found.items) > limit or bool(found.last)

    def scan(self, *, limit: int, after: Item | None, only: str = "", condition: str = "", **values: Any) -> Found:
        """Half a read unit for 4 KB of rows, whatever the condition leaves of them."""
        kept = {"FilterExpression": condition, "ExpressionAttributeValues": _named(values)} if condition else {}
        return _found(self.client.scan(TableName=self.name, **kept, **_page(limit=limit, after=after, only=only)))

    def put_many(self, items: Iterable[Item]) -> list[Item]:
        """In one request: those that the store has left unwritten. One write unit for each KB."""
        return self._write_many("PutRequest", "Item", items)

    def delete_many(self, keys: Iterable[Item]) -> list[Item]:
        """In one request: those that the store has left undeleted. One write unit for each KB."""
        return self._write_many("DeleteRequest", "Key", keys)

    def put(self, item: Item, /, *, condition: str = "", tries: int = 1, **values: Any) -> Write:
        """One write unit for each KB, refused or not."""
        return _sent(self.client.put_item, self.put_request(item, condition=condition, **values), tries=tries)

    def update(self, key: Item, /, *, returns: str = "NONE", tries: int = 1, **asked: Any) -> Write:
        """One write unit for each KB of the row, refused or not. returns: as DynamoDB names it. asked: as `update_request`."""
        request = self.update_request(key, **asked) | {"ReturnValues": returns}
        return _sent(self.client.update_item, request, tries=tries)

    def delete(self, key: Item, /, *, condition: str = "", returns: str = "NONE", **values: Any) -> Write:
        """One write unit for each KB of the row, refused or not, whether there is one or not."""
        request = self.delete_request(key, condition=condition, **values)
        return _sent(self.client.delete_item, request | {"ReturnValues": returns})

    def transact(self, *parts: Mapping[str, Any], tries: int = 1) -> Write:
        """All of these or none of them: two write units for each KB of each row."""
        return _sent(self.client.transact_write_items, {"TransactItems": list(parts)}, tries=tries)

    def put_request(self, item: Item, /, *, condition: str = "", **values: Any) -> dict[str, Any]:
        """A put, to be a part of a transaction."""
        return {"TableName": self.name, "Item": attributes(item)} | _conditional(condition, values)

    def delete_request(self, key: Item, /, *, condition: str = "", **values: Any) -> dict[str, Any]:
        """A delete, to be a part of a transaction."""
        return {"TableName": self.name, "Key": attributes(key)} | _conditional(condition, values)

    def update_request(
        self,
        key: Item,
        /,
        *,
        update: str,
        condition: str = "",
        names: Mapping[str, str] | None = None,
        **values: Any,
    ) -> dict[str, Any]:
        """An update, to be a part of a transaction. names: those of attributes, where an expression cannot have them."""
        request = {"TableName": self.name, "Key": attributes(key), "UpdateExpression": update}
        named = {"ExpressionAttributeNames": names} if names else {}
        return request | named | _conditional(condition, values)

    def _write_many(self, kind: str, what: str, values: Iterable[Item]) -> list[Item]:
        requests: Any = [{kind: {what: attributes(value)}} for value in values]
        answer: Any = self.client.batch_write_item(RequestItems={self.name: requests})
        return [plain(left[kind][what]) for left in answer.get("UnprocessedItems", {}).get(self.name, [])]

    def _found_among(self, answer: Any) -> list[Item]:
        return [plain(item) for item in answer["Responses"].get(self.name, [])]


def attributes(values: Item) -> dict[str, Any]:
    """Plain values as DynamoDB takes them."""
    return {name: _attribute(value) for name, value in values.items()}


def plain(item: Mapping[str, Any]) -> dict[str, Any]:
    """What DynamoDB gives, as plain values."""
    return {name: _plain(*attribute.items()) for name, attribute in item.items()}


def instant_of(item: Item, name: str) -> datetime | None:
    """The instant of this name, if there is one."""
    return from_ms(item[name]) if name in item else None


def _attribute(value: Any) -> dict[str, Any]:
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int():
            return {"N": str(value)}
        case datetime():
            return {"N": str(to_ms(value))}
        case bytes():
            return {"B": value}
        case frozenset():
            return {"SS": sorted(value)}
        case Mapping():
            return {"M": attributes(value)}
        case _:
            raise TypeError(f"no attribute is a {type(value).__name__}")


def _plain(attribute: tuple[str, Any]) -> Any:
    """As it is where a newer version has written what this one does not."""
    match attribute:
        case "N", value if value.lstrip("-").isdigit():
            return int(value)
        case "SS", value:
            return frozenset(value)
        case "M", value:
            return plain(value)
        case _, value:
            return value


def _named(values: Item) -> dict[str, Any]:
    return attributes({f":{name}": value for name, value in values.items()})


def _conditional(condition: str, values: Item) -> dict[str, Any]:
    request: dict[str, Any] = {"ExpressionAttributeValues": _named(values)} if values else {}
    if condition:
        request |= {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    return request


def _page(*, limit: int | None, after: Item | None, only: str) -> Any:
    asked = {"Limit": limit, "ExclusiveStartKey": after and attributes(after), "ProjectionExpression": only}
    return {name: value for name, value in asked.items() if value}


def _found(answer: Any) -> Found:
    return Found([plain(item) for item in answer["Items"]], plain(answer.get("LastEvaluatedKey", {})))


def _sent(call: Callable[..., Any], request: Mapping[str, Any], *, tries: int = 1) -> Write:
    try:
        answer = call(**request) if tries == 1 else patiently(lambda: call(**request), tries=tries)
    except ClientError as error:
        if not is_refused(error):
            raise
        # That of a single write stands in the answer itself.
        parts: Any = error.response.get("CancellationReasons", [{"Code": REFUSED, **error.response}])
        found = [plain(part.get("Item", {})) if part.get("Code") == REFUSED else None for part in parts]
        return Write(is_done=False, item=next(filter(None, found), {}), found=found)
    return Write(is_done=True, item=plain(answer.get("Attributes", {})))
