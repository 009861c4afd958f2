"""The report: a page, its pictures, and the tables of the terminal."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from simulation.outcome import Result
from simulation.page import write_report
from simulation.report import summary_of, table_of
from simulation.run import simulate
from simulation.scenario import Goal
from tests.simulation.small import a_scenario


@pytest.fixture(scope="module")
def result() -> Result:
    impossible = Goal("lag_p99_s", "lag that nobody can have", at_most=0.001)
    return simulate(a_scenario(goals=(impossible,), notes=("a <note>",)), seed=1)


def printed(renderable: object) -> str:
    written = StringIO()
    Console(width=160, file=written).print(renderable)
    return written.getvalue()


def test_a_page_and_its_picture_are_written(result: Result, tmp_path: Path) -> None:
    page = write_report(tmp_path / "new", [result])

    text = page.read_text()
    assert page.name == "small.html"
    assert (tmp_path / "new" / "small.png").stat().st_size > 20_000
    assert "<img src='small.png'" in text
    assert "lag that nobody can have" in text
    assert "✘ missed" in text
    assert "a &lt;note&gt;" in text
    assert "partition write units" in text


def test_several_scenarios_have_a_summary(result: Result, tmp_path: Path) -> None:
    page = write_report(tmp_path, [result, result])

    assert page.name == "index.html"
    assert "<a href='#small'>A small load</a>" in page.read_text()
    assert "✘ lag that nobody can have" in printed(summary_of([result]))


def test_the_table_has_lags_facts_cost_and_verdicts(result: Result) -> None:
    text = printed(table_of(result))

    for words in (
        "nothing is sampled",
        "critical",
        "all classes",
        "sorted set, polled each second",
        "write units/s, fullest partition of the timers",
        "USD a million jobs",
        "✘ lag that nobody can have",
        "✔ no job is lost",
    ):
        assert words in text
