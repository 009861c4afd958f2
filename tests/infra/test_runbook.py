"""Alarms, metrics and queries on one side, and the pages that explain them on the other."""

import dataclasses
import re
from typing import Any

import pytest

from functions.domain.events import EVENTS
from functions.domain.metrics import DIMENSIONS, INCIDENTS, MUST_BE_ZERO, VALUES
from infra.dashboard import PAGES
from infra.metrics import EMITTED
from infra.runbook import RUNBOOK
from infra.single_alarms import PATIENCE_S
from infra.stage import PRIORITIES, InvalidStage, Stage
from infra.stage_parts import Watching
from scripts.synthesis import ROOT, Templates, synthesise
from tests.command_line import parse_only
from tests.infra.test_watching import dashboard_of, events_in

PAGE = (ROOT / RUNBOOK).read_text()
TITLES = re.findall(r"^## (.+)$", PAGE, flags=re.MULTILINE)
BODIES = re.split(r"^## .+$", PAGE, flags=re.MULTILINE)[1:]
METRICS_PAGE = (ROOT / "docs" / "metrics.md").read_text()


def anchor_of(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def described(templates: Templates) -> list[dict[str, Any]]:
    kinds = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
    return [alarm["Properties"] for kind in kinds for alarm in templates.of_type(kind).values()]


def sections_of(templates: Templates) -> set[str]:
    return {alarm["AlarmDescription"].partition(f"{RUNBOOK}#")[2] for alarm in described(templates)}


def test_every_alarm_says_what_it_means_and_leads_to_a_section(templates: Templates) -> None:
    anchors = {anchor_of(title) for title in TITLES}
    for alarm in described(templates):
        meaning, link, section = alarm["AlarmDescription"].partition(f". What to do: {RUNBOOK}#")
        assert len(meaning) > 20
        assert link
        assert section in anchors


def test_a_runbook_with_an_address_is_linked_from_each_alarm_and_from_the_dashboard() -> None:
    address = "https://git.example.com/tickwheel/docs/runbook.md"
    templates = synthesise(dataclasses.replace(Stage.named("dev"), watching=Watching.FULL), runbook=address)

    assert [
        alarm for alarm in described(templates) if f". What to do: {address}#" not in alarm["AlarmDescription"]
    ] == []
    text = dashboard_of(templates)["widgets"][0]["properties"]["markdown"]
    assert f"[Jobs are late]({address}#jobs-are-late)" in text
    assert RUNBOOK not in text.replace(address, "")


@pytest.mark.parametrize(
    "address", ["docs/elsewhere.md", "http://example.com/runbook.md", "https://x/a b", "https://x/#y"]
)
def test_an_address_of_the_runbook_that_no_link_can_have_is_refused(address: str) -> None:
    with pytest.raises(
        InvalidStage, match=re.escape(f"the context value runbook is {address!r}: use an address such as")
    ):
        synthesise(Stage.named("dev"), runbook=address)


@pytest.mark.parametrize("page", PAGES)
def test_what_the_dashboard_says_pages_is_a_section_of_the_runbook(page: str) -> None:
    assert page in TITLES


def test_every_section_belongs_to_an_alarm(full: Templates, dev: Templates) -> None:
    assert {anchor_of(title) for title in TITLES} == sections_of(full) | sections_of(dev)


@pytest.mark.parametrize("title", TITLES)
def test_a_section_says_what_it_means_how_to_confirm_it_and_what_to_do(title: str) -> None:
    body = BODIES[TITLES.index(title)]
    assert re.findall(r"^\*\*(\w+)\.\*\* \S", body, flags=re.MULTILINE) == ["Meaning", "Confirm", "Do"]


def test_links_within_the_runbook_lead_somewhere() -> None:
    links = re.findall(r"\]\(#([^)]+)\)", PAGE)
    assert len(links) > 5
    assert set(links) <= {anchor_of(title) for title in TITLES}


def test_queries_of_the_runbook_look_for_events_that_are_logged() -> None:
    assert len(events_in(PAGE)) > 5
    assert events_in(PAGE) - set(EVENTS) == set()


@pytest.mark.parametrize("line", sorted(set(re.findall(r"`(tickwheel [^`]+)`", PAGE))))
def test_commands_of_the_runbook_exist_with_these_options(line: str) -> None:
    parse_only(line)


def test_every_metric_is_explained_with_the_functions_that_emit_it() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([a-z_, ]+) \| \S", METRICS_PAGE, flags=re.MULTILINE)
    explained = {name: set(services.split(", ")) for name, services in rows if name != INCIDENTS}
    names = {name for names in EMITTED.values() for name in names}
    assert len(rows) == len(explained) + 1
    assert explained == {name: {service for service in EMITTED if name in EMITTED[service]} for name in names}


def test_the_page_says_what_counts_as_an_incident() -> None:
    (row,) = [line for line in METRICS_PAGE.splitlines() if line.startswith(f"| `{INCIDENTS}` |")]
    assert set(re.findall(r"`(\w+)`", row)) == {INCIDENTS, *MUST_BE_ZERO}


def test_every_dimension_is_explained_with_all_that_it_says() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.+) \|$", METRICS_PAGE, flags=re.MULTILINE)
    explained = {(name, dimension): set(re.findall(r"`(\w+)`", text)) for name, dimension, text in rows}
    assert explained == {
        (name, dimension): set(VALUES[dimension]) for name, dimensions in DIMENSIONS.items() for dimension in dimensions
    }


def test_the_page_says_what_all_metrics_cost() -> None:
    apart = sum(len(VALUES[dimension]) for dimensions in DIMENSIONS.values() for dimension in dimensions)
    count = sum(len(names) for names in EMITTED.values()) + apart + 1
    text = " ".join(METRICS_PAGE.split())
    assert f"{count} metrics: {0.3 * count:.2f} USD, and {0.3 * apart:.2f} USD of it for the dimensions" in text


def test_the_runbook_says_the_patience_of_each_class() -> None:
    sentence = "1 minute for `critical`, 2 for `high`, 5 for `normal`, 15 for `low`"
    assert sentence in PAGE
    assert [PATIENCE_S[priority] // 60 for priority in PRIORITIES] == [1, 2, 5, 15]
