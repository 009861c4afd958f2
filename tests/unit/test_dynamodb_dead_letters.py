from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.adapters.dynamodb.dead_letters import DynamoDBDeadLetters
from functions.adapters.dynamodb.table import Table
from functions.domain.dead_letters.dead_letter_id import DEAD_LETTER_LIFE
from functions.domain.instants import to_seconds
from functions.ports.dead_letters import DeadLetter
from testkit.builders import NOON

LETTER = DeadLetter(tenant="acme", identity="a", dead_at=NOON, error="it hurts")


class FailingError(Exception):
    """The store has failed."""


class Client:
    """Remembers what was put. fails_at: the number of the put that fails."""

    def __init__(self, *, fails_at: int = 0) -> None:
        self.puts: list[dict[str, Any]] = []
        self.fails_at = fails_at

    def put_item(self, *, Item: dict[str, Any], **_: Any) -> dict[str, Any]:  # noqa: N803
        self.puts.append(Item)
        if len(self.puts) == self.fails_at:
            raise FailingError
        return {}

    @property
    def keys(self) -> list[str]:
        return [f"{put['p']['S']} {put['s']['S'][:13]}" for put in self.puts]


def test_the_hour_is_marked_before_its_first_letter_once_in_a_process():
    client: Any = Client()
    store = DynamoDBDeadLetters(Table(client, "letters"))
    hour = timedelta(hours=1)

    for letter in (
        LETTER,
        replace(LETTER, identity="b"),
        replace(LETTER, dead_at=NOON + hour),
        replace(LETTER, tenant="x"),
    ):
        store.put(letter)

    assert client.keys == [
        *("acme#hours 2027-03-01T12", "acme#2027-03-01T12 2027-03-01T12", "acme#2027-03-01T12 2027-03-01T12"),
        *("acme#hours 2027-03-01T13", "acme#2027-03-01T13 2027-03-01T13"),
        *("x#hours 2027-03-01T12", "x#2027-03-01T12 2027-03-01T12"),
    ]


def test_a_mark_outlives_every_dead_letter_of_its_hour():
    client: Any = Client()
    DynamoDBDeadLetters(Table(client, "letters")).put(LETTER)

    assert int(client.puts[0]["x"]["N"]) > to_seconds(NOON + timedelta(hours=1) + DEAD_LETTER_LIFE)


def test_a_dead_letter_is_not_kept_without_its_mark_and_a_mark_that_failed_is_put_again():
    client: Any = Client(fails_at=1)
    store = DynamoDBDeadLetters(Table(client, "letters"))

    with pytest.raises(FailingError):
        store.put(LETTER)
    assert client.keys == ["acme#hours 2027-03-01T12"]
    store.put(LETTER)

    assert client.keys[1:] == ["acme#hours 2027-03-01T12", "acme#2027-03-01T12 2027-03-01T12"]
