import pytest

from functions.adapters.dynamodb.tables import ALL_TABLES
from functions.domain.key_lengths import (
    DEAD_LETTER_IDENTITY,
    DESTINATION,
    IDENTITY,
    SCHEDULE_ID,
    SORT_KEY,
    TENANT,
    cut,
    fits,
)

PARTITION_KEY = 2_048
"""Bytes, which no key comes near."""

BUCKET = len("99999999999")
SHARD = len("9999")
MS = len("9999999999999")
HOUR = len("2027-01-31T09")
INSTANT = len("2027-01-31T09:00:00.000Z")
VERSION = len(str(2**63))

PARTITIONS = {
    "timers": BUCKET + 1 + SHARD,
    "ledger": TENANT + 1 + max(IDENTITY, DEAD_LETTER_IDENTITY),
    "schedules": TENANT,
    "schedule_state": TENANT + 1 + SCHEDULE_ID,
    "tenants": max(TENANT, len("~busy#0000000000")),
    "shards": SHARD,
    "dead_letters": TENANT + 1 + HOUR,
}
SORTS = {
    "timers": 1 + 1 + TENANT + 1 + MS + 1 + max(IDENTITY, SCHEDULE_ID + 1 + VERSION),
    "schedules": SCHEDULE_ID,
    "tenants": len("breaker#") + DESTINATION,
    "dead_letters": INSTANT + 1 + DEAD_LETTER_IDENTITY,
}


def test_what_is_as_long_as_it_may_be_fits_into_the_keys_of_every_table():
    assert set(PARTITIONS) == {schema.name for schema in ALL_TABLES}
    assert set(SORTS) == {schema.name for schema in ALL_TABLES if schema.sort_key}

    assert max(PARTITIONS.values()) <= PARTITION_KEY
    assert max(SORTS.values()) == SORTS["tenants"] == SORTS["dead_letters"] == SORT_KEY


@pytest.mark.parametrize("text", ["a", "a" * 10, "ü" * 5, "😀😀"])
def test_a_part_of_a_key_is_measured_in_bytes(text: str):
    assert fits(text, 10)


@pytest.mark.parametrize("text", ["", "a" * 11, "ü" * 6, "😀😀😀", "\ud800"])
def test_what_is_empty_too_long_or_half_a_character_is_no_part_of_a_key(text: str):
    assert not fits(text, 10)


def test_a_text_is_cut_between_characters():
    assert cut("a" * 20, 10) == "a" * 10
    assert cut("aüüüüüü", 10) == "aüüüü"
    assert cut("short", 10) == "short"
    assert cut("\ud800" * 9, 3) == "???"
