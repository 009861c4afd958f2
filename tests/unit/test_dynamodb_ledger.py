"""How the ledger takes the transactions of others, which moto and DynamoDB Local do not show."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from functions.adapters.dynamodb.ledger import DynamoDBLedger
from functions.adapters.dynamodb.table import Table
from functions.domain.errors import JobBusy
from functions.domain.jobs.job_id import job_id_of
from functions.domain.lifecycle import Event
from functions.ports.ledger import Applied
from testkit.builders import NOON, a_dead_letter, a_timer
from tests.unit.conflicts import ConflictingDynamoDB, a_client_error

pytestmark = pytest.mark.usefixtures("pauses")

TIMER = a_timer()
JOB_ID = job_id_of(TIMER.job)
LETTER = a_dead_letter(TIMER)

CALLS: dict[str, Callable[[DynamoDBLedger], Any]] = {
    "register": lambda ledger: ledger.register(TIMER.job, job_id=str(JOB_ID), fingerprint="f", owner="o", now=NOON),
    "settle": lambda ledger: ledger.settle(TIMER, Event.SUCCEED, fence=1, owner="o", now=NOON),
    "extend": lambda ledger: ledger.extend(JOB_ID, fence=1, lease_until=NOON, now=NOON),
    "complete": lambda ledger: ledger.complete(JOB_ID, fence=1, result="", now=NOON),
    "cancel": lambda ledger: ledger.cancel(JOB_ID, owner="o", now=NOON),
    "move": lambda ledger: ledger.move(JOB_ID, TIMER, owner="o", now=NOON),
    "fail": lambda ledger: ledger.fail(LETTER, TIMER.job, fence=1, owner="o", now=NOON),
    "bury": lambda ledger: ledger.bury(LETTER, TIMER.job, row=None, owner="o", now=NOON),
}


@dataclass
class Others:
    """The tables that a transaction of the ledger writes to as well."""

    marked: list[Any] = field(default_factory=list)

    def mark(self, timer: Any) -> None:
        self.marked.append(timer)

    mark_hour = mark

    def put_request(self, row: Any) -> dict[str, Any]:
        return {"Item": row}


@pytest.fixture
def client() -> ConflictingDynamoDB:
    return ConflictingDynamoDB(attributes={"s": {"S": "running"}, "f": {"N": "1"}})


@pytest.fixture
def ledger(client: ConflictingDynamoDB) -> DynamoDBLedger:
    others = cast("Any", Others())
    return DynamoDBLedger(
        Table(cast("Any", client), "ledger"), skew=timedelta(seconds=2), dead_letters=others, timers=others
    )


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_meets_a_transaction_on_its_row_is_made_again(
    ledger: DynamoDBLedger, client: ConflictingDynamoDB, pauses: list[float], name: str
):
    client.conflicts = 4

    assert CALLS[name](ledger) is not None
    assert (len(client.calls), len(pauses)) == (5, 4)
    assert sum(pauses) < 1


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_meets_one_transaction_after_the_other_finds_the_job_busy(
    ledger: DynamoDBLedger, client: ConflictingDynamoDB, name: str
):
    client.conflicts = 5

    with pytest.raises(JobBusy):
        CALLS[name](ledger)


@pytest.mark.parametrize("name", CALLS)
def test_any_other_error_is_raised_at_once(
    ledger: DynamoDBLedger, client: ConflictingDynamoDB, pauses: list[float], name: str
):
    client.error = a_client_error("ValidationException")

    with pytest.raises(ClientError):
        CALLS[name](ledger)
    assert (len(client.calls), pauses) == (1, [])


def test_what_meets_nobody_is_written_without_a_pause(
    ledger: DynamoDBLedger, client: ConflictingDynamoDB, pauses: list[float]
):
    assert ledger.move(JOB_ID, TIMER, owner="o", now=NOON) == Applied()
    assert (len(client.calls), pauses) == (1, [])
