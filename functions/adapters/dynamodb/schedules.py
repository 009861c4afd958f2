"""Schedules on DynamoDB: definitions by tenant, and one state row each, so that a fire costs one write unit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.adapters.clients import TRIES, is_refused, patiently
from functions.adapters.dynamodb.schedule_rows import (
    SKIP,
    definition_key,
    ms_of,
    read_definition,
    read_state,
    read_sum,
    readable,
    sum_key,
    write_position,
    write_share,
    write_skip,
)
from functions.adapters.dynamodb.schedule_updates import Update, new_version, places_of, share_condition
from functions.domain.errors import Busy, ScheduleBusy
from functions.domain.schedules.due_fires import DueFires
from functions.domain.schedules.load import NO_LIMITS, Load, LoadLimits, Share
from functions.domain.schedules.record import encode_stored
from functions.domain.schedules.state import ASIDES_COUNT_FOR, Link, ScheduleState, SkipReason, Status
from functions.ports.ledger import Applied
from functions.ports.schedules import Behind, StatePage, StoredSchedule

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

TRIES_OF_SUMS = 24
"""Of a change that a request waits for, which meets all others of its tenant in one row: six seconds of pauses or so."""

_BATCH = 100


class DynamoDBScheduleStore:
    """Definitions {t: tenant, i: schedule id, v: version, s: status, d: definition, c: created, u: changed}.

    States {k, v: version, s: status, u: changed, n: note, q: cuts, p: position of the link, m: its nominal time,
    b: the fire before it, g: merged count, i: fires placed, r: rings at, l: last fires, h, hs: holder and since,
    y: version when created, w, ws: the one that waits and since, f: failures, o: misfires, x_…: skips by reason, z: the last,
    a, aa: how often it was set aside lately, and when last, e: its share, x: ttl}; instants
    in ms, the ttl in s. l is a ring: a fire's index says which place it takes.

    tries_of_sums: how often a change is made that meets others of its tenant in their sum.

    Sums of shares {k: `{tenant}#`, c: schedules, e: fires an hour}, among the states: no schedule has an empty id.
    """

    def __init__(self, client: DynamoDBClient, *, definitions: str, states: str, tries_of_sums: int = TRIES) -> None:
        self._client = client
        self._definitions = definitions
        self._states = states
        self._tries_of_sums = tries_of_sums

    def get(self, key: str) -> tuple[StoredSchedule | None, ScheduleState | None]:
        """Four read units or more: a transaction, because the two rows must be of one version."""
        wanted: Any = [
            {"Get": {"TableName": self._definitions, "Key": definition_key(key)}},
            {"Get": {"TableName": self._states, "Key": {"k": {"S": key}}}},
        ]
        try:
            found: Any = patiently(lambda: self._client.transact_get_items(TransactItems=wanted))["Responses"]
        except Busy:
            raise ScheduleBusy(key.partition("#")[2]) from None
        definition, state = (answer.get("Item") for answer in found)
        return definition and read_definition(definition), state and read_state(state)

    def definitions(self, keys: Sequence[str], *, consistent: bool = False) -> dict[str, StoredSchedule]:
        """Half a read unit for each 4 KB of a definition; twice that when it is consistent.

        One that a newer version has written is left out: it must not hold up the others, and the sweep comes back to it.
        """
        wanted = {key: definition_key(key) for key in keys}
        items = self._get_many(self._definitions, list(wanted.values()), consistent=consistent)
        found = (readable(read_definition, item) for item in items)
        return {stored.key: stored for stored in found if stored is not None}

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[StoredSchedule], bool]:
        """One Query."""
        condition, values = "t = :t", {":t": {"S": tenant}}
        if after:
            condition, values = "t = :t AND i > :after", values | {":after": {"S": after}}
        answer = self._client.query(
            TableName=self._definitions,
            KeyConditionExpression=condition,
            ExpressionAttributeValues=values,
            # One more: that a page is full does not say whether there is another.
            Limit=limit + 1,
            ConsistentRead=True,
        )
        items = answer["Items"]
        return [read_definition(item) for item in items[:limit]], len(items) > limit or "LastEvaluatedKey" in answer

    def state(self, key: str) -> ScheduleState | None:
        """One read unit."""
        answer = self._client.get_item(TableName=self._states, Key={"k": {"S": key}}, ConsistentRead=True)
        return read_state(answer["Item"]) if "Item" in answer else None

    def states(self, keys: Sequence[str]) -> dict[str, ScheduleState]:
        """Half a read unit a row."""
        items = self._get_many(self._states, [{"k": {"S": key}} for key in dict.fromkeys(keys)])
        read = {item["k"]["S"]: readable(read_state, item) for item in items}
        return {key: state for key, state in read.items() if state is not None}

    def scan(self, *, after: str | None, limit: int) -> StatePage:
        """Half a read unit for 4 KB of rows."""
        start: Any = {"ExclusiveStartKey": {"k": {"S": after}}} if after else {}
        answer = self._client.scan(TableName=self._states, Limit=limit, **start)
        last: Any = answer.get("LastEvaluatedKey")
        read = {item["k"]["S"]: readable(read_state, item) for item in answer["Items"]}
        return StatePage({key: state for key, state in read.items() if state is not None}, last and last["k"]["S"])

    def change(
        self,
        stored: StoredSchedule,
        state: ScheduleState,
        *,
        seen: ScheduleState | None,
        limits: LoadLimits = NO_LIMITS,
    ) -> bool:
        """A transaction: two write units for each KB of the two rows, and two more where its share changes.

        Those of one tenant that change shares are made one after another, each in its turn: they meet in the sum.
        """
        history = stored.schedule.history
        added = Load.of(state.share) - Load.of(seen.share if seen else None)
        tenant = stored.schedule.tenant
        items: Any = [
            self._definition_request(stored, state),
            self._state_request(stored.key, state, seen, history=history),
            *([self._sum_request(tenant, added, limits)] if added != Load() else ()),
        ]
        tries = self._tries_of_sums if added != Load() else TRIES
        try:
            patiently(lambda: self._client.transact_write_items(TransactItems=items), tries=tries)
        except Busy:
            raise ScheduleBusy(stored.schedule.schedule_id) from None
        except ClientError as error:
            if not is_refused(error):
                raise
            _, other, *sums = error.response.get("CancellationReasons", [{}, {}])
            if sums and sums[0].get("Code") == _REFUSED != other.get("Code"):
                limits.check(tenant, read_sum(sums[0].get("Item", {})), added)
            return False
        return True

    def load(self, tenant: str) -> Load:
        """One read unit."""
        answer = self._client.get_item(TableName=self._states, Key=sum_key(tenant), ConsistentRead=True)
        return read_sum(answer.get("Item", {}))

    def recount(self, key: str, share: Share | None, *, seen: ScheduleState) -> bool:
        """A transaction: two write units for each KB of the state, and two. Repeating it changes nothing."""
        update = Update()
        update.set_or_remove("e", write_share(share))
        update.names |= {"#v": "v", "#e": "e"}
        update.values[":version"] = {"N": str(seen.version)}
        condition = f"#v = :version AND {share_condition(update, seen)}"
        added = Load.of(share) - Load.of(seen.share)
        items: Any = [
            {"Update": self._request(key, update, condition=condition)},
            *([self._sum_request(key.partition("#")[0], added, NO_LIMITS)] if added != Load() else ()),
        ]
        try:
            patiently(lambda: self._client.transact_write_items(TransactItems=items))
        except ClientError as error:
            if is_refused(error):
                return False
            raise
        return True

    def advance(
        self, key: str, planned: DueFires, *, version: int, before: Link, alarm_at: datetime | None, history: int
    ) -> Applied | Behind:
        """One write unit, refused or not. Repeating it changes nothing."""
        update, places = Update(), places_of(history)
        update.set_link(planned.link)
        update.set_or_remove("r", ms_of(alarm_at) if alarm_at else None)
        if planned.kept:
            update.set("i", {"N": str(planned.kept[-1].index + 1)})
            for link in planned.kept[-places:]:
                update.set(f"l.{link.index % places}", ms_of(link.at))
        for reason, count in planned.skips.items():
            update.add(SKIP + reason, count)
        if planned.last_skip:
            update.set("z", {"S": write_skip(*planned.last_skip)})
        if planned.misfire_count:
            update.add("o", planned.misfire_count)
        update.names |= {"#v": "v", "#s": "s", "#p": "p"}
        update.values |= {
            ":version": {"N": str(version)},
            ":active": {"S": Status.ACTIVE},
            ":before": {"S": write_position(before)},
        }
        met = self._update(key, update, condition="#v = :version AND #s = :active AND #p = :before")
        return Applied() if met is _APPLIED else Behind(met)

    def take_slot(self, key: str, identity: str, *, seen: ScheduleState, now: datetime) -> bool:
        """One write unit, refused or not."""
        update = Update()
        update.set("h", {"S": identity})
        update.set("hs", ms_of(now))
        if seen.waiting == identity:
            update.remove("w", "ws")
        return self._take(key, "h", identity, seen.holder, update)

    def wait_for_slot(self, key: str, identity: str, *, seen: ScheduleState, now: datetime) -> bool:
        """One write unit, refused or not."""
        update = Update()
        update.set("w", {"S": identity})
        update.set("ws", ms_of(now))
        return self._take(key, "w", identity, seen.waiting, update)

    def note_skip(self, key: str, reason: SkipReason, *, fire_at: datetime) -> None:
        """One write unit."""
        update = Update()
        update.add(SKIP + reason, 1)
        update.set("z", {"S": write_skip(reason, fire_at)})
        self._update(key, update, condition="attribute_exists(k)")

    def note_failure(self, key: str, identity: str) -> int:
        """One write unit. A set: noting a run again does not count it twice."""
        try:
            answer = patiently(
                lambda: self._client.update_item(
                    TableName=self._states,
                    Key={"k": {"S": key}},
                    UpdateExpression="ADD f :identity",
                    ConditionExpression="attribute_exists(k)",
                    ExpressionAttributeValues={":identity": {"SS": [identity]}},
                    ReturnValues="ALL_NEW",
                )
            )
        except ClientError as error:
            if is_refused(error):
                return 0
            raise
        row: Mapping[str, Any] = answer["Attributes"]
        return len(row["f"]["SS"])

    def forget_failures(self, key: str) -> None:
        """One write unit."""
        update = Update()
        update.remove("f")
        self._update(key, update, condition="attribute_exists(k)")

    def note_aside(self, key: str, *, version: int, now: datetime) -> int:
        """A write unit, or two for the first of a while. Repeating it changes nothing."""
        further = "SET a = a + :one, aa = :now"
        lately = "v = :version AND aa > :since AND aa < :now"
        first, of_version = "SET a = :one, aa = :now", "v = :version AND (attribute_not_exists(aa) OR aa <= :since)"
        met: Mapping[str, Any] = {}
        for update, condition in ((further, lately), (first, of_version)):
            try:
                answer = patiently(
                    lambda update=update, condition=condition: self._client.update_item(
                        TableName=self._states,
                        Key={"k": {"S": key}},
                        UpdateExpression=update,
                        ConditionExpression=condition,
                        ExpressionAttributeValues={
                            ":one": {"N": "1"},
                            ":now": ms_of(now),
                            ":version": {"N": str(version)},
                            ":since": ms_of(now - ASIDES_COUNT_FOR),
                        },
                        ReturnValues="ALL_NEW",
                        ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    )
                )
            except ClientError as error:
                if not is_refused(error):
                    raise
                met = error.response.get("Item", {})
            else:
                return int(answer["Attributes"]["a"]["N"])
        # Noted by an earlier try of this very call, or of another version.
        return int(met["a"]["N"]) if "a" in met and met["v"]["N"] == str(version) else 0

    def _take(self, key: str, name: str, identity: str, seen: str, update: Update) -> bool:
        update.values[":mine"] = {"S": identity}
        condition = f"attribute_exists(k) AND (attribute_not_exists({name}) OR {name} = :mine)"
        if seen:
            update.values[":seen"] = {"S": seen}
            condition = f"{name} IN (:seen, :mine)"
        return self._update(key, update, condition=condition) is _APPLIED

    def _definition_request(self, stored: StoredSchedule, state: ScheduleState) -> Any:
        key = definition_key(stored.key)
        if state.status is Status.DELETED:
            # The condition of the state row is that of both.
            return {"Delete": {"TableName": self._definitions, "Key": key}}
        definition = json.dumps(encode_stored(stored.schedule), separators=(",", ":"), ensure_ascii=False)
        return {
            "Put": {
                "TableName": self._definitions,
                "Item": {
                    **key,
                    "v": {"N": str(stored.version)},
                    "s": {"S": stored.status},
                    "d": {"S": definition},
                    "c": ms_of(stored.created_at),
                    "u": ms_of(stored.changed_at),
                },
            }
        }

    def _state_request(self, key: str, state: ScheduleState, seen: ScheduleState | None, *, history: int) -> Any:
        update = new_version(state, seen, history=history)
        condition = "attribute_not_exists(k)"
        if seen is not None:
            update.names |= {"#v": "v", "#p": "p", "#e": "e"}
            update.values[":seen"] = {"N": str(seen.version)}
            condition = "#v = :seen AND attribute_not_exists(#p)"
            if seen.link is not None:
                update.values[":at"] = {"S": write_position(seen.link)}
                condition = "#v = :seen AND #p = :at"
            # What it counts for is given back once, whoever does it.
            condition += f" AND {share_condition(update, seen)}"
        return {"Update": self._request(key, update, condition=condition)}

    def _sum_request(self, tenant: str, added: Load, limits: LoadLimits) -> Any:
        values: dict[str, Any] = {":c": {"N": str(added.schedules)}, ":e": {"N": str(added.fires)}}
        conditions: list[str] = []
        for name, more, limit in (("c", added.schedules, limits.schedules), ("e", added.fires, limits.fires)):
            if more > 0 and limit != inf:
                values[f":most_{name}"] = {"N": str(int(limit) - more)}
                fits = f"{name} <= :most_{name}"
                # A tenant without a sum has none yet.
                conditions.append(f"(attribute_not_exists({name}) OR {fits})" if more <= limit else fits)
        return {
            "Update": {
                "TableName": self._states,
                "Key": sum_key(tenant),
                "UpdateExpression": "ADD c :c, e :e",
                "ExpressionAttributeValues": values,
                **({"ConditionExpression": " AND ".join(conditions)} if conditions else {}),
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        }

    def _request(self, key: str, update: Update, *, condition: str) -> Any:
        values = {"ExpressionAttributeValues": update.values} if update.values else {}
        return {
            "TableName": self._states,
            "Key": {"k": {"S": key}},
            "UpdateExpression": update.expression,
            "ConditionExpression": condition,
            **({"ExpressionAttributeNames": update.names} if update.names else {}),
            **values,
        }

    def _update(self, key: str, update: Update, *, condition: str) -> Any:
        """`_APPLIED`; or the state that it met, None where there is none."""
        request = self._request(key, update, condition=condition)
        try:
            patiently(lambda: self._client.update_item(**request, ReturnValuesOnConditionCheckFailure="ALL_OLD"))
        except ClientError as error:
            if not is_refused(error):
                raise
            met: Mapping[str, Any] | None = error.response.get("Item")
            return readable(read_state, met) if met else None
        return _APPLIED

    def _get_many(self, table: str, keys: Sequence[Any], *, consistent: bool = False) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        wanted = list(keys)
        while wanted:
            request: Any = {table: {"Keys": wanted[:_BATCH], "ConsistentRead": consistent}}
            answer = self._client.batch_get_item(RequestItems=request)
            found += answer["Responses"].get(table, [])
            unprocessed: Any = answer.get("UnprocessedKeys", {}).get(table, {})
            wanted = [*unprocessed.get("Keys", []), *wanted[_BATCH:]]
        return found


_APPLIED = object()
_REFUSED = "ConditionalCheckFailed"
