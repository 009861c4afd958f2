"""`tickwheel top` against a real server: what it prints, how often it looks, and that it fits."""

import io
import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from rich.console import Console

from scripts import draw_top
from tests import command_line
from tests.api_server import Answer, ApiServer
from tests.unit.test_client_health import (
    LAST_MINUTE,
    class_json,
    health_json,
    lag_json,
    minute_json,
    pulse_json,
    troubled_json,
)
from tickwheel.client.health import Health
from tickwheel.screens.top import lag_text, rate_text, sparkline, top_of

PROBLEM = Answer(403, {"type": "x", "title": "No", "status": 403, "code": "forbidden"})


run = partial(command_line.run, "top")


def busy_json(**changes: Any) -> dict[str, Any]:
    """A stage in which everything goes on."""
    last = minute_json(
        LAST_MINUTE,
        submitted=75_000,
        promoted=1_234_567,
        started=2_502,
        succeeded=600,
        retried=12,
        lag=lag_json(12, 480, 1_520, 61_000, attempts=2_502),
    )
    pulse = pulse_json(
        last=last,
        lag={"normal": lag_json(12, 480, 1_520, 61_000, attempts=2_502)},
        executions=[
            {"tenant": "a-tenant-with-a-very-long-name-[red]", "count": 1_234_567},
            {"tenant": "b", "count": 1},
        ],
        failures=[{"tenant": "umbrella", "count": 12}],
    )
    return health_json(pulse=pulse, **changes)


def screen(answer: dict[str, Any], *, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(top_of(Health.from_json(answer)))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def row(lines: list[str], name: str) -> list[str]:
    return next(line.split() for line in lines if line.startswith(name))


def test_without_a_terminal_it_looks_once() -> None:
    with ApiServer(Answer(200, busy_json()), PROBLEM) as server:
        result = run(server=server)

    assert result.exit_code == 0
    assert len(server.requests) == 1
    assert "✔ ok" in result.output


def test_it_looks_again_as_often_as_it_is_reported() -> None:
    with ApiServer(Answer(200, busy_json()), Answer(200, troubled_json()), PROBLEM) as server:
        result = run("--every", "0.1", server=server)

    assert result.exit_code == 1
    assert len(server.requests) == 3
    assert ("✔ ok" in result.output, "▲ behind" in result.output) == (True, True)


def test_json_is_an_object_a_line() -> None:
    with ApiServer(Answer(200, busy_json()), Answer(200, health_json()), PROBLEM) as server:
        result = run("--every", "0.1", "--json", server=server)

    busy, idle, refused = map(json.loads, result.output.splitlines())
    assert (busy["pulse"]["minutes"][-2]["submitted"], idle["pulse"]["minutes"][-2]["submitted"]) == (75_000, 0)
    assert busy["pulse"]["lags"]["normal"]["p99"] == 1.52
    assert refused["error"]["code"] == "forbidden"


def test_it_ends_when_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tickwheel.commands.top.time.sleep", interrupt)
    with ApiServer(Answer(200, troubled_json())) as server:
        assert run("--every", "9", server=server).exit_code == 0


def test_rates_are_of_the_last_whole_minute() -> None:
    lines = screen(busy_json())

    headings = ["a", "second", "at", "11:59", "peak", "15", "minutes", "and", "this", "so", "far", "in", "this"]
    assert row(lines, "a second") == headings
    assert row(lines, "submitted") == ["submitted", "1,250", "1,250", "··············█·", "0"]
    assert row(lines, "started")[1] == "41.7"
    assert row(lines, "retried") == ["retried", "!", "0.20", "0.20", "··············█·", "0"]
    assert row(lines, "failed") == ["failed", "0", "0", "················", "0"]
    assert row(lines, "lag p99") == ["lag", "p99", "1.5s", "1.5s", "█", "-"]


def test_each_class_has_its_queue_and_its_lag() -> None:
    lines = screen(busy_json())

    assert row(lines, "normal") == ["normal", "1,234", "17", "-", "2,502", "12ms", "480ms", "1.5s", "1m", "01s"]
    assert row(lines, "low") == ["low", "1,234", "17", "-", "0", "-", "-", "-", "-"]


def test_the_tenants_that_stand_out_stand_side_by_side() -> None:
    lines = screen(busy_json())
    at = next(number for number, line in enumerate(lines) if line.startswith("most attempts"))

    assert lines[at + 1].split() == ["a-tenant-with-a-…", "1,234,567", "umbrella", "12", "-"]
    assert lines[at + 2].split() == ["b", "1"]


def test_an_empty_stage_shows_that_nothing_goes_on() -> None:
    lines = screen(health_json())

    assert row(lines, "submitted") == ["submitted", "0", "0", "················", "0"]
    assert row(lines, "lag p99") == ["lag", "p99", "-", "-", "-"]
    assert "no breaker is open" in lines
    assert "no bucket is late" in lines[0]


def test_a_paused_stage_says_so_and_why() -> None:
    lines = screen(health_json(status="paused", reasons=["all tenants are paused: the database moves"]))

    assert lines[0].startswith("‖ paused  at 12:00:00 UTC")
    assert lines[1] == "  all tenants are paused: the database moves"


def test_what_is_not_known_is_shown_so() -> None:
    unknown = dict.fromkeys(("depth", "waiting", "budget", "lag_seconds", "is_shed", "oldest_bucket_at"))
    answer = health_json(status="unknown", classes=[class_json("low", **unknown)])

    lines = screen(answer)

    assert lines[0].startswith("? unknown")
    assert row(lines, "low") == ["low", "?", "?", "-", "0", "-", "-", "-", "-"]


def test_a_stage_in_trouble_shows_what_is_behind_full_and_open() -> None:
    lines = screen(troubled_json())

    assert lines[0].startswith("▲ behind  at 12:00:00 UTC  oldest bucket 40m 00s late, 11/64 shards unscanned")
    assert row(lines, "high")[-2:] == ["▲", "full"]
    assert row(lines, "low")[-2:] == ["▲", "refused"]
    assert "! breakers that are not closed: 1,000" in lines
    assert "  acme  https://[2001:db8::1]:8443  half open for 1d 03h, timeout" in lines
    assert "  ... and 999 more: tickwheel status" in lines


@pytest.mark.parametrize("answer", [busy_json(), troubled_json(), health_json()])
def test_it_fits_in_eighty_columns(answer: dict[str, Any]) -> None:
    lines = screen(answer)

    assert max(map(len, lines)) <= 80
    assert len(lines) <= 32
    assert not [line for line in lines if line.startswith("  …")]


def test_the_picture_is_of_this_screen() -> None:
    assert draw_top.PICTURE.read_text() == draw_top.draw()


def test_of_many_reasons_the_first_are_shown() -> None:
    lines = screen(health_json(status="behind", reasons=[f"reason {number}" for number in range(9)]))

    assert [line for line in lines if "reason" in line][-2:] == [
        "  reason 3",
        "  ... and 5 more reasons: tickwheel status",
    ]


def test_a_sparkline_has_a_bar_for_each() -> None:
    assert sparkline([0, 1, 4, 8, None, 7.9]) == "·▂▅█ █"
    assert sparkline([0.001, 1]) == "▁█"
    assert sparkline([]) == ""
    assert sparkline([0, 0]) == "··"


@pytest.mark.parametrize(
    ("rate", "shown"), [(0, "0"), (0.016, "0.02"), (4.168, "4.17"), (41.66, "41.7"), (417, "417"), (4_170.2, "4,170")]
)
def test_rates_are_shown_in_three_figures(rate: float, shown: str) -> None:
    assert rate_text(rate) == shown


@pytest.mark.parametrize(
    ("lag", "shown"),
    [
        (None, "-"),
        (timedelta(milliseconds=12.3), "12ms"),
        (timedelta(seconds=1.25), "1.2s"),
        (timedelta(seconds=42.9), "42s"),
        (timedelta(minutes=61), "1h 01m"),
    ],
)
def test_lags_are_shown_in_their_own_unit(lag: timedelta | None, shown: str) -> None:
    assert lag_text(lag) == shown


def test_stage_and_endpoint_are_named() -> None:
    with ApiServer(Answer(200, health_json(stage="prod"))) as server:
        result = run(server=server)

    assert result.output.splitlines()[1] == f"stage prod at {server.url}"
