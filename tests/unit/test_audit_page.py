"""docs/audit.md says what the code says."""

import re
from pathlib import Path

from bench.audit import table
from functions.domain.audit import COLUMNS, LINE_LIMIT, ActionName
from functions.domain.instants import SECOND
from infra.audit_queries import queries
from infra.audit_trail import BUFFER_SECONDS, LIFE, MOST_SCANNED_BYTES, RESULTS_LIFE

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "audit.md").read_text()


def test_every_field_of_a_line_is_explained_and_no_other():
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| (string|int|bigint|boolean) \| \S", PAGE, flags=re.MULTILINE)
    explained = {name: kind for names, kind in rows for name in re.findall(r"`(\w+)`", names)}

    assert explained == {**COLUMNS, "day": "string"}


def test_the_costs_are_those_that_the_command_prints():
    assert "\n".join(table()) in PAGE


def test_the_queries_are_those_that_are_saved():
    assert re.findall(r"^\| ([A-Z][^|]+) \| \S", PAGE, flags=re.MULTILINE) == [
        each.title for each in queries(2 * SECOND)
    ]


def test_the_figures_are_those_of_the_code():
    assert f"deleted after {LIFE.to_days():g} days, query results after {RESULTS_LIFE.to_days():g}" in PAGE
    assert f"at most {LINE_LIMIT // 1_000} KB" in PAGE
    assert f"may scan {MOST_SCANNED_BYTES // 1024**3} GB" in PAGE
    assert BUFFER_SECONDS == 5 * 60
    assert "within five minutes" in " ".join(PAGE.split())


def test_the_examples_of_the_page_are_actions():
    named = set(re.findall(r"`((?:job|schedule|tenant|stage|operation|breaker)\.\w+)`", PAGE))

    assert len(named) >= 3
    assert named <= {action.value for action in ActionName}
