"""Schedules on DynamoDB: definitions by tenant, and one state row each, so that a fire costs one write unit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any

from functions.adapters.clients import TRIES, patiently
from functions.adapters.dynamodb.schedule_rows import (
    SKIP,
    definition_key,
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
from functions.adapters.dynamodb.table import Item, Table, Write, attributes, plain
from functions.domain.errors import Busy, ScheduleBusy
from functions.domain.schedules.asked_runs import AskedRun, write_asked
from functions.domain.schedules.due_fires import DueFires
from functions.domain.schedules.kept_runs import KeptRun, write_kept
from functions.domain.schedules.load import NO_LIMITS, Load, LoadLimits, Share
from functions.domain.schedules.record import encode_stored
from functions.domain.schedules.state import ASIDES_COUNT_FOR, Link, ScheduleState, SkipReason, Status
from functions.ports.ledger import Applied
from functions.ports.schedules import Behind, ScheduleAndState, ScheduleWrite, StatePage, StoredSchedule

TRIES_OF_SUMS = 24
"""Tries of a change that a request waits for, and that collides with all others of its tenant in one row: some six seconds."""

_READ_TOGETHER = 12
"""Schedules of two rows each. A transaction reads 100 rows
(https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactGetItems.html), but stand-ins for the store know the 25 of
earlier years."""

_MOST_BYTES = 3_000_000
"""Of what is written together. A transaction takes 4 MB:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html"""


@dataclass
class DynamoDBScheduleStore:
    """Definitions of schedules, and where they stand.

    Definitions {t: tenant, i: schedule id, v: version, s: status, d: definition, c: created, u: changed,
    q: the last conditional requests}.

    States {k, v: version, s: status, u: changed, n: note, q: cuts, p: position of the link, m: its nominal time,
    b: the fire before it, g: merged count, i: fires placed, r: when the alarm comes due, l: last fires, h, hs: holder and since,
    y: version when created, w, ws: the one that waits and since, f: failures, o: misfires, x_…: skips by reason, z: the last,
    a, aa: how often it was set aside lately, and when last, e: its share, j: runs that are kept, t: runs that were asked for,
    G0 to G40: gaps of this version by bucket, wn, wt: its fires that waited for an opening, and how long (ms), x: ttl}; instants
    in ms, the ttl in s. l is a ring: a fire's index says which place it takes.

    tries_of_sums: how often a change is tried that collides with others of its tenant in their sum.

    Sums of shares {k: `{tenant}#`, c: schedules, e: fires an hour}, among the states: no schedule has an empty id.
    """

    definition_table: Table
    state_table: Table
    tries_of_sums: int = TRIES

    def get(self, key: str) -> ScheduleAndState:
        """Four read units or more: a transaction, because the two rows must be of one version."""
        return self.get_many([key])[key]

    def get_many(self, keys: Sequence[str]) -> Mapping[str, ScheduleAndState]:
        """Four read units each, or more, in a transaction for each dozen."""
        found: dict[str, ScheduleAndState] = {}
        for first in range(0, len(keys), _READ_TOGETHER):
            found |= self._get_together(keys[first : first + _READ_TOGETHER])
        return found

    def _get_together(self, keys: Sequence[str]) -> dict[str, ScheduleAndState]:
        wanted: Any = [
            {"Get": {"TableName": table.name, "Key": attributes(row)}}
            for key in keys
            for table, row in ((self.definition_table, definition_key(key)), (self.state_table, {"k": key}))
        ]
        client = self.state_table.client
        try:
            found: Any = patiently(lambda: client.transact_get_items(TransactItems=wanted))["Responses"]
        except Busy:
            raise ScheduleBusy(keys[0].partition("#")[2]) from None
        rows = [plain(answer.get("Item", {})) for answer in found]
        return {
            key: (read_definition(definition) if definition else None, read_state(state) if state else None)
            for key, definition, state in zip(keys, rows[::2], rows[1::2], strict=True)
        }

    def definitions(self, keys: Sequence[str], *, consistent: bool = False) -> dict[str, StoredSchedule]:
        """Half a read unit for each 4 KB of a definition; twice that when it is consistent.

        One that a newer version has written is left out: it must not hold up the others, and the sweep comes back to it.
        """
        items = self.definition_table.get_many(map(definition_key, keys), is_consistent=consistent)
        found = (readable(read_definition, item) for item in items)
        return {stored.key: stored for stored in found if stored is not None}

    def page(self, tenant: str, *, after: str, limit: int) -> tuple[list[StoredSchedule], bool]:
        """One Query."""
        start = {"t": tenant, "i": after} if after else None
        items, has_more = self.definition_table.page("t = :t", limit=limit, after=start, t=tenant)
        return [read_definition(item) for item in items], has_more

    def state(self, key: str) -> ScheduleState | None:
        """One read unit."""
        item = self.state_table.get({"k": key})
        return read_state(item) if item else None

    def states(self, keys: Sequence[str]) -> dict[str, ScheduleState]:
        """Half a read unit a row."""
        return _states_of(self.state_table.get_many({"k": key} for key in dict.fromkeys(keys)))

    def scan(self, *, after: str | None, limit: int) -> StatePage:
        """Half a read unit for 4 KB of rows."""
        found = self.state_table.scan(limit=limit, after={"k": after} if after else None)
        return StatePage(_states_of(found.items), found.last.get("k"))

    def change(
        self, new: StoredSchedule, state: ScheduleState, *, seen: ScheduleState | None, limits: LoadLimits = NO_LIMITS
    ) -> bool:
        """A transaction: two write units for each KB of the two rows, and two more where its share changes.

        Those of one tenant that change shares are made one after another, each in its turn: they collide in the sum.
        """
        history = new.schedule.history
        added = Load.of(state.share) - Load.of(seen.share if seen else None)
        tenant = new.schedule.tenant
        writes = [
            self._definition_write(new, state),
            self._state_write(new.key, state, seen, history=history),
            *([self._sum_write(tenant, added, limits)] if added != Load() else ()),
        ]
        try:
            answer = self.state_table.transact(*writes, tries=self.tries_of_sums if added != Load() else TRIES)
        except Busy:
            raise ScheduleBusy(new.schedule.schedule_id) from None
        _, other, *sums = answer.found or (None, None)
        if other is None and sums and sums[0] is not None:
            limits.check(tenant, read_sum(sums[0]), added)
        return answer.is_done

    def change_together(self, writes: Sequence[ScheduleWrite]) -> bool:
        """A transaction: two write units for each KB of the rows of each, and two for all where their shares change."""
        if sum(_size_of(each.new) for each in writes) > _MOST_BYTES:
            return False
        tenant = writes[0].new.schedule.tenant
        shares = [Load.of(each.state.share) - Load.of(each.seen.share if each.seen else None) for each in writes]
        added = sum(shares, Load())
        parts = [
            part
            for each in writes
            for part in (
                self._definition_write(each.new, each.state),
                self._state_write(each.new.key, each.state, each.seen, history=each.new.schedule.history),
            )
        ]
        if added != Load():
            parts.append(self._sum_write(tenant, added, writes[0].limits))
        try:
            return self.state_table.transact(*parts, tries=self.tries_of_sums if added != Load() else TRIES).is_done
        except Busy:
            raise ScheduleBusy(writes[0].new.schedule.schedule_id) from None

    def load(self, tenant: str) -> Load:
        """One read unit."""
        return read_sum(self.state_table.get(sum_key(tenant)))

    def recount(self, key: str, share: Share | None, *, seen: ScheduleState) -> bool:
        """A transaction: two write units for each KB of the state, and two. Repeating it changes nothing."""
        update = Update()
        update.set_or_remove("e", write_share(share))
        update.names |= {"#v": "v", "#e": "e"}
        update.values["version"] = seen.version
        condition = f"#v = :version AND {share_condition(update, seen)}"
        added = Load.of(share) - Load.of(seen.share)
        writes = [
            {"Update": self._request(key, update, condition=condition)},
            *([self._sum_write(key.partition("#")[0], added, NO_LIMITS)] if added != Load() else ()),
        ]
        return self.state_table.transact(*writes, tries=TRIES).is_done

    def advance(
        self, key: str, decided: DueFires, *, version: int, before: Link, alarm_at: datetime | None, history: int
    ) -> Applied | Behind:
        """One write unit, refused or not. Repeating it changes nothing."""
        update, places = Update(), places_of(history)
        update.set_link(decided.link)
        update.set_or_remove("r", alarm_at)
        if decided.kept:
            update.set("i", decided.kept[-1].index + 1)
            for link in decided.kept[-places:]:
                update.set(f"l.{link.index % places}", link.at)
        for reason, count in decided.skips.items():
            update.add(SKIP + reason, count)
        if decided.last_skip:
            update.set("z", write_skip(*decided.last_skip))
        if decided.misfire_count:
            update.add("o", decided.misfire_count)
        update.add_figures(decided.figures)
        update.names |= {"#v": "v", "#s": "s", "#p": "p"}
        update.values |= {"version": version, "active": Status.ACTIVE, "before": write_position(before)}
        answer = self._update(key, update, condition="#v = :version AND #s = :active AND #p = :before")
        if answer.is_done:
            return Applied()
        return Behind(readable(read_state, answer.item) if answer.item else None)

    def take_slot(self, key: str, identity: str, *, seen: ScheduleState, now: datetime) -> bool:
        """One write unit, refused or not."""
        update = Update()
        update.set("h", identity)
        update.set("hs", now)
        if seen.waiting == identity:
            update.remove("w", "ws")
        return self._take(key, "h", identity, seen.holder, update)

    def wait_for_slot(self, key: str, identity: str, *, seen: ScheduleState, now: datetime) -> bool:
        """One write unit, refused or not."""
        update = Update()
        update.set("w", identity)
        update.set("ws", now)
        return self._take(key, "w", identity, seen.waiting, update)

    def note_skip(self, key: str, reason: SkipReason, *, fire_at: datetime) -> None:
        """One write unit."""
        update = Update()
        update.add(SKIP + reason, 1)
        update.set("z", write_skip(reason, fire_at))
        self._update(key, update, condition="attribute_exists(k)")

    def note_failure(self, key: str, identity: str) -> int:
        """One write unit. A set: noting a run again does not count it twice."""
        answer = self.state_table.update(
            {"k": key},
            update="ADD f :identity",
            condition="attribute_exists(k)",
            returns="ALL_NEW",
            tries=TRIES,
            identity=frozenset({identity}),
        )
        return len(answer.item["f"]) if answer.is_done else 0

    def forget_failures(self, key: str) -> None:
        """One write unit."""
        self.state_table.update({"k": key}, update="REMOVE f", condition="attribute_exists(k)", tries=TRIES)

    def keep_runs(self, key: str, kept: tuple[KeptRun, ...], *, seen: ScheduleState) -> bool:
        """One write unit for each KB of the state row, refused or not."""
        return self._replace(key, "j", write_kept(seen.kept_runs), write_kept(kept), born=seen.born)

    def remember_asked(self, key: str, asked: tuple[AskedRun, ...], *, seen: ScheduleState) -> bool:
        """One write unit for each KB of the state row, refused or not."""
        return self._replace(key, "t", write_asked(seen.asked_runs), write_asked(asked), born=seen.born)

    def note_aside(self, key: str, *, version: int, now: datetime) -> int:
        """A write unit, or two for the first of a while. Repeating it changes nothing."""
        further = "SET a = a + :one, aa = :now"
        lately = "v = :version AND aa > :since AND aa < :now"
        first, of_version = "SET a = :one, aa = :now", "v = :version AND (attribute_not_exists(aa) OR aa <= :since)"
        found: Item = {}
        for update, condition in ((further, lately), (first, of_version)):
            answer = self.state_table.update(
                {"k": key},
                update=update,
                condition=condition,
                returns="ALL_NEW",
                tries=TRIES,
                one=1,
                now=now,
                version=version,
                since=now - ASIDES_COUNT_FOR,
            )
            if answer.is_done:
                return answer.item["a"]
            found = answer.item
        # Noted by an earlier try of this very call, or of another version.
        return found["a"] if "a" in found and found["v"] == version else 0

    def _replace(self, key: str, name: str, was: str, text: str, *, born: int) -> bool:
        update = Update()
        update.set_or_remove(name, text or None)
        update.names |= {f"#{name}": name, "#y": "y"}
        update.values["born"] = born
        condition = f"#y = :born AND attribute_not_exists(#{name})"
        if was:
            update.values["was"] = was
            condition = f"#y = :born AND #{name} = :was"
        return self._update(key, update, condition=condition).is_done

    def _take(self, key: str, name: str, identity: str, seen: str, update: Update) -> bool:
        update.values["mine"] = identity
        condition = f"attribute_exists(k) AND (attribute_not_exists({name}) OR {name} = :mine)"
        if seen:
            update.values["seen"] = seen
            condition = f"{name} IN (:seen, :mine)"
        return self._update(key, update, condition=condition).is_done

    def _definition_write(self, stored: StoredSchedule, state: ScheduleState) -> Any:
        key = definition_key(stored.key)
        if state.status is Status.DELETED:
            # The condition of the state row is that of both.
            return {"Delete": self.definition_table.delete_request(key)}
        item = {
            **key,
            "v": stored.version,
            "s": stored.status,
            "d": json.dumps(encode_stored(stored.schedule), separators=(",", ":"), ensure_ascii=False),
            "c": stored.created_at,
            "u": stored.changed_at,
            **({"q": " ".join(stored.requests)} if stored.requests else {}),
        }
        return {"Put": self.definition_table.put_request(item)}

    def _state_write(self, key: str, state: ScheduleState, seen: ScheduleState | None, *, history: int) -> Any:
        update = new_version(state, seen, history=history)
        condition = "attribute_not_exists(k)"
        if seen is not None:
            update.names |= {"#v": "v", "#p": "p", "#e": "e"}
            update.values["seen"] = seen.version
            condition = "#v = :seen AND attribute_not_exists(#p)"
            if seen.link is not None:
                update.values["at"] = write_position(seen.link)
                condition = "#v = :seen AND #p = :at"
            # What it counts for is given back once, whoever does it.
            condition += f" AND {share_condition(update, seen)}"
        return {"Update": self._request(key, update, condition=condition)}

    def _sum_write(self, tenant: str, added: Load, limits: LoadLimits) -> Any:
        values: dict[str, Any] = {"c": added.schedules, "e": added.fires}
        conditions: list[str] = []
        for name, more, limit in (("c", added.schedules, limits.schedules), ("e", added.fires, limits.fires)):
            if more > 0 and limit != inf:
                values[f"most_{name}"] = int(limit) - more
                fits = f"{name} <= :most_{name}"
                # A tenant without a sum has none yet.
                conditions.append(f"(attribute_not_exists({name}) OR {fits})" if more <= limit else fits)
        request = self.state_table.update_request(
            sum_key(tenant), update="ADD c :c, e :e", condition=" AND ".join(conditions), **values
        )
        return {"Update": request}

    def _request(self, key: str, update: Update, *, condition: str) -> Any:
        return self.state_table.update_request({"k": key}, **update.asked, condition=condition)

    def _update(self, key: str, update: Update, *, condition: str) -> Write:
        return self.state_table.update({"k": key}, tries=TRIES, **update.asked, condition=condition)


def _size_of(stored: StoredSchedule) -> int:
    """Bytes of what grows in a definition, about."""
    return 2_000 + len((stored.schedule.job.payload.text or "").encode())


def _states_of(items: Sequence[Item]) -> dict[str, ScheduleState]:
    read = {item["k"]: readable(read_state, item) for item in items}
    return {key: state for key, state in read.items() if state is not None}
