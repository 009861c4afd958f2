"""How the timer store takes the faults that moto and DynamoDB Local do not have."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from functions.adapters.dynamodb.day_marks import DynamoDBDayMarks
from functions.adapters.dynamodb.dead_letters import DynamoDBDeadLetters
from functions.adapters.dynamodb.ledger import DynamoDBLedger
from functions.adapters.dynamodb.table import Table
from functions.adapters.dynamodb.timers import DynamoDBTimerStore
from functions.domain.errors import NotPlaced, Undecodable
from functions.domain.far_ring.timer_key import timer_key
from functions.domain.instants import from_ms
from functions.domain.jobs.job import Timer
from functions.domain.jobs.job_id import job_id_of
from functions.domain.operations.operation import OwnedDay
from functions.ports.ledger import Applied, Refused
from testkit.builders import LOCAL_WHEEL, NOON, a_timer, an_alarm
from testkit.fakes import FakeClock

MOST_KNOWN = 60


@dataclass
class ScriptedTenants:
    """The marks that stand, as `tenant day`; leaves some unread or unwritten, or raises."""

    standing: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    unwritten: set[str] = field(default_factory=set)
    read_error: Exception | None = None
    write_error: Exception | None = None
    reads: list[set[str]] = field(default_factory=list)
    writes: list[set[str]] = field(default_factory=list)

    def batch_get_item(self, *, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        keys = RequestItems["tenants"]["Keys"]
        self.reads.append(set(map(mark_name, keys)))
        if self.read_error is not None:
            raise self.read_error
        found = [key for key in keys if mark_name(key) in self.standing - self.unread]
        return {"Responses": {"tenants": found}, "UnprocessedKeys": {}}

    def batch_write_item(self, *, RequestItems: dict[str, Any]) -> dict[str, Any]:  # noqa: N803
        requests = {mark_name(each["PutRequest"]["Item"]): each for each in RequestItems["tenants"]}
        self.writes.append(set(requests))
        if self.write_error is not None:
            raise self.write_error
        self.standing |= set(requests) - self.unwritten
        left = [each for name, each in requests.items() if name in self.unwritten]
        return {"UnprocessedItems": {"tenants": left} if left else {}}


@dataclass
class ScriptedDynamoDB:
    """Leaves these sort keys unprocessed, or raises; or meets other transactions so many times.

    put: the sort keys that were to be written.
    """

    tenants: ScriptedTenants = field(default_factory=ScriptedTenants)
    unprocessed: set[str] = field(default_factory=set)
    error: Exception | None = None
    conflicts: int = 0
    put: list[str] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    transactions: list[dict[str, Any]] = field(default_factory=list)

    def batch_get_item(self, **request: Any) -> dict[str, Any]:
        return self.tenants.batch_get_item(**request)

    def put_item(self, *, Item: dict[str, Any], **_: Any) -> dict[str, Any]:  # noqa: N803
        self._note(Item)
        if self.error is not None:
            raise self.error
        return {}

    def transact_write_items(self, **request: Any) -> dict[str, Any]:
        self._note(request["TransactItems"][1]["Put"]["Item"])
        self.transactions.append(request)
        if len(self.transactions) <= self.conflicts:
            raise a_cancelled_transaction("TransactionConflict", "None")
        if self.error is not None:
            raise self.error
        return {}

    def batch_write_item(self, *, RequestItems: dict[str, list[Any]]) -> dict[str, Any]:  # noqa: N803
        if "tenants" in RequestItems:
            return self.tenants.batch_write_item(RequestItems=RequestItems)
        if self.error is not None:
            raise self.error
        requests = RequestItems["timers"]
        for request in requests:
            self._note(request["PutRequest"]["Item"])
        self.batches.append(len(requests))
        left = [request for request in requests if request["PutRequest"]["Item"]["s"]["S"] in self.unprocessed]
        return {"UnprocessedItems": {"timers": left}} if left else {"UnprocessedItems": {}}

    def _note(self, item: dict[str, Any]) -> None:
        """A row is put, and its mark stands."""
        _, tenant, due_ms, _ = item["s"]["S"].split("#")
        assert f"{tenant} {from_ms(int(due_ms)):%d}" in self.tenants.standing
        self.put.append(item["s"]["S"])


@dataclass
class QueriedDynamoDB:
    """Finds nothing, or these answers one after the other, and keeps what it was asked."""

    answers: list[dict[str, Any]] = field(default_factory=list)
    queries: list[dict[str, Any]] = field(default_factory=list)

    def query(self, **query: Any) -> dict[str, Any]:
        self.queries.append(query)
        return self.answers.pop(0) if self.answers else {"Items": []}


def mark_name(item: dict[str, Any]) -> str:
    """Tenant and day of the month."""
    return f"{item['t']['S']} {item['i']['S'].split('#')[1][-2:]}"


@pytest.fixture
def client() -> ScriptedDynamoDB:
    return ScriptedDynamoDB()


@pytest.fixture
def tenants(client: ScriptedDynamoDB) -> ScriptedTenants:
    return client.tenants


@pytest.fixture
def queried() -> QueriedDynamoDB:
    return QueriedDynamoDB()


@pytest.fixture
def store(client: ScriptedDynamoDB, queried: QueriedDynamoDB) -> Iterator[DynamoDBTimerStore]:
    # Whatever places a timer makes one attempt: it goes through the writer alone.
    repeating, writer = cast("Any", queried), cast("Any", client)
    with ThreadPoolExecutor(2) as pool:
        yield DynamoDBTimerStore(
            table=Table(repeating, "timers"),
            writer=Table(writer, "timers"),
            wheel=LOCAL_WHEEL,
            clock=FakeClock(),
            pool=pool,
            marks=DynamoDBDayMarks(
                Table(repeating, "tenants"), writer=Table(writer, "tenants"), pool=pool, most_known=MOST_KNOWN
            ),
            ledger_table="ledger",
        )


def test_timers_are_written_25_at_a_time(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    assert store.put([a_timer() for _ in range(60)]) == []
    assert sorted(client.batches) == [10, 25, 25]


def test_what_a_batch_left_unprocessed_is_given_back(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    timers = [a_timer(due_at=NOON + timedelta(seconds=number)) for number in range(30)]
    client.unprocessed = {key(timers[3]), key(timers[29])}

    assert store.put(timers) == [timers[3], timers[29]]


def test_both_of_two_equal_timers_are_given_back(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    twins = [a_timer(identity="same"), a_timer(identity="same")]
    client.unprocessed = {key(twins[0])}

    assert store.put(twins) == twins


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "error",
    [
        ConnectTimeoutError(endpoint_url="https://x"),
        ClientError({"Error": {"Code": "ThrottlingException"}}, "PutItem"),
    ],
    ids=["timeout", "throttled"],
)
def test_a_write_without_an_answer_is_given_back_as_not_known_to_be_written(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB, error: Exception, count: int
):
    timers = [a_timer() for _ in range(count)]
    client.error = error

    assert store.put(timers) == timers


@pytest.mark.parametrize("count", [1, 2])
def test_a_write_that_is_wrong_is_an_error(store: DynamoDBTimerStore, client: ScriptedDynamoDB, count: int):
    client.error = ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "PutItem")

    with pytest.raises(ClientError):
        store.put([a_timer() for _ in range(count)])


def test_a_registered_timer_is_written_in_one_transaction_with_the_check_of_its_row(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB
):
    assert store.put_registered(a_timer(identity="x")) is True

    check, put = client.transactions[0]["TransactItems"]
    assert (check["ConditionCheck"]["TableName"], check["ConditionCheck"]["Key"]) == ("ledger", {"k": {"S": "acme#x"}})
    assert put["Put"]["TableName"] == "timers"


def test_a_registered_timer_whose_row_does_not_wait_is_not_written(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    client.error = a_cancelled_transaction("ConditionalCheckFailed", "None")

    assert store.put_registered(a_timer()) is False


@pytest.mark.parametrize("reason", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_registered_timer_whose_transaction_found_another_is_not_known_to_be_written(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB, reason: str
):
    client.error = a_cancelled_transaction("None", reason)

    assert store.put_registered(a_timer()) is None


def test_a_registered_timer_without_an_answer_is_not_known_to_be_written(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB
):
    client.error = ConnectTimeoutError(endpoint_url="https://x")

    assert store.put_registered(a_timer()) is None


def test_a_registered_timer_whose_transaction_is_wrong_is_an_error(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    client.error = a_cancelled_transaction("None", "ValidationError")

    with pytest.raises(ClientError):
        store.put_registered(a_timer())


def test_a_day_is_marked_before_its_first_row_is_put_and_never_again(
    store: DynamoDBTimerStore, tenants: ScriptedTenants
):
    store.put([a_timer()])
    store.put([a_timer(), a_timer()])
    store.put_registered(a_timer())
    store.mark(a_timer())

    assert (tenants.reads, tenants.writes) == ([{"acme 01"}], [{"acme 01"}])


def test_only_days_that_nobody_has_marked_are_written(store: DynamoDBTimerStore, tenants: ScriptedTenants):
    tenants.standing = {"acme 01", "globex 02"}

    store.put([on_day(1), on_day(2), on_day(2, tenant="globex")])

    assert tenants.reads == [{"acme 01", "acme 02", "globex 02"}]
    assert tenants.writes == [{"acme 02"}]


def test_a_mark_that_the_store_left_unread_is_written(store: DynamoDBTimerStore, tenants: ScriptedTenants):
    tenants.standing, tenants.unread = {"acme 01"}, {"acme 01"}

    assert store.put([on_day(1)]) == []
    assert tenants.writes == [{"acme 01"}]


def test_days_are_marked_25_at_a_time(store: DynamoDBTimerStore, tenants: ScriptedTenants):
    assert store.put([a_timer(tenant=f"tenant-{number}") for number in range(60)]) == []
    assert sorted(map(len, tenants.writes)) == sorted(map(len, tenants.reads)) == [10, 25, 25]


def test_a_process_remembers_so_many_marks_and_asks_again_for_the_oldest(
    store: DynamoDBTimerStore, tenants: ScriptedTenants
):
    store.put([a_timer(tenant="first")])
    store.put([a_timer(tenant=f"tenant-{number}") for number in range(MOST_KNOWN)])
    tenants.reads.clear()
    tenants.writes.clear()

    store.put([a_timer(tenant=f"tenant-{MOST_KNOWN - 1}")])
    store.put([a_timer(tenant="first")])

    assert (tenants.reads, tenants.writes) == ([{"first 01"}], [])


NO_ANSWER = ConnectTimeoutError(endpoint_url="https://x")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("call", ["read_error", "write_error"])
def test_a_timer_whose_mark_is_not_known_to_stand_is_not_put_and_is_given_back(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB, call: str, count: int
):
    timers = [a_timer() for _ in range(count)]
    setattr(client.tenants, call, NO_ANSWER)

    assert store.put(timers) == timers
    assert store.put_registered(timers[0]) is None
    with pytest.raises(NotPlaced, match="mark"):
        store.mark(timers[0])
    assert client.put == []


@pytest.mark.parametrize("call", ["read_error", "write_error"])
def test_a_mark_that_is_not_known_to_stand_is_written_by_the_next_put(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB, call: str
):
    timer = a_timer()
    setattr(client.tenants, call, NO_ANSWER)
    store.put([timer])
    setattr(client.tenants, call, None)

    assert store.put([timer]) == []
    assert client.put == [key(timer)]


def test_timers_of_other_days_are_put_beside_one_whose_mark_was_left_unwritten(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB
):
    timers = [on_day(1), on_day(2), on_day(3), on_day(2)]
    client.tenants.unwritten = {"acme 02"}

    assert store.put(timers) == [timers[1], timers[3]]
    assert client.put == [key(timers[0]), key(timers[2])]

    client.tenants.unwritten = set()
    assert store.put([timers[1], timers[3]]) == []
    assert client.tenants.writes[-1] == {"acme 02"}


@pytest.mark.parametrize("call", ["read_error", "write_error"])
def test_a_mark_that_is_wrong_is_an_error(store: DynamoDBTimerStore, client: ScriptedDynamoDB, call: str):
    setattr(client.tenants, call, ClientError({"Error": {"Code": "AccessDeniedException"}}, "BatchGetItem"))

    for put in (lambda timer: store.put([timer]), store.put_registered, store.mark):
        with pytest.raises(ClientError):
            put(a_timer())
    assert client.put == []


def test_a_job_is_not_moved_to_a_day_whose_mark_is_not_known_to_stand(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB
):
    ledger = a_ledger(store, client)
    client.tenants.write_error = NO_ANSWER

    with pytest.raises(NotPlaced, match="mark"):
        ledger.move(job_id_of(a_timer().job), a_timer(), owner="api", now=NOON)
    assert client.transactions == []


def test_a_job_is_not_replayed_on_a_day_whose_mark_is_not_known_to_stand(
    store: DynamoDBTimerStore, client: ScriptedDynamoDB
):
    client.tenants.write_error = NO_ANSWER

    with pytest.raises(NotPlaced, match="mark"):
        replay(store, client)
    assert client.transactions == []


def test_a_replay_that_meets_another_of_its_job_is_made_again(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    client.conflicts = 2

    assert replay(store, client) == Applied()
    assert len(client.transactions) == 3


def test_alarms_are_put_without_marks(store: DynamoDBTimerStore, client: ScriptedDynamoDB):
    client.tenants.standing = {"acme 01"}

    assert store.put_alarms([an_alarm(), an_alarm()]) == []
    assert (client.tenants.reads, client.tenants.writes) == ([], [])


def test_a_tenants_days_and_rows_are_read_as_of_all_writes_before(store: DynamoDBTimerStore, queried: QueriedDynamoDB):
    store.days("acme")
    store.read_owned("acme", OwnedDay.of(a_timer()), bucket=0, limit=10)

    assert [(query["TableName"], query["ConsistentRead"]) for query in queried.queries] == [
        ("tenants", True),
        ("timers", True),
    ]


def test_more_days_than_an_answer_holds_are_asked_for_until_the_last(
    store: DynamoDBTimerStore, queried: QueriedDynamoDB
):
    first, second = ({"i": {"S": f"day#2027030{day}#2#0001"}} for day in (1, 2))
    queried.answers = [{"Items": [first], "LastEvaluatedKey": first}, {"Items": [second]}]

    days = store.days("acme")

    assert [(owned.ends_at.day, owned.shard) for owned in days] == [(2, 1), (3, 1)]
    assert [query.get("ExclusiveStartKey") for query in queried.queries] == [None, first]


@pytest.mark.parametrize("item", ["day#20270301", "day#2027-3-1#2#0001", "day#20270301#9#0001", "day#20270301#2#x"])
def test_a_mark_that_a_newer_version_has_written_is_an_error(
    store: DynamoDBTimerStore, queried: QueriedDynamoDB, item: str
):
    queried.answers = [{"Items": [{"i": {"S": item}}]}]

    with pytest.raises(Undecodable, match="not a mark"):
        store.days("acme")


def on_day(day: int, **overrides: Any) -> Timer:
    """A timer of that day of March."""
    return a_timer(due_at=NOON.replace(day=day), **overrides)


def a_cancelled_transaction(*codes: str) -> ClientError:
    answer: Any = {
        "Error": {"Code": "TransactionCanceledException"},
        "CancellationReasons": [{"Code": code} for code in codes],
    }
    return ClientError(answer, "TransactWriteItems")


def a_ledger(store: DynamoDBTimerStore, client: ScriptedDynamoDB) -> DynamoDBLedger:
    dynamodb = cast("Any", client)
    letters = DynamoDBDeadLetters(Table(dynamodb, "dead_letters"))
    return DynamoDBLedger(Table(dynamodb, "ledger"), skew=LOCAL_WHEEL.skew, dead_letters=letters, timers=store)


def replay(store: DynamoDBTimerStore, client: ScriptedDynamoDB) -> Applied | Refused:
    ledger = a_ledger(store, client)
    timer = a_timer(attempt=3)
    return ledger.replay(timer, far=timer, job_id=str(job_id_of(timer.job)), fence=1, owner="api", now=NOON)


def key(timer: Timer) -> str:
    return timer_key(timer.job, due_at=timer.due_at)
