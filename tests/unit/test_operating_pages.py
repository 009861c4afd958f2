"""The pages for whoever runs a stage: their commands exist with these options, and their links lead somewhere."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from functions.adapters.dynamodb.tables import ALL_TABLES
from infra.stage import Stage
from scripts.synthesis import synthesise
from tests.command_line import parse_only
from tests.pages import DOCS, commands, read_page

TEMPLATES = Path(__file__).parents[1] / "infra" / "templates"
PAGES = ("restore.md", "upgrading.md", "game-days.md", "stages.md")


def commands_of(page: str) -> list[str]:
    text = read_page(page)
    found = {*re.findall(r"`(tickwheel [^`]+)`", text), *commands(text)}
    return sorted(line.partition(" #")[0].strip() for line in found)


@pytest.mark.parametrize("line", sorted({line for page in PAGES for line in commands_of(page)}))
def test_a_command_exists_with_these_options(line: str) -> None:
    parse_only(line)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for file, anchor in re.findall(r"\]\(((?:\.\./)?[A-Za-z0-9-]*\.md)?(?:#([^)]+))?\)", read_page(page)):
        target = read_page(file or page)
        titles = re.findall(r"^#+ (.+)$", target, flags=re.MULTILINE)
        anchors = {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}
        assert not anchor or anchor in anchors, f"{file}#{anchor}"


def test_the_tables_without_a_time_to_live_are_reported_to_whoever_restores_them() -> None:
    found = re.search(r"time to live on `x` \(all but ([^)]+)\)", read_page("restore.md"))
    assert found is not None
    assert set(re.findall(r"`(\w+)`", found[1])) == {schema.name for schema in ALL_TABLES if not schema.ttl_attribute}


def test_whoever_takes_the_scheduler_down_learns_of_all_that_goes() -> None:
    resources = json.loads((TEMPLATES / "dev-scheduler.json").read_text())["Resources"].values()
    listed = re.search(r"\| resource \|.*?\n\n", read_page("upgrading.md"), re.DOTALL)
    assert listed is not None
    cells = [row.split("|")[2] for row in listed[0].strip().splitlines()[2:]]

    assert {resource.get("DeletionPolicy", "Delete") for resource in resources} == {"Delete"}
    assert {resource["Type"].split("::")[1] for resource in resources} == {
        name for cell in cells for name in re.findall(r"`(\w+)`", cell)
    }


def test_whoever_takes_the_scheduler_down_learns_which_buckets_stay() -> None:
    stage = dataclasses.replace(Stage.named("dev"), submission_files=True)
    buckets = synthesise(stage).of_type("AWS::S3::Bucket")
    names = {"Payloads": "payloads", "Files": "files of jobs", "AuditBucket": "audit trail"}
    assert {key[:-8] for key in buckets} == set(names)
    assert all(bucket["DeletionPolicy"].startswith("Retain") for bucket in buckets.values())

    section = read_page("upgrading.md").partition("## Taking the scheduler down")[2]
    stays, _, removed = section.partition("### Removing the data too")
    target = next(line for line in (DOCS.parent / "Makefile").read_text().splitlines() if line.startswith("destroy:"))
    for name in names.values():
        assert name in stays.split("Deploy again")[0]
        assert name in target
        assert name.split(" of ")[0] in removed


def test_whoever_takes_the_scheduler_down_learns_what_to_do_with_its_outputs() -> None:
    outputs = json.loads((TEMPLATES / "dev-scheduler.json").read_text())["Outputs"]
    section = read_page("upgrading.md").partition("## Taking the scheduler down")[2]

    assert [name for name in outputs if f"`{name}`" not in section] == []
