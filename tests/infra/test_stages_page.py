"""docs/stages.md: its numbers are those of the code, and a stage of one's own is as clean as those that are there."""

import dataclasses
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from infra.capacity import CONCURRENCY, IN_FLIGHT, QUOTAS, RULES, TABLE_WRITES, Quota, needed_quotas
from infra.queue_sources import BATCH_SIZE
from infra.stage import PRIORITIES, STAGES, Stage
from infra.throughput import INVOCATIONS_OF_A_POLLER, MOST_POLLERS
from scripts.check_templates import lint, synthesise
from scripts.synthesis import ROOT

PAGE = (ROOT / "docs" / "stages.md").read_text()


def rows(heading: str) -> dict[str, list[str]]:
    """The cells of a table by its first column."""
    lines = PAGE[PAGE.index(heading) :].split("\n\n", 1)[0].splitlines()[2:]
    cells = [
        [cell.strip() for cell in re.sub(r"\[(.*?)\]\(.*?\)", r"\1", line).strip("|").split("|")] for line in lines
    ]
    return {first: rest for first, *rest in cells}


NUMBERS = rows("| setting |")
TOLD = rows("| quota |")


def number(text: str) -> int:
    found = re.match(r"[\d,]+", text)
    assert found is not None, text
    return int(found[0].replace(",", ""))


def told_of(stage: Stage) -> dict[str, str]:
    """What the table should say of a stage."""
    wheel = stage.wheel
    assert wheel.write_shards == wheel.scan_shards
    return {
        **{name: seconds(getattr(wheel, name.lower())) for name in ("BUCKET", "LOOKAHEAD", "SKEW", "GUARD")},
        "shards": str(wheel.scan_shards),
        **{
            f"`max_concurrency`, {priority}": f"{pollers.minimum} to {pollers.maximum:,} pollers"
            if pollers
            else str(limit or "no limit")
            for priority, limit, pollers in zip(PRIORITIES, stage.max_concurrency, stage.pollers, strict=True)
        },
        **{
            f"`warm_throughput`, {table}": f"{warm.writes:,} writes, {warm.reads:,} reads a second" if warm else ""
            for table in Stage.named("scale").warm_throughput
            for warm in [stage.warm_throughput.get(table)]
        },
        "`ready_capacity`": f"{stage.ready_capacity:,}",
        "worker timeout": seconds(stage.worker.timeout),
        "worker memory": f"{stage.worker.memory_mb:,} MB",
        "scanner memory": f"{stage.scanner.memory_mb:,} MB",
        "`watching`": stage.watching.value,
        "`traces`": "yes" if stage.traces else "no",
        "`warm_herds`": "yes" if stage.warm_herds else "no",
        "`ready_critical`": str(stage.ready_critical),
        "`audit_sample`": f"{stage.audit_sample:.0%}".replace("%", " %"),
        "logs kept": {"ONE_DAY": "1 day", "ONE_WEEK": "7 days", "ONE_MONTH": "30 days"}[stage.log_retention.name],
        "data retained": "yes" if stage.retained else "no",
    }


def seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():g} s"


def test_every_quota_leads_to_the_page_of_aws_that_has_it() -> None:
    quotas = PAGE[PAGE.index("| quota |") :].split("\n\n", 1)[0].splitlines()[2:]
    assert len(quotas) == len(TOLD) > 0
    for line in quotas:
        assert re.match(r"\| \[[^]]+\]\(https://docs\.aws\.amazon\.com/[^)]+\.html\)", line), line


@pytest.mark.parametrize("column", range(len(STAGES)), ids=[stage.name for stage in STAGES])
def test_the_page_says_the_numbers_of_a_stage(column: int) -> None:
    assert {name: cells[column] for name, cells in NUMBERS.items()} == told_of(STAGES[column])


@pytest.mark.parametrize(("name", "column"), [("dev", 1), ("prod", 2)])
def test_the_page_says_what_a_stage_needs_of_an_account(name: str, column: int) -> None:
    stage = Stage.named(name)
    needs = {need.quota: need for need in needed_quotas(stage)}
    told = {quota: cells[column] for quota in QUOTAS for first, cells in TOLD.items() if first == quota.name}

    assert None not in stage.max_concurrency, "a class without a limit can take all of the account's concurrency"
    assert needs[CONCURRENCY].least <= 0.9 * CONCURRENCY.default
    assert told.pop(CONCURRENCY) == needs[CONCURRENCY].because
    assert len(told) >= 4
    assert {quota: number(text) for quota, text in told.items()} == {quota: needs[quota].least for quota in told}


@pytest.mark.parametrize("quota", [CONCURRENCY, IN_FLIGHT, TABLE_WRITES, RULES], ids=lambda quota: quota.name)
def test_the_page_says_what_an_account_has(quota: Quota) -> None:
    assert number(TOLD[quota.name][0]) == quota.default
    assert f"]({quota.page})" in PAGE


def test_the_page_says_how_many_pollers_fill_what_a_queue_may_have_in_flight() -> None:
    full = int(IN_FLIGHT.default) // INVOCATIONS_OF_A_POLLER // BATCH_SIZE
    most = [pollers.maximum for stage in STAGES for pollers in stage.pollers if pollers]

    assert f"More than {full:,}" in PAGE
    assert max(most) <= full < MOST_POLLERS.stop


def test_the_page_says_what_is_left_for_the_api() -> None:
    left = CONCURRENCY.default - Stage.named("prod").concurrency

    assert f"leave {left:g} of `prod`'s 1,000" in PAGE


def test_a_stage_of_ones_own_is_as_clean_as_those_that_are_there(tmp_path: Path) -> None:
    prod = Stage.named("prod")
    changes: dict[str, Any] = {
        "name": "mine2",
        "wheel": dataclasses.replace(prod.wheel, write_shards=7, scan_shards=12),
        "max_concurrency": (None, 20, 50, 2),
        "ready_capacity": 50_000,
        "operators": ("arn:aws:iam::123456789012:role/on-call-*",),
        "alarm_email": "on-call@example.com",
        "allowed_networks": ("10.20.0.0/16",),
        "targets": ("https://*", "arn:aws:sqs:*:123456789012:orders-*"),
    }

    templates = synthesise(dataclasses.replace(prod, **changes), into=tmp_path)

    assert len(templates) == 2
    lint(templates)
