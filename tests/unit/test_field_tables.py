"""The tables of fields in docs/ are complete, and list nothing else: they follow the API's description."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from functions.api.openapi import document
from tests.pages import read_page, table

SCHEMAS: Mapping[str, Any] = document()["components"]["schemas"]

TABLES = (
    ("using.md", "| field | default | meaning |\n", "JobBody"),
    ("using.md", "| field | default | meaning | command line |", "HttpBody"),
    ("tenants.md", "| figure | counts |", "UsageFigures"),
    ("dead-letters.md", "| filter | meaning |", "PurgeBody"),
)
IN_THE_TEXT = {"PurgeBody": {"after", "dry_run"}}
"""Fields that the page has outside of the table."""


@pytest.mark.parametrize(("page", "heading", "shape"), TABLES, ids=[shape for _, _, shape in TABLES])
def test_a_table_has_a_row_for_each_field(page: str, heading: str, shape: str) -> None:
    rows = {name for row in table(read_page(page), heading) for name in names_in(row[0])}
    described_elsewhere = IN_THE_TEXT.get(shape, set())

    assert rows | described_elsewhere == set(SCHEMAS[shape]["properties"])
    assert all(f"`{name}`" in read_page(page) or f'"{name}"' in read_page(page) for name in described_elsewhere)


def test_the_row_of_retries_has_the_parts_of_a_policy() -> None:
    (row,) = (row for row in table(read_page("using.md"), TABLES[0][1]) if row[0] == "`retry`")
    strategies = set(SCHEMAS["Strategy"]["enum"])

    assert set(names_in(row[2])) - strategies == set(SCHEMAS["RetryBody"]["properties"])
    assert set(names_in(row[2])) >= strategies


def test_what_a_target_may_report_has_its_fields() -> None:
    rows = {verb: names_in(body) for verb, body, _ in table(read_page("jobs.md"), "| request | body | answers |")}

    assert {verb: set(names) for verb, names in rows.items()} == {
        verb: set(SCHEMAS[f"{verb.title()}Body"]["properties"]) for verb in ("heartbeat", "complete", "fail")
    }


def test_a_rule_is_each_of_those_that_a_definition_may_have() -> None:
    examples = (row[0] for row in table(read_page("schedules.md"), "| field | fires | command line |"))
    rules = {re.findall(r'"(\w+)":', example)[0] for example in examples}

    assert rules <= set(SCHEMAS["ScheduleBody"]["properties"])
    assert rules == {"at", "cron", "every", "rrule", "poisson"}


@pytest.mark.parametrize("shape", ["ScheduleBody", "CalendarBody", "WindowBody", "BackfillBody", "TriggerBody"])
def test_the_page_of_schedules_names_every_field_of_what_is_sent(shape: str) -> None:
    page = read_page("schedules.md")

    missing = {name for name in SCHEMAS[shape]["properties"] if not re.search(rf'[`"]{name}[`":]', page)}

    assert missing == set()


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([a-z_]+)`", cell)
