"""docs/cost.md and `tickwheel cost`: the page's tables are what the command tells, and its commands are taken."""

import json
import re
import shlex
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import command_line

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "cost.md").read_text()
SIZES = (
    ("--jobs-per-day", "10000", "--schedules", "100", "--stage", "dev"),
    ("--jobs-per-day", "1000000", "--schedules", "10000"),
    ("--jobs-per-day", "30000000", "--schedules", "100000"),
)


run = partial(command_line.run, "cost", columns=120)


def priced(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("system", ["tickwheel", "eventbridge_scheduler"])
def test_the_tables_are_what_the_command_says(system: str) -> None:
    bills = [priced(*size)[system] for size in SIZES]
    services: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(SIZES))
    for column, bill in enumerate(bills):
        for line in bill["lines"]:
            services[line["service"]][column] += line["usd"]

    for service, sums in services.items():
        assert f"| {service} | {' | '.join(f'{usd:,.2f}' for usd in sums)} |" in PAGE
    for name, field in (("total", "usd"), ("a million executions", "usd_a_million")):
        assert f"| {name} | {' | '.join(f'{bill[field]:,.2f}' for bill in bills)} |" in PAGE


def test_the_comparison_is_what_the_command_says() -> None:
    page = (DOCS / "comparison.md").read_text()
    bills = [priced(*size) for size in SIZES]
    names = {"Tickwheel": "tickwheel", "EventBridge Scheduler": "eventbridge_scheduler"}
    others = ("Lambda durable functions", "Step Functions, standard", "Temporal Cloud")

    for name in (*names, *others):
        found = [bill[names[name]] if name in names else bill["others"][name] for bill in bills]
        cells = " | ".join(f"{each['usd']:,.2f} ({each['usd_a_million']:,.2f} a million)" for each in found)
        assert f"| {name} | {cells} |" in page
    assert all(tuple(bill["others"]) == others for bill in bills)


def test_the_crossing_is_what_the_command_says() -> None:
    assert f"{priced(*SIZES[1])['cheaper_from_jobs_a_day']:,.0f} jobs a day on `prod`" in PAGE


def test_the_first_page_says_what_an_idle_hour_costs() -> None:
    month = priced("--jobs-per-day", "0", "--stage", "dev")["tickwheel"]["usd"]

    assert f"costs {month / 720:.3f} USD on `dev`" in (DOCS.parent / "README.md").read_text()


def test_the_picture_marks_the_crossing_of_the_page() -> None:
    picture = (DOCS / "pictures" / "cost.png").read_bytes()

    assert f"Description\0{priced(*SIZES[1])['cheaper_from_jobs_a_day']:,.0f} jobs a day".encode() in picture


def test_the_command_of_the_picture_has_the_options_of_the_page() -> None:
    (drawing,) = [line for line in re.findall(r"^tickwheel cost (.*)$", PAGE, re.MULTILINE) if "--picture" in line]

    assert tuple(shlex.split(drawing)) == (*SIZES[1], "--picture", "cost.png")


def test_an_idle_stage_is_reported_in_the_page_and_its_decision() -> None:
    idle = priced("--jobs-per-day", "1", "--stage", "dev")["tickwheel"]
    decision = (DOCS / "decisions" / "0023-metrics-are-counted-by-the-hours-with-values.md").read_text()

    assert f"{idle['usd']:.2f} USD a month" in PAGE
    assert f"| total | {idle['usd']:.2f} |" in decision
    for line in idle["lines"]:
        if line["service"] == "CloudWatch" and line["usd"] >= 0.01:
            assert f"| {line['what']} | {line['usd']:.2f} |" in decision


def test_what_pollers_cost_is_what_the_command_says() -> None:
    def usd(stage: str, what: str) -> float:
        (line,) = [
            each
            for each in priced("--jobs-per-day", "1", "--stage", stage)["tickwheel"]["lines"]
            if each["what"].startswith(what)
        ]
        return line["usd"]

    assert f"day and night: {usd('dev', 'receives of nothing'):.2f} USD a month" in PAGE
    assert f"for {usd('scale', 'provisioned pollers'):,.0f} USD a month" in PAGE


def test_every_command_is_taken(tmp_path: Path) -> None:
    commands = [shlex.split(line) for line in re.findall(r"^tickwheel cost (.*)$", PAGE, re.MULTILINE)]
    assert len(commands) == 5
    for command in commands:
        said = [str(tmp_path / word) if word.endswith(".png") else word for word in command]
        assert run(*said).exit_code == 0, command

    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")


def test_every_option_of_an_assumption_changes_the_bill() -> None:
    usual = {size: priced(*size)["tickwheel"]["usd"] for size in SIZES[:2]}
    options = re.findall(r"`(--[a-z-]+)`(?=[,| ])", PAGE.partition("| assumed")[2])
    assert options == [
        *("--target-ms", "--batch-ms", "--tick-ms", "--fill", "--pollers", "--cold", "--start-ms", "--traced", "--rare")
    ]
    for option in options:
        assert any(priced(*size, option, "1")["tickwheel"]["usd"] != usd for size, usd in usual.items()), option


def test_people_are_shown_both_bills_with_their_totals() -> None:
    result = run(*SIZES[1])

    assert result.exit_code == 0
    bill = priced(*SIZES[1])
    for system in ("tickwheel", "eventbridge_scheduler"):
        assert re.search(rf"total +{bill[system]['usd']:,.2f}", result.stdout)
    assert f"Cheaper than EventBridge Scheduler from {bill['cheaper_from_jobs_a_day']:,.0f} jobs a day" in result.stdout
    assert "receives of nothing *" in result.stdout


def test_a_stage_or_a_delivery_that_there_is_not_is_wrong_usage() -> None:
    for wrong in (("--stage", "nowhere"), ("--delivery", "twice")):
        result = run("--jobs-per-day", "1", *wrong)
        assert result.exit_code == 2
        assert "choose from" in result.stderr or "use --context" in result.stderr
