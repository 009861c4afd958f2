"""docs/health.md: its commands are taken, its words and fields are those of the API, its numbers those of the code."""

import dataclasses
import re
import shlex
from typing import Any, get_type_hints

from functions.api.openapi import document
from functions.api.stage.health import MOST_BREAKERS, MOST_TENANTS
from functions.domain.stage.conditions import FRESH
from functions.domain.stage.health import AUDIT_BEHIND_AFTER, BEHIND_AFTER, MOST_WORST, UNSCANNED_AFTER, HealthStatus
from functions.domain.stage.lag_histogram import RELATIVE_ERROR
from functions.domain.stage.pulse import LAG_PERIOD, PERIOD
from functions.services.telemetry.pulse import NAMED_EVERY, WRITTEN_EVERY
from tests.api_server import Answer, ApiServer
from tests.command_line import run
from tests.pages import read_page
from tests.pages import values as table_values
from tests.unit.test_client_health import health_json
from tickwheel.client import health, pulse

SCHEMAS = document()["components"]["schemas"]
PAGE = read_page("health.md")
MINUTE = 60


def commands() -> list[list[str]]:
    lines = re.findall(r"^tickwheel ((?:status|top).*)$", PAGE, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def fields(schema: dict[str, Any]) -> set[str]:
    """The names of all fields, at any depth; those of breakers and lists are described by their own pages and words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return set() if name == "Breaker" else fields(SCHEMAS[name])
    found: set[str] = set()
    for name, inner in schema.get("properties", {}).items():
        found |= {name} | fields(inner)
    return found | (fields(schema["items"]) if "items" in schema else set())


def test_every_command_is_taken() -> None:
    found = commands()
    assert len(found) == 4
    for command in found:
        problem = Answer(403, {"type": "x", "title": "No", "status": 403, "code": "forbidden"})
        with ApiServer(Answer(200, health_json()), problem) as server:
            result = run(*command, server=server)
        assert '"ok"' in result.output or result.output.startswith(("ok", "✔ ok")), result.output


def test_every_status_has_a_row() -> None:
    assert re.findall(r"^\| `(\w+)` \| (?:the sweeper|an operator|one|none)", PAGE, re.MULTILINE) == [
        status.value for status in reversed(HealthStatus)
    ]


def test_every_field_is_described() -> None:
    known_elsewhere = {"tenant", "first", "priority"}

    missing = {name for name in fields(SCHEMAS["Health"]) - known_elsewhere if f"`{name}`" not in PAGE}

    assert missing == set()


def test_every_name_that_the_client_has_instead_is_in_the_table() -> None:
    values = [
        value
        for module in (health, pulse)
        for value in vars(module).values()
        if dataclasses.is_dataclass(value) and isinstance(value, type) and value.__module__ == module.__name__
    ]
    named = {
        (each.path, name)
        for value in values
        for name, hint in get_type_hints(value, include_extras=True).items()
        for each in getattr(hint, "__metadata__", ())
    }

    assert len(named) > 15
    assert {(row[0], row[1]) for row in table_values(PAGE, "| `GET /v1/health` |")} == named


def test_the_numbers_are_those_of_the_code() -> None:
    minutes = {
        "has been due for more than {} minutes": BEHIND_AFTER,
        "recorded cursors for {} minutes": UNSCANNED_AFTER,
        "made no progress for more than {} minutes": AUDIT_BEHIND_AFTER,
        "has published nothing for {} minutes": FRESH,
    }
    for text, length in minutes.items():
        assert text.format(int(length.total_seconds() // MINUTE)) in PAGE
    assert f"the `first` {MOST_BREAKERS}, as" in PAGE
    assert f"the `first` {MOST_TENANTS} with" in PAGE
    assert f"| the last {PERIOD} minutes and the current one" in PAGE
    assert f"over the last {LAG_PERIOD} minutes" in PAGE
    assert f"at most once in {WRITTEN_EVERY.total_seconds():g} seconds" in PAGE
    assert f"once in {NAMED_EVERY.total_seconds():g} seconds" in PAGE
    assert f"off by {RELATIVE_ERROR:.0%} at most".replace("%", " %") in PAGE
    assert f"up to {('one', 'two', 'three', 'four', 'five')[MOST_WORST - 1]} shards" in PAGE
