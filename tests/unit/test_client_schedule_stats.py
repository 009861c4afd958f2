"""The figures of a schedule in the client and on the command line: as values, as a table, as bars and as a picture."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import Answer, ApiServer
from tests.command_line import run
from tests.unit.test_client_schedules import a_client
from tickwheel.client.schedule_stats import ScheduleStats
from tickwheel.screens.schedule_stats import _bar

ACME = ["--tenant", "acme"]
PROBES: dict[str, Any] = {
    "id": "probes",
    "tenant": "acme",
    "version": 3,
    "status": "active",
    "since": "2030-01-31T09:00:00.000Z",
    "fires": 1_200,
    "misfires": 2,
    "skips": {"missed": 2},
    "gaps": {"count": 100, "p50_seconds": 0.5, "p95_seconds": 7_260.0},
    "expected": {"source": "distribution", "p50_seconds": 60.0, "p95_seconds": 259.5},
    "histogram": [
        {"from_seconds": 0.0, "to_seconds": 1.0, "count": 60, "expected_share": 0.3},
        {"from_seconds": 64.0, "to_seconds": 90.51, "count": 0, "expected_share": 0.7},
        {"from_seconds": 5_931_641.602, "to_seconds": None, "count": 40, "expected_share": 0.0},
    ],
    "waits": {"count": 4, "mean_seconds": 5_400.0},
    "runs": {
        "count": 10,
        "outcomes": {"failed": 1, "succeeded": 9},
        "lag": {"count": 9, "p50_seconds": 0.2, "p95_seconds": 1.0},
        "ended_after": {"count": 10, "p50_seconds": 2.0, "p95_seconds": 60.0},
    },
}
NEW: dict[str, Any] = {
    **PROBES,
    "fires": 0,
    "misfires": 0,
    "skips": {},
    "gaps": {"count": 0, "p50_seconds": None, "p95_seconds": None},
    "histogram": [],
    "waits": {"count": 0, "mean_seconds": None},
    "runs": {
        "count": 0,
        "outcomes": {},
        "lag": {"count": 0, "p50_seconds": None, "p95_seconds": None},
        "ended_after": {"count": 0, "p50_seconds": None, "p95_seconds": None},
    },
}
del NEW["expected"]


def test_the_figures_are_asked_for_and_read() -> None:
    with ApiServer(Answer(200, PROBES)) as server, a_client(server) as client:
        stats = client.schedules.stats("probes", tenant="acme")

    assert (server.requests[0].method, server.requests[0].path) == ("GET", "/v1/schedules/probes:stats?tenant=acme")
    assert stats.since == datetime(2030, 1, 31, 9, tzinfo=UTC)
    assert (stats.gaps.count, stats.gaps.p50, stats.gaps.p95) == (100, timedelta(seconds=0.5), timedelta(seconds=7_260))
    assert stats.expected is not None
    assert (stats.expected.source, stats.expected.count, stats.expected.is_shortest) == ("distribution", None, False)
    assert (stats.histogram[2].start, stats.histogram[2].end) == (timedelta(seconds=5_931_641.602), None)
    assert stats.waits.mean == timedelta(hours=1.5)
    assert stats.runs.outcomes == {"failed": 1, "succeeded": 9}


def test_a_new_schedule_has_no_quantiles() -> None:
    stats = ScheduleStats.from_json(NEW)

    assert (stats.gaps.p50, stats.expected, stats.waits.mean, stats.runs.lag.p95) == (None, None, None, None)


def test_the_command_shows_each_figure_and_the_gaps_as_bars() -> None:
    with ApiServer(Answer(200, PROBES), Answer(200, PROBES)) as server:
        result = run("schedule", "stats", "probes", *ACME, server=server)
        as_json = run("schedule", "stats", "probes", *ACME, "--json", server=server)

    assert result.exit_code == 0, result.output
    for said in (
        "3, since 2030-01-31T09:00:00",
        "100: p50 500ms, p95 2h 01m",
        "p50 1m 00s, p95 4m 19s, of independent events",
        "4, 1h 30m on average",
        "1 failed, 9 succeeded",
        "p50 200ms, p95 1.0s, of 9 runs",
        "counted gaps (expected: ┃)",
    ):
        assert said in result.stdout
    rows = [line for line in result.stdout.splitlines() if "█" in line or "┃" in line][1:]
    assert [row.split()[:5] for row in rows] == [
        ["0ms", "-", "1.0s", "60", "30.0"],
        ["1m", "04s", "-", "1m", "30s"],
        ["68d", "15h", "-", "40", "0.0"],
    ]
    assert json.loads(as_json.stdout) == PROBES


def test_a_new_schedule_has_no_bars() -> None:
    with ApiServer(Answer(200, NEW)) as server:
        result = run("schedule", "stats", "probes", *ACME, server=server)

    assert result.exit_code == 0, result.output
    assert "counted gaps" not in result.stdout


@pytest.mark.parametrize(
    ("counted", "expected", "bar"),
    [
        (1.0, 0.0, "█" * 40),
        (0.5, 0.5, "█" * 20 + "┃"),
        (0.5, 0.25, "█" * 10 + "┃" + "█" * 9),
        (0.0, 1.0, " " * 40 + "┃"),
        (0.000_1, 0.0, "▏"),
        (0.0, 0.0, ""),
    ],
)
def test_a_bar_ends_where_what_was_counted_does_and_is_marked_where_it_is_expected_to(
    counted: float, expected: float, bar: str
) -> None:
    assert _bar(counted, expected) == bar


class TestThePicture:
    @pytest.mark.parametrize(("name", "begins"), [("gaps.png", b"\x89PNG"), ("gaps.svg", b"<?xml")])
    def test_the_file_s_name_says_its_kind(self, tmp_path: Path, name: str, begins: bytes) -> None:
        with ApiServer(Answer(200, PROBES)) as server:
            result = run("schedule", "stats", "probes", *ACME, "--picture", str(tmp_path / name), server=server)

        assert result.exit_code == 0, result.output
        assert "wrote the picture to" in result.stderr
        assert (tmp_path / name).read_bytes().startswith(begins)

    @pytest.mark.parametrize(
        ("name", "answer", "said"),
        [
            ("gaps.doc", PROBES, "cannot be drawn"),
            ("missing/gaps.png", PROBES, "cannot be written"),
            ("gaps.png", NEW, "there is nothing to draw"),
        ],
    )
    def test_one_that_cannot_be_drawn_is_told_why(
        self, tmp_path: Path, name: str, answer: dict[str, Any], said: str
    ) -> None:
        with ApiServer(Answer(200, answer)) as server:
            result = run("schedule", "stats", "probes", *ACME, "--picture", str(tmp_path / name), server=server)

        assert result.exit_code == 1
        assert said in " ".join(result.stderr.split())
