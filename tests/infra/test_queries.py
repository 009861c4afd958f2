"""The saved queries, the vocabulary that they ask by, and the page that names them."""

import re

import pytest

from functions.domain.events import EVENTS, KEYS
from functions.domain.metrics import VALUES
from infra.metrics import EMITTED
from infra.queries import OF_ESSENTIAL, QUERIES
from scripts.synthesis import ROOT, Templates
from tests.infra.test_watching import events_in

PAGE = (ROOT / "docs" / "events.md").read_text()
ALL = QUERIES + OF_ESSENTIAL
GIVEN = frozenset({"@timestamp", "@message", "service", "message", "level", "correlation_id", "xray_trace_id"})
"""What CloudWatch and Powertools give each line."""

_WORDS = frozenset(
    {
        "fields",
        "filter",
        "sort",
        "stats",
        "by",
        "as",
        "like",
        "in",
        "and",
        "or",
        "asc",
        "desc",
        "count",
        "pct",
        "bin",
        "sum",
        "unnest",
        "into",
        "jsonParse",
        "ispresent",
    }
)


def fields_of(lines: tuple[str, ...]) -> set[str]:
    """What a query asks for, but for what it names itself."""
    text = re.sub(r'"[^"]*"|(?<=\w)\.\w+', "", " ".join(lines))
    named = set(re.findall(r"\b(?:as|into) (\w+)", text))
    return set(re.findall(r"@?[a-z_]\w*", text)) - _WORDS - named - {"m", "h"}


def test_every_stage_on_aws_keeps_the_queries_over_all_functions(dev: Templates, full: Templates) -> None:
    for templates, queries in ((dev, ALL), (full, QUERIES)):
        kept = [query["Properties"] for query in templates.of_type("AWS::Logs::QueryDefinition").values()]
        assert {query["Name"] for query in kept} == {f"Tickwheel dev/{query.name}" for query in queries}
        for query in kept:
            assert len(query["LogGroupNames"]) == len(templates.functions())


def test_queries_in_place_of_metrics_ask_for_what_is_observed() -> None:
    counted = {name for names in EMITTED.values() for name in names}
    for query in OF_ESSENTIAL:
        asked = set(re.findall(r"(?:counts|value)\.(\w+)", " ".join(query.lines)))
        assert asked
        assert asked - counted - set(VALUES) == set()


@pytest.mark.parametrize("query", ALL, ids=lambda query: query.name)
def test_a_query_asks_only_for_what_lines_have(query) -> None:
    fields = fields_of(query.lines)
    assert fields
    assert fields - GIVEN - set(KEYS) == set()


@pytest.mark.parametrize("query", ALL, ids=lambda query: query.name)
def test_a_query_that_filters_by_event_asks_for_keys_of_that_event(query) -> None:
    events = events_in(" ".join(query.lines))
    assert events - set(EVENTS) == set()
    known = {key for name in events for key in (*EVENTS[name].keys, *EVENTS[name].optional)}
    if events:
        assert fields_of(query.lines) - GIVEN - known == set()


def test_the_page_names_the_queries() -> None:
    rows = [f"| {query.name} | {query.answers} |" for query in ALL]
    assert [row for row in rows if row not in PAGE] == []
    assert PAGE.count("\n| ", PAGE.index("## Saved"), PAGE.index("## Vocabulary")) == len(rows) + 1


def test_a_function_that_nobody_asks_for_is_found_by_the_check() -> None:
    assert fields_of(('filter message = "x" and nonsense = 3', "stats pct(lag_ms, 9) as late by bin(1m)")) == {
        "message",
        "nonsense",
        "lag_ms",
    }
