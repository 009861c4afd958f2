"""docs/stages.md: its numbers are those of the code, and a stage of one's own is as clean as those that are there."""

import dataclasses
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from infra.queue_sources import BATCH_SIZE
from infra.stage import PRIORITIES, STAGES, Stage
from infra.throughput import INVOCATIONS_OF_A_POLLER, MAX_CONCURRENCY, MOST_POLLERS
from infra.ticks import TARGETS_PER_RULE
from scripts.check_templates import lint, synthesise
from scripts.synthesis import ROOT

PAGE = (ROOT / "docs" / "stages.md").read_text()

LAMBDA_CONCURRENCY = 1_000
IN_FLIGHT = 120_000
TABLE_UNITS = 40_000
PARTITION_UNITS = 1_000
OF_DEAD_LETTERS = MAX_CONCURRENCY.start * len(PRIORITIES)


def rows(heading: str) -> dict[str, list[str]]:
    """The cells of a table by its first column."""
    lines = PAGE[PAGE.index(heading) :].split("\n\n", 1)[0].splitlines()[2:]
    cells = [
        [cell.strip() for cell in re.sub(r"\[(.*?)\]\(.*?\)", r"\1", line).strip("|").split("|")] for line in lines
    ]
    return {first: rest for first, *rest in cells}


NUMBERS = rows("| setting |")
QUOTAS = rows("| quota |")


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
            else str(limit)
            for priority, limit, pollers in zip(PRIORITIES, stage.max_concurrency, stage.pollers, strict=True)
        },
        **{
            f"`warm_throughput`, {table}": f"{warm.writes:,} writes, {warm.reads:,} reads a second" if warm else ""
            for table in ("timers", "ledger")
            for warm in [stage.warm_throughput.get(table)]
        },
        "`ready_capacity`": f"{stage.ready_capacity:,}",
        "worker timeout": seconds(stage.worker.timeout),
        "worker memory": f"{stage.worker.memory_mb:,} MB",
        "scanner memory": f"{stage.scanner.memory_mb:,} MB",
        "`warm_herds`": "yes" if stage.warm_herds else "no",
        "`audit_sample`": f"{stage.audit_sample:.0%}".replace("%", " %"),
        "logs kept": {"ONE_DAY": "1 day", "ONE_WEEK": "7 days", "ONE_MONTH": "30 days"}[stage.log_retention.name],
        "data retained": "yes" if stage.retained else "no",
    }


def seconds(duration: timedelta) -> str:
    return f"{duration.total_seconds():g} s"


@pytest.mark.parametrize("column", range(len(STAGES)), ids=[stage.name for stage in STAGES])
def test_the_page_says_the_numbers_of_a_stage(column: int) -> None:
    assert {name: cells[column] for name, cells in NUMBERS.items()} == told_of(STAGES[column])


@pytest.mark.parametrize(("name", "column"), [("dev", 1), ("prod", 2)])
def test_a_stage_fits_into_the_quotas_of_an_account(name: str, column: int) -> None:
    stage = Stage.named(name)
    limits = [limit for limit in stage.max_concurrency if limit is not None]
    shards = stage.wheel.scan_shards

    assert len(limits) == len(PRIORITIES), "a class without a limit can take all of the account's concurrency"
    assert QUOTAS["Lambda, concurrent invocations"][column] == (
        f"{sum(limits)} workers, {shards} scanners, {OF_DEAD_LETTERS} for dead letters"
    )
    assert sum(limits) + shards + OF_DEAD_LETTERS <= 0.9 * LAMBDA_CONCURRENCY
    assert number(QUOTAS["SQS, messages in flight a queue"][column]) == max(limits) * BATCH_SIZE <= IN_FLIGHT
    units = number(QUOTAS["DynamoDB, write units a second and table"][column])
    assert units == min(shards * PARTITION_UNITS, TABLE_UNITS)
    of_scanners, of_others = -(-shards // TARGETS_PER_RULE), 2
    assert number(QUOTAS["EventBridge, rules a bus"][column]) == of_scanners + of_others


def test_the_page_says_how_many_pollers_fill_what_a_queue_may_have_in_flight() -> None:
    full = IN_FLIGHT // INVOCATIONS_OF_A_POLLER // BATCH_SIZE
    most = [pollers.maximum for stage in STAGES for pollers in stage.pollers if pollers]

    assert f"More than {full:,}" in PAGE
    assert max(most) <= full < MOST_POLLERS.stop


def test_the_page_says_what_is_left_for_the_api() -> None:
    prod = Stage.named("prod")
    left = (
        LAMBDA_CONCURRENCY
        - sum(limit or 0 for limit in prod.max_concurrency)
        - prod.wheel.scan_shards
        - OF_DEAD_LETTERS
    )

    assert f"leave {left} of `prod`'s 1,000" in PAGE


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
