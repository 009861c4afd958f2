"""docs/cost.md and `tickwheel cost`: the page's tables are what the command tells, and its commands are taken."""

import itertools
import json
import math
import re
import shlex
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench import cost_page, first_page
from infra.stage import STAGES
from tests import command_line

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "cost.md").read_text()
SIZES = (
    ("--jobs-per-day", "10000", "--schedules", "100", "--stage", "small"),
    ("--jobs-per-day", "1000000", "--schedules", "10000"),
    ("--jobs-per-day", "30000000", "--schedules", "100000"),
)


run = partial(command_line.run, "cost", columns=120)


def priced(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_pages_are_what_the_command_writes() -> None:
    comparison, first = DOCS / "comparison.md", DOCS.parent / "README.md"

    assert cost_page.written(PAGE) == PAGE
    assert cost_page.written_comparison(comparison.read_text()) == comparison.read_text()
    assert cost_page.written_keys(cost_page.KEYS.read_text()) == cost_page.KEYS.read_text()
    assert first_page.written(first.read_text()) == first.read_text()


def test_a_figure_that_is_better_than_the_measured_one_is_noticed() -> None:
    first = (DOCS.parent / "README.md").read_text()
    (lag,) = re.findall(r"^\| lag, default precision, far \| .* ms \| (.*) ms \|$", first, re.MULTILINE)

    assert first_page.written(first.replace(f"{lag} ms |", "1,031 ms |")) == first


@pytest.mark.parametrize("system", ["tickwheel", "eventbridge_scheduler"])
def test_the_tables_are_what_the_command_says(system: str) -> None:
    bills = [priced(*size)[system] for size in SIZES]
    services: dict[str, list[float]] = defaultdict(lambda: [0.0] * len(SIZES))
    for column, bill in enumerate(bills):
        for line in bill["lines"]:
            services[line["service"]][column] += line["usd"]

    names = {"tickwheel": "Tickwheel", "eventbridge_scheduler": "EventBridge Scheduler"}
    table = PAGE.partition(f"\n| {names[system]} | 10,000")[2].partition("\n\n")[0]
    for service, sums in services.items():
        (row,) = re.findall(rf"^\| {service} \| (.*) \|$", table, re.MULTILINE)
        assert [float(cell.replace(",", "")) for cell in row.split(" | ")] == [
            pytest.approx(usd, abs=0.006) for usd in sums
        ]
    for name, field in (
        ("total", "usd"),
        ("after free tiers", "usd_after_free"),
        ("a million executions", "usd_a_million"),
    ):
        assert f"| {name} | {' | '.join(f'{bill[field]:,.2f}' for bill in bills)} |" in PAGE


def test_a_newcomer_finds_his_month_and_how_its_largest_lines_come_about_on_top() -> None:
    top = PAGE.partition("## Three sizes")[0]
    month = priced("--jobs-per-day", "10000", "--schedules", "100", "--stage", "small")
    sums = [
        month[system][field] for system in ("tickwheel", "eventbridge_scheduler") for field in ("usd", "usd_after_free")
    ]
    example = priced("--jobs-per-day", "100000", "--schedules", "1000")["tickwheel"]

    assert f"| 10,000 jobs a day, 100 schedules | `small` | {' | '.join(f'{usd:,.2f}' for usd in sums)} |" in top
    assert f"| total |  | {example['usd']:,.2f} |" in top
    assert f"are {3_030_000:,} executions a month" in top


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


def test_keys_of_a_file_cost_what_its_page_says() -> None:
    keyed, plain = (priced("--jobs-per-day", "1000000", "--keyed-share", share)["tickwheel"]["usd"] for share in "10")

    assert f"{plain:.2f} USD a month instead of {keyed:.2f}" in (DOCS / "command-line.md").read_text()


def test_the_picture_marks_the_crossing_of_the_page() -> None:
    picture = (DOCS / "pictures" / "cost.png").read_bytes()

    assert f"Description\0{priced(*SIZES[1])['cheaper_from_jobs_a_day']:,.0f} jobs a day".encode() in picture


def test_the_command_of_the_picture_has_the_options_of_the_page() -> None:
    (drawing,) = [line for line in re.findall(r"^tickwheel cost (.*)$", PAGE, re.MULTILINE) if "--picture" in line]

    assert tuple(shlex.split(drawing)) == (*SIZES[1], "--picture", "cost.png")


def test_every_command_is_taken(tmp_path: Path) -> None:
    commands = [shlex.split(line) for line in re.findall(r"^tickwheel cost (.*)$", PAGE, re.MULTILINE)]
    assert len(commands) == 7
    for command in commands:
        said = [str(tmp_path / word) if word.endswith(".png") else word for word in command]
        assert run(*said).exit_code == 0, command

    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")


def test_every_option_of_an_assumption_changes_the_bill() -> None:
    usual = {size: priced(*size)["tickwheel"]["usd"] for size in SIZES}
    options = re.findall(r"`(--[a-z-]+)`(?=[,| ])", PAGE.partition("| assumed")[2])
    assert options == [
        *("--target-ms", "--batch-ms", "--hold-ms", "--tick-ms", "--fill", "--classes"),
        *("--pollers", "--cold", "--start-ms", "--traced", "--rare"),
    ]
    values = {"--classes": "1,1,1,1", "--fill": "2"}
    exact = (*SIZES[2], "--exact-share", "0.1")
    usual[exact] = priced(*exact)["tickwheel"]["usd"]
    for option in options:
        said = (option, values.get(option, "1"))
        assert any(priced(*size, *said)["tickwheel"]["usd"] != usd for size, usd in usual.items()), option


def test_two_stages_are_shown_beside_each_other() -> None:
    compared = (*SIZES[0][:4], "--stage", "dev", "--against", "prod")
    result, found = run(*compared), priced(*compared)

    assert result.exit_code == 0
    assert found["against"] == priced(*SIZES[0][:4], "--stage", "prod")
    sums = [found["tickwheel"]["usd"], found["against"]["tickwheel"]["usd"], found["eventbridge_scheduler"]["usd"]]
    assert re.search(r"total +" + " +".join(f"{usd:,.2f}" for usd in sums), result.stdout)
    assert re.search(r"service +dev +prod +EventBridge Scheduler", result.stdout)


def test_any_two_stages_can_be_compared() -> None:
    names = [stage.name for stage in STAGES if not stage.emulated]

    for stage, other in itertools.pairwise(names):
        found = priced("--jobs-per-day", "0", "--stage", stage, "--against", other)
        assert (found["stage"], found["against"]["stage"]) == (stage, other)


def test_the_crossing_is_told_by_how_full_batches_are() -> None:
    found, shown = priced(*SIZES[1]), run(*SIZES[1]).stdout
    full = priced(*SIZES[1], "--fill", "10")

    assert found["cheaper_from_jobs_a_day_by_fill"]["10"] == full["cheaper_from_jobs_a_day"]
    assert full["cheaper_from_jobs_a_day"] < (found["cheaper_from_jobs_a_day_by_fill"]["5"] or math.inf)
    assert f"at 10 a batch from {full['cheaper_from_jobs_a_day']:,.0f} on" in " ".join(shown.split())
    assert f"Messages of a batch: {found['fill']['tickwheel']:.1f} here" in shown


def test_people_are_shown_both_bills_with_their_totals() -> None:
    result = run(*SIZES[1])

    assert result.exit_code == 0
    bill = priced(*SIZES[1])
    for system in ("tickwheel", "eventbridge_scheduler"):
        assert re.search(rf"total +{bill[system]['usd']:,.2f}", result.stdout)
    assert f"Cheaper than EventBridge Scheduler from {bill['cheaper_from_jobs_a_day']:,.0f} jobs a day" in result.stdout
    assert "receives of nothing *" in result.stdout


def test_a_stage_or_a_delivery_that_there_is_not_is_wrong_usage() -> None:
    for wrong in (("--stage", "nowhere"), ("--against", "nowhere"), ("--delivery", "twice")):
        result = run("--jobs-per-day", "1", *wrong)
        assert result.exit_code == 2
        assert "choose from" in result.stderr or "use --context" in result.stderr


@pytest.mark.parametrize("classes", ["1,1,1", "a,b,c,d", "0,0,0,0", "1,-1,1,1", "inf,1,1,1", "nan,1,1,1"])
def test_shares_that_are_none_are_wrong_usage(classes: str) -> None:
    result = run("--jobs-per-day", "1", "--classes", classes)

    assert result.exit_code == 2
    assert "use four shares, of critical, high, normal, low" in " ".join(result.stderr.split())
