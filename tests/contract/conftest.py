"""Every implementation of a port: the fake, the AWS adapter on moto, and for the stores AWS's own engine too."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from moto import mock_aws

from functions.adapters import clients
from functions.adapters.dynamodb import tables
from functions.adapters.dynamodb.breakers import DynamoDBBreakerStore
from functions.adapters.dynamodb.collections import DynamoDBCollectionStore
from functions.adapters.dynamodb.day_marks import DynamoDBDayMarks
from functions.adapters.dynamodb.dead_letters import MARKS, DynamoDBDeadLetters
from functions.adapters.dynamodb.deletions import DynamoDBDeletionStore
from functions.adapters.dynamodb.flows import DynamoDBFlowStore
from functions.adapters.dynamodb.ledger import DynamoDBLedger
from functions.adapters.dynamodb.operations import DynamoDBOperationStore
from functions.adapters.dynamodb.pending import DynamoDBPendingStore
from functions.adapters.dynamodb.permits import DynamoDBPermitStore
from functions.adapters.dynamodb.pulses import DynamoDBPulseStore
from functions.adapters.dynamodb.rates import DynamoDBRateStore
from functions.adapters.dynamodb.schedules import DynamoDBScheduleStore
from functions.adapters.dynamodb.shards import DynamoDBShardStore
from functions.adapters.dynamodb.table import Table
from functions.adapters.dynamodb.tenants import DynamoDBTenantStore
from functions.adapters.dynamodb.timers import DynamoDBTimerStore
from functions.adapters.dynamodb.usage import DynamoDBUsageStore
from functions.adapters.system_clock import SystemClock
from functions.domain.far_ring.schedule_alarm import ScheduleAlarm
from functions.domain.far_ring.timer_key import alarm_key, timer_key
from functions.domain.far_ring.timer_record import decode_timer
from functions.domain.instants import from_seconds, parse_instant
from functions.domain.jobs.job import Timer
from functions.domain.operations.operation import Operation
from functions.ports.collections import CollectionStore
from functions.ports.dead_letters import DeadLetter, DeadLetters
from functions.ports.flows import FlowStore
from functions.ports.ledger import Ledger
from functions.ports.operations import OperationStore
from functions.ports.recorder import PulseStore
from functions.ports.schedules import ScheduleStore
from functions.ports.shards import ShardStore
from functions.ports.targets import BreakerStore, PermitStore
from functions.ports.tenants import DeletionStore, PendingStore, RateStore, TenantStore, UsageStore
from functions.ports.timers import TimerStore
from testkit import fakes
from testkit.builders import LOCAL_WHEEL
from testkit.dynamodb_local import DynamoDBLocal
from testkit.world.tables import create_table
from tests.short_run import moto

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

S = TypeVar("S")

ON_DYNAMODB = (moto(), pytest.param("dynamodb_local", marks=pytest.mark.dynamodb_local))
"""The engines that the adapters run on."""

_numbers = itertools.count(1)
_WITHOUT_A_NEW_SESSION: Any = {"core": {"reset_boto3_session": False}}


@dataclass(frozen=True, slots=True)
class LedgerSubject:
    """A ledger, when it lets a row go, the dead letters that it has kept, and the far ring beside it."""

    ledger: Ledger
    expires_at: Callable[[str], datetime]
    letters: Callable[[], list[DeadLetter]]
    timers: TimerStore


@dataclass(frozen=True, slots=True)
class DeadLetterSubject:
    """A store of dead letters, what it holds, when it lets its only one go, and a way to spoil that one's record.

    A spoiled record is one that a newer Tickwheel wrote. The fake never lets a letter go, and spoils none.
    """

    dead_letters: DeadLetters
    letters: Callable[[], list[DeadLetter]]
    expires_at: Callable[[], datetime] | None = None
    spoil: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class BreakerSubject:
    """A store of breakers, and when it lets its only one go (the fake never does); client: None for the fake."""

    breakers: BreakerStore
    expires_at: Callable[[], datetime] | None
    client: "DynamoDBClient | None" = None
    table: str = ""


@dataclass(frozen=True, slots=True)
class PermitSubject:
    """A store of permits, and when it lets its only one go (the fake never does)."""

    permits: PermitStore
    expires_at: Callable[[], datetime] | None


@dataclass(frozen=True, slots=True)
class OperationSubject:
    """A store of operations, when it lets one go (the fake never does), and a way to spoil the record of one."""

    operations: OperationStore
    expires_at: Callable[[Operation], datetime] | None = None
    spoil: Callable[[Operation], None] | None = None


@dataclass(frozen=True, slots=True)
class TimerSubject:
    """A timer store, the ledger beside it, when it lets a row go (the fake never does), and a way to put any row there.

    marks: the rows that tell of a tenant's days, with when each may go; None on the fake.
    """

    timers: TimerStore
    ledger: Ledger
    clock: fakes.FakeClock
    expires_at: Callable[[Timer], datetime] | None
    put_raw: Callable[[int, int, str, str], None]
    marks: Callable[[], dict[tuple[str, str], datetime]] | None = None
    alarm_expires_at: Callable[[ScheduleAlarm], datetime] | None = None


@dataclass(frozen=True, slots=True)
class ScheduleSubject:
    """A store of schedules, when it lets a state go (None for never; the fake never does), and ways to spoil its rows.

    A spoiled row is one that a newer Tickwheel wrote. The fake's states are never spoiled.
    """

    schedules: ScheduleStore
    expires_at: Callable[[str], datetime | None] | None
    spoil_definition: Callable[..., None]
    spoil_state: Callable[[str], None] | None


@pytest.fixture(scope="session")
def _moto_dynamodb() -> "DynamoDBClient":
    return clients.dynamodb(SystemClock(), attempts=1)


@pytest.fixture(scope="session")
def _local_dynamodb(dynamodb_local: DynamoDBLocal) -> "DynamoDBClient":
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_local.endpoint_url)
        client = clients.dynamodb(SystemClock(), attempts=1)
        client.list_tables()  # what creates tables is of the same endpoint
        return client


@pytest.fixture(scope="session")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


@pytest.fixture(params=["memory", *ON_DYNAMODB])
def dynamodb(request: pytest.FixtureRequest, _moto_dynamodb: "DynamoDBClient") -> Iterator["DynamoDBClient | None"]:
    """A client of the engine that the adapter runs on; None where the fake takes its place."""
    if request.param == "memory":
        yield None
    elif request.param == "moto":
        with mock_aws(config=_WITHOUT_A_NEW_SESSION):
            yield _moto_dynamodb
    else:
        yield request.getfixturevalue("_local_dynamodb")


@pytest.fixture
def ledger_subject(dynamodb: "DynamoDBClient | None", pool: ThreadPoolExecutor) -> Iterator[LedgerSubject]:
    skew = LOCAL_WHEEL.skew
    clock = fakes.FakeClock()
    if dynamodb is None:
        dead_letters = fakes.InMemoryDeadLetters()
        fake = fakes.InMemoryLedger(skew=skew, dead_letters=dead_letters)
        far = fakes.InMemoryTimerStore(wheel=LOCAL_WHEEL, ledger=fake, clock=clock)
        yield LedgerSubject(fake, lambda key: fake.expiry[key], lambda: list(dead_letters.letters.values()), far)
        return
    with (
        _table(dynamodb, tables.LEDGER) as name,
        _table(dynamodb, tables.DEAD_LETTERS) as letters,
        _table(dynamodb, tables.TIMERS) as timers_table,
        _table(dynamodb, tables.TENANTS) as tenants_table,
    ):
        timers = _timer_store(
            dynamodb, timers_table, ledger_table=name, tenants_table=tenants_table, clock=clock, pool=pool
        )
        yield LedgerSubject(
            DynamoDBLedger(
                Table(dynamodb, name),
                skew=skew,
                dead_letters=DynamoDBDeadLetters(Table(dynamodb, letters)),
                timers=timers,
            ),
            lambda key: _expiry(_item(dynamodb, name, {"k": {"S": key}})),
            lambda: _letters(dynamodb, letters),
            timers,
        )


@pytest.fixture
def dead_letter_subject(dynamodb: "DynamoDBClient | None") -> Iterator[DeadLetterSubject]:
    def in_memory() -> DeadLetterSubject:
        fake = fakes.InMemoryDeadLetters()
        return DeadLetterSubject(fake, lambda: list(fake.letters.values()))

    def on_dynamodb(client: "DynamoDBClient", name: str) -> DeadLetterSubject:
        def only_row() -> Any:
            return _letter_rows(client, name)[0]

        return DeadLetterSubject(
            DynamoDBDeadLetters(Table(client, name)),
            lambda: _letters(client, name),
            lambda: _expiry(only_row()),
            lambda: _spoil(client, name, only_row()),
        )

    yield from _subject(dynamodb, tables.DEAD_LETTERS, in_memory, on_dynamodb)


@pytest.fixture
def ledger(ledger_subject: LedgerSubject) -> Ledger:
    return ledger_subject.ledger


@pytest.fixture
def timer_subject(dynamodb: "DynamoDBClient | None", pool: ThreadPoolExecutor) -> Iterator[TimerSubject]:
    clock = fakes.FakeClock()
    skew = LOCAL_WHEEL.skew
    if dynamodb is None:
        rows = fakes.InMemoryLedger(skew=skew)
        fake = fakes.InMemoryTimerStore(wheel=LOCAL_WHEEL, ledger=rows, clock=clock)

        def put_raw(bucket: int, shard: int, key: str, record: str) -> None:
            fake.rows.setdefault((bucket, shard), {})[key] = record

        yield TimerSubject(fake, rows, clock, None, put_raw)
        return
    with (
        _table(dynamodb, tables.TIMERS) as name,
        _table(dynamodb, tables.LEDGER) as ledger_table,
        _table(dynamodb, tables.TENANTS) as tenants_table,
    ):

        def put_item(bucket: int, shard: int, key: str, record: str) -> None:
            item = {"p": {"S": f"{bucket}#{shard:04d}"}, "s": {"S": key}, "j": {"S": record}}
            dynamodb.put_item(TableName=name, Item=item)

        def row_expires_at(due_at: datetime, shard: int, key: str) -> datetime:
            partition = f"{LOCAL_WHEEL.bucket_of(due_at)}#{shard:04d}"
            return _expiry(_item(dynamodb, name, {"p": {"S": partition}, "s": {"S": key}}))

        def expires_at(timer: Timer) -> datetime:
            return row_expires_at(timer.due_at, timer.job.shard, timer_key(timer.job, due_at=timer.due_at))

        def alarm_expires_at(alarm: ScheduleAlarm) -> datetime:
            return row_expires_at(alarm.wakes_at, alarm.shard, alarm_key(alarm))

        def marks() -> dict[tuple[str, str], datetime]:
            items = dynamodb.scan(TableName=tenants_table, ConsistentRead=True)["Items"]
            rows = {
                (item["t"]["S"], item["i"]["S"]): from_seconds(int(item.get("x", {"N": "0"})["N"])) for item in items
            }
            return {key: expires_at for key, expires_at in rows.items() if key[1].startswith("day#")}

        _put_beside(dynamodb, tenants_table, "day")
        store = _timer_store(
            dynamodb, name, ledger_table=ledger_table, tenants_table=tenants_table, clock=clock, pool=pool
        )
        dead_letters = DynamoDBDeadLetters(Table(dynamodb, "no-dead-letters"))
        rows = DynamoDBLedger(Table(dynamodb, ledger_table), skew=skew, dead_letters=dead_letters, timers=store)
        yield TimerSubject(store, rows, clock, expires_at, put_item, marks, alarm_expires_at)


@pytest.fixture
def timers(timer_subject: TimerSubject) -> TimerStore:
    return timer_subject.timers


@pytest.fixture
def shards(dynamodb: "DynamoDBClient | None") -> Iterator[ShardStore]:
    yield from _store(dynamodb, tables.SHARDS, fakes.InMemoryShardStore, DynamoDBShardStore)


@pytest.fixture
def breaker_subject(dynamodb: "DynamoDBClient | None") -> Iterator[BreakerSubject]:
    def on_dynamodb(client: "DynamoDBClient", name: str) -> BreakerSubject:
        store = DynamoDBBreakerStore(Table(client, name))
        return BreakerSubject(store, lambda: _only_expiry(client, name), client, name)

    fake = BreakerSubject(fakes.InMemoryBreakerStore(), None)
    yield from _subject(dynamodb, tables.TENANTS, lambda: fake, on_dynamodb, beside="breaker")


@pytest.fixture
def flows(dynamodb: "DynamoDBClient | None") -> Iterator[FlowStore]:
    if dynamodb is None:
        yield fakes.InMemoryFlowStore()
        return
    with _table(dynamodb, tables.TENANTS) as name:
        yield DynamoDBFlowStore(Table(dynamodb, name))


@pytest.fixture
def collections(dynamodb: "DynamoDBClient | None") -> Iterator[CollectionStore]:
    if dynamodb is None:
        yield fakes.InMemoryCollectionStore()
        return
    with _table(dynamodb, tables.TENANTS) as name:
        yield DynamoDBCollectionStore(Table(dynamodb, name))


@pytest.fixture
def permit_subject(dynamodb: "DynamoDBClient | None") -> Iterator[PermitSubject]:
    def on_dynamodb(client: "DynamoDBClient", name: str) -> PermitSubject:
        return PermitSubject(DynamoDBPermitStore(Table(client, name)), lambda: _only_expiry(client, name))

    fake = PermitSubject(fakes.InMemoryPermitStore(), None)
    yield from _subject(dynamodb, tables.TENANTS, lambda: fake, on_dynamodb, beside="seat")


@pytest.fixture
def permits(permit_subject: PermitSubject) -> PermitStore:
    return permit_subject.permits


@pytest.fixture
def operation_subject(dynamodb: "DynamoDBClient | None") -> Iterator[OperationSubject]:
    def on_dynamodb(client: "DynamoDBClient", name: str) -> OperationSubject:
        def row(operation: Operation) -> Any:
            key = {"t": {"S": operation.tenant}, "i": {"S": f"operation#{operation.operation_id}"}}
            return _item(client, name, key)

        return OperationSubject(
            DynamoDBOperationStore(Table(client, name)),
            lambda operation: _expiry(row(operation)),
            lambda operation: _spoil(client, name, row(operation)),
        )

    fake = OperationSubject(fakes.InMemoryOperationStore())
    yield from _subject(dynamodb, tables.TENANTS, lambda: fake, on_dynamodb, beside="operation")


@pytest.fixture
def operations(operation_subject: OperationSubject) -> OperationStore:
    return operation_subject.operations


@pytest.fixture
def tenants(dynamodb: "DynamoDBClient | None") -> Iterator[TenantStore]:
    if dynamodb is None:
        yield fakes.InMemoryTenantStore()
        return
    with _table(dynamodb, tables.TENANTS) as name:
        # Other rows of the table belong to tenants.
        dynamodb.put_item(TableName=name, Item={"t": {"S": "acme"}, "i": {"S": "acme"}, "j": {"S": "{}"}})
        yield DynamoDBTenantStore(Table(dynamodb, name))


@pytest.fixture
def pending(dynamodb: "DynamoDBClient | None") -> Iterator[PendingStore]:
    yield from _store(dynamodb, tables.TENANTS, fakes.InMemoryPendingStore, DynamoDBPendingStore, beside="pending")


@pytest.fixture
def deletions(dynamodb: "DynamoDBClient | None") -> Iterator[DeletionStore]:
    yield from _store(dynamodb, tables.TENANTS, fakes.InMemoryDeletionStore, DynamoDBDeletionStore)


@pytest.fixture
def usage(dynamodb: "DynamoDBClient | None") -> Iterator[UsageStore]:
    yield from _store(dynamodb, tables.TENANTS, fakes.InMemoryUsageStore, DynamoDBUsageStore, beside="usage")


@pytest.fixture
def pulses(dynamodb: "DynamoDBClient | None") -> Iterator[PulseStore]:
    yield from _store(dynamodb, tables.TENANTS, fakes.InMemoryPulseStore, partial(DynamoDBPulseStore, slot=2))


@pytest.fixture
def rates(dynamodb: "DynamoDBClient | None") -> Iterator[RateStore]:
    yield from _store(dynamodb, tables.TENANTS, fakes.InMemoryRateStore, DynamoDBRateStore)


@pytest.fixture
def real_rates(dynamodb_local: DynamoDBLocal) -> Iterator[RateStore]:
    """On AWS's own engine, which alone is right about calls at the same moment."""
    client = dynamodb_local.client()
    with _table(client, tables.TENANTS) as name:
        yield DynamoDBRateStore(Table(client, name))


@pytest.fixture
def breakers(breaker_subject: BreakerSubject) -> BreakerStore:
    return breaker_subject.breakers


@pytest.fixture
def schedule_subject(dynamodb: "DynamoDBClient | None") -> Iterator[ScheduleSubject]:
    if dynamodb is None:
        fake = fakes.InMemoryScheduleStore()

        def spoil_text(key: str) -> None:
            fake.written[key] = '{"lunar":28}', fake.written[key][1]

        yield ScheduleSubject(fake, None, spoil_text, None)
        return
    with _table(dynamodb, tables.SCHEDULES) as definitions, _table(dynamodb, tables.SCHEDULE_STATE) as states:

        def expires_at(key: str) -> datetime | None:
            row = _item(dynamodb, states, {"k": {"S": key}})
            return _expiry(row) if "x" in row else None

        def spoil_definition(key: str, name: str = "d") -> None:
            tenant, _, schedule_id = key.partition("#")
            row = _item(dynamodb, definitions, {"t": {"S": tenant}, "i": {"S": schedule_id}})
            _spoil(dynamodb, definitions, row, name=name)

        def spoil_state(key: str) -> None:
            _spoil(dynamodb, states, _item(dynamodb, states, {"k": {"S": key}}), name="s")

        store = DynamoDBScheduleStore(Table(dynamodb, definitions), Table(dynamodb, states))
        yield ScheduleSubject(store, expires_at, spoil_definition, spoil_state)


@pytest.fixture
def schedules(schedule_subject: ScheduleSubject) -> ScheduleStore:
    return schedule_subject.schedules


def _store(
    dynamodb: "DynamoDBClient | None",
    schema: tables.TableSchema,
    in_memory: Callable[[], Any],
    on_dynamodb: Callable[..., Any],
    *,
    beside: str = "",
) -> Iterator[Any]:
    """A store with a table of its own, or the fake; as for `_subject`."""
    yield from _subject(
        dynamodb, schema, in_memory, lambda client, name: on_dynamodb(Table(client, name)), beside=beside
    )


def _subject(
    dynamodb: "DynamoDBClient | None",
    schema: tables.TableSchema,
    in_memory: Callable[[], S],
    on_dynamodb: Callable[["DynamoDBClient", str], S],
    *,
    beside: str = "",
) -> Iterator[S]:
    """What is tested, on a table of its own or on the fake. beside: the kind of its rows, where others stand with them."""
    if dynamodb is None:
        yield in_memory()
        return
    with _table(dynamodb, schema) as name:
        if beside:
            _put_beside(dynamodb, name, beside)
        yield on_dynamodb(dynamodb, name)


def _put_beside(client: "DynamoDBClient", table: str, kind: str) -> None:
    """A tenant's other rows stand in the same partition, before and behind those of a kind."""
    for item in ("a", kind, f"{kind}s", "z"):
        client.put_item(TableName=table, Item={"t": {"S": "acme"}, "i": {"S": item}})


def _timer_store(
    dynamodb: "DynamoDBClient", name: str, *, tenants_table: str, pool: ThreadPoolExecutor, **given: Any
) -> DynamoDBTimerStore:
    table, tenants = Table(dynamodb, name), Table(dynamodb, tenants_table)
    marks = DynamoDBDayMarks(tenants, writer=tenants, pool=pool)
    return DynamoDBTimerStore(table=table, writer=table, wheel=LOCAL_WHEEL, pool=pool, marks=marks, **given)


@contextmanager
def _table(client: "DynamoDBClient", schema: tables.TableSchema) -> Iterator[str]:
    name = f"{schema.name}-{next(_numbers)}"
    create_table(client, schema, name=name)
    yield name
    client.delete_table(TableName=name)


def _item(client: "DynamoDBClient", table: str, key: Any) -> Mapping[str, Any]:
    item = client.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item")
    assert item is not None
    return item


def _expiry(item: Mapping[str, Any]) -> datetime:
    """From when on its table may let a row go."""
    return from_seconds(int(item["x"]["N"]))


def _only_expiry(client: "DynamoDBClient", table: str) -> datetime:
    """Of the rows of a table that do not stay for ever: one, or several that go together."""
    (expiry,) = {_expiry(item) for item in client.scan(TableName=table)["Items"] if "x" in item}
    return expiry


def _spoil(client: "DynamoDBClient", table: str, row: Mapping[str, Any], *, name: str = "j") -> None:
    """Makes a record of a row one that a newer Tickwheel wrote. name: of its attribute."""
    client.put_item(TableName=table, Item={**row, name: {"S": '{"lunar":28}'}})


def _letters(client: "DynamoDBClient", table: str) -> list[DeadLetter]:
    """Every letter of a table, as it was put."""
    return [_letter(item) for item in _letter_rows(client, table)]


def _letter_rows(client: "DynamoDBClient", table: str) -> list[Any]:
    """Those of letters, without the marks of their hours."""
    items = client.scan(TableName=table, ConsistentRead=True)["Items"]
    return [item for item in items if not item["p"]["S"].endswith(f"#{MARKS}")]


def _letter(item: Mapping[str, Any]) -> DeadLetter:
    text = {name: value["S"] for name, value in item.items() if "S" in value}
    tenant = text["p"].rpartition("#")[0]
    dead_at, _, identity = text["s"].partition("#")
    assert text["p"] == f"{tenant}#{dead_at[:13]}"
    return DeadLetter(
        tenant=tenant,
        identity=identity,
        dead_at=parse_instant(dead_at),
        error=text["e"],
        error_class=text["c"],
        attempt=int(item["a"]["N"]),
        job_id=text.get("i", ""),
        timer=decode_timer(text["j"], tenant=tenant) if "j" in text else None,
        raw=text.get("w", ""),
        fence=int(item["f"]["N"]) if "f" in item else 0,
    )
