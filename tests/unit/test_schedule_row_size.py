"""The row of a schedule's state stays within one write unit, whatever is counted in it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from functions.adapters.dynamodb.schedules import DynamoDBScheduleStore
from functions.adapters.dynamodb.table import Table
from functions.domain.instants import HOUR, MINUTE, SECOND
from functions.domain.schedules.due_fires import DueFires
from functions.domain.schedules.fire_figures import LAST_BUCKET, FireFigures
from functions.domain.schedules.load import Share
from functions.domain.schedules.state import Cut, SkipReason
from functions.ports.ledger import Applied
from testkit.builders import NOON, a_link, a_state, a_stored_schedule

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

A_UNIT = 1_024
KEY = "a-tenant-of-thirty-characters#a-schedule-of-thirty-characters"


@pytest.fixture
def client() -> Iterator["DynamoDBClient"]:
    with mock_aws(config={"core": {"reset_boto3_session": False}}):
        client = boto3.Session().client("dynamodb", region_name="us-east-1")
        for table, keys in (("schedules", "ti"), ("states", "k")):
            client.create_table(
                TableName=table,
                KeySchema=[
                    {"AttributeName": key, "KeyType": kind}  # pyright: ignore[reportArgumentType]
                    for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
                ],
                AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
                BillingMode="PAY_PER_REQUEST",
            )
        yield client


def size_of(value: dict[str, Any]) -> int:
    """As DynamoDB counts it: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html."""
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return -(-len(content.strip("0").lstrip("-")) // 2) + 1
        case "M":
            return 3 + sum(len(name) + size_of(each) + 1 for name, each in content.items())
        case "SS":
            return sum(map(len, content))
        case _:
            return len(str(content).encode())


def bytes_of(client: "DynamoDBClient") -> int:
    item: Any = client.get_item(TableName="states", Key={"k": {"S": KEY}}).get("Item", {})
    return sum(len(name) + size_of(value) for name, value in item.items())


def test_a_row_with_gaps_of_all_lengths_takes_one_write_unit(client: "DynamoDBClient"):
    schedules = DynamoDBScheduleStore(Table(client, "schedules"), Table(client, "states"))
    tenant, _, schedule_id = KEY.partition("#")
    stored = a_stored_schedule(tenant=tenant, schedule_id=schedule_id)
    # Ten last fires, five changes, a note, a holder, and whatever else a usual row may have.
    recent = tuple(NOON - number * MINUTE for number in range(10, 0, -1))
    cuts = tuple(Cut(1_803_902_400 + number, NOON - HOUR) for number in range(5))
    state = a_state(
        version=1_803_902_405,
        note="paused for maintenance, and resumed",
        cuts=cuts,
        link=a_link(nominal_at=NOON - SECOND, index=10_000_000, previous_at=NOON - MINUTE, merged_count=3),
        alarm_at=NOON,
        fire_count=10_000_000,
        recent=recent,
        share=Share(1_803_902_405, 60),
    )
    assert schedules.change(stored, state, seen=None)
    assert schedules.take_slot(KEY, "a-schedule-of-thirty-characters:2027-03-01T12:00:00.000Z", seen=state, now=NOON)
    schedules.note_skip(KEY, SkipReason.OVERLAP, fire_at=NOON)
    before = bytes_of(client)

    every_length = FireFigures(dict.fromkeys(range(LAST_BUCKET + 1), 99999999), 9_999_999, timedelta(days=9_999))
    assert state.link is not None
    plan = DueFires(
        kept=[state.link], link=a_link(NOON + MINUTE, index=10_000_001, previous_at=NOON), figures=every_length
    )
    answer = schedules.advance(KEY, plan, version=state.version, before=state.link, alarm_at=NOON, history=10)

    assert answer == Applied()
    assert bytes_of(client) - before <= 330
    assert bytes_of(client) <= A_UNIT
