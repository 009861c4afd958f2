"""Operations on DynamoDB: a row of the tenants table each, and one more for as long as it is open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from functions.adapters.clients import TRIES
from functions.adapters.dynamodb.table import Item, Table, Write, instant_of
from functions.domain.errors import Undecodable
from functions.domain.instants import to_ms, to_seconds
from functions.domain.operations.operation import OPERATION_LIFE, Operation, OperationState
from functions.domain.operations.record import OperationRecord, decode_operation, encode_operation

OPEN_LIFE = timedelta(days=60)
"""How long an open operation is kept after its last turn."""

_ITEM = "operation#"
OPEN = "~operations"
"""The partition of the open ones: no tenant can be called so."""

_IS_OPEN = "s IN (:waiting, :running)"
_OPEN_STATES: Item = {"waiting": OperationState.WAITING, "running": OperationState.RUNNING}


@dataclass
class DynamoDBOperationStore:
    """{t: tenant, i: `operation#{id}`, s: state, j: asked, g: progress, o: owner, l: lease until, c: stop requested, x: ttl}.

    The lease in ms, the ttl in s. And while it is open {t: `~operations`, i: `{created_ms:013d}#{tenant}#{id}`}: no tenant
    can be called so. That row is written with the operation, and removed with what ends it.
    """

    table: Table

    def create(self, operation: Operation) -> Operation | None:
        """A transaction: two write units for each KB of what is asked, and two."""
        record = encode_operation(operation)
        row = {
            **_key(operation.tenant, operation.operation_id),
            "s": operation.state,
            "j": record.asked,
            "g": record.progress,
            "x": to_seconds(operation.created_at + OPEN_LIFE),
        }
        created = self.table.transact(
            {"Put": self.table.put_request(row, condition="attribute_not_exists(t)")},
            {"Put": self.table.put_request(_open_key(operation))},
            tries=TRIES,
        )
        return None if created.is_done else _read(created.item)

    def get(self, tenant: str, operation_id: str) -> Operation | None:
        """A read unit for each 4 KB. Raises Undecodable."""
        item = self.table.get(_key(tenant, operation_id))
        return _read(item) if item else None

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[Operation], bool]:
        """One Query. Raises Undecodable."""
        start = _key(tenant, after) if after else None
        items, has_more = self.table.page(
            "t = :t AND begins_with(i, :item)", limit=limit, after=start, t=tenant, item=_ITEM
        )
        return [_read(item) for item in items], has_more

    def open(self, *, limit: int) -> list[tuple[str, str]]:
        """One Query."""
        found = self.table.query("t = :open", limit=limit, is_consistent=True, open=OPEN)
        parts = (item["i"].split("#") for item in found.items)
        return [(tenant, operation_id) for _, tenant, operation_id in parts]

    def take(
        self, tenant: str, operation_id: str, *, owner: str, lease_until: datetime, now: datetime, skew: timedelta
    ) -> Operation | None:
        """One write unit for each KB of the row, refused or not. Repeating it changes nothing. Raises Undecodable."""
        taken = self._update(
            _key(tenant, operation_id),
            update="SET s = :running, o = :owner, l = :lease, x = :ttl",
            condition=f"{_IS_OPEN} AND (attribute_not_exists(l) OR l < :over OR o = :owner)",
            owner=owner,
            lease=lease_until,
            over=now - skew,
            ttl=to_seconds(now + OPEN_LIFE),
        )
        return _answer(taken)

    def save(self, operation: Operation, *, lease_until: datetime | None) -> Operation | None:
        """One write unit for each KB of the row, refused or not. Repeating it changes nothing, however late."""
        update, condition, values = "SET s = :state, g = :progress REMOVE l", f"{_IS_OPEN} AND o = :owner", {}
        if lease_until is not None:
            # A lease only grows until it is given back: an earlier step that lands late is refused.
            update, condition = "SET s = :state, g = :progress, l = :lease", f"{condition} AND l <= :lease"
            values = {"lease": lease_until}
        key = _key(operation.tenant, operation.operation_id)
        return _answer(self._update(key, update=update, condition=condition, **_progress(operation), **values))

    def finish(self, operation: Operation) -> bool:
        """A transaction: two write units for each KB of the row, and two. Repeating it changes nothing."""
        assert operation.ended_at is not None  # it is over
        update = self.table.update_request(
            _key(operation.tenant, operation.operation_id),
            update="SET s = :state, g = :progress, x = :ttl REMOVE l",
            condition=f"({_IS_OPEN} OR s = :state) AND o = :owner",
            ttl=to_seconds(operation.ended_at + OPERATION_LIFE),
            **_progress(operation),
            **_OPEN_STATES,
        )
        delete = self.table.delete_request(_open_key(operation))
        return self.table.transact({"Update": update}, {"Delete": delete}, tries=TRIES).is_done

    def stop(self, tenant: str, operation_id: str) -> Operation | None:
        """One write unit for each KB of the row, refused or not. Repeating it changes nothing. Raises Undecodable."""
        stopped = self._update(_key(tenant, operation_id), update="SET c = :yes", condition=_IS_OPEN, yes=True)
        return _read(stopped.item) if stopped.item else None

    def _update(self, key: Item, **asked: Any) -> Write:
        return self.table.update(key, returns="ALL_NEW", tries=TRIES, **asked, **_OPEN_STATES)


def _answer(write: Write) -> Operation | None:
    """The row as it is then; None when it may not be changed."""
    return _read(write.item) if write.is_done else None


def _progress(operation: Operation) -> Item:
    return {
        "owner": operation.owner,
        "state": operation.state,
        "progress": encode_operation(operation).progress,
    }


def _key(tenant: str, operation_id: str) -> Item:
    return {"t": tenant, "i": _ITEM + operation_id}


def _open_key(operation: Operation) -> Item:
    created_ms = to_ms(operation.created_at)
    return {"t": OPEN, "i": f"{created_ms:013d}#{operation.tenant}#{operation.operation_id}"}


def _read(item: Item) -> Operation:
    try:
        tenant, operation_id = item["t"], item["i"].removeprefix(_ITEM)
        record = OperationRecord(asked=item["j"], progress=item["g"])
        state = OperationState(item["s"])
    except (KeyError, ValueError) as error:
        raise Undecodable(f"not an operation: {error!r}") from error
    return replace(
        decode_operation(record, tenant=tenant, operation_id=operation_id),
        state=state,
        owner=item.get("o", ""),
        lease_until=instant_of(item, "l"),
        stop_requested="c" in item,
    )
