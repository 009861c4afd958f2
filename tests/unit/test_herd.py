"""The arithmetic of herds, their bars, and the command that shows them."""

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.api_server import Answer, ApiServer, Request
from tickwheel.client.fires import FireCount
from tickwheel.errors import ApiProblem
from tickwheel.screens.herd import SPREADS, Load, plot, suggest

MIDNIGHT = datetime(2030, 1, 1, tzinfo=UTC)
run = partial(command_line.run, "herd", columns=100)
PROBLEM = {
    "status": 422,
    "code": "invalid_schedule",
    "title": "The schedule is refused",
    "detail": "depends on its runs",
}


def counted(schedule_id: str, minutes: Mapping[int, int], *, tenant: str = "acme") -> FireCount:
    return FireCount(tenant=tenant, id=schedule_id, minutes=minutes)


def a_load(*results: FireCount, hours: int = 24, start: datetime = MIDNIGHT) -> Load:
    return Load(start, hours, results)


def test_fires_of_a_minute_are_added_up() -> None:
    load = a_load(counted("a", {0: 1, 60: 2}), counted("b", {60: 1}), hours=2)

    assert (load.total, load.peak, load.mean) == (4, 3, 4 / 120)
    assert [minute for minute, count in enumerate(load.minutes) if count] == [0, 60]


def test_what_has_a_problem_is_left_out() -> None:
    problem = ApiProblem.from_json(PROBLEM, status=422)
    left_out = FireCount(tenant="acme", id="b", minutes={}, problem=problem)
    load = a_load(counted("a", {0: 1}), left_out)

    assert [result.id for result in load.counted] == ["a"]
    assert [result.id for result in load.left_out] == ["b"]


def test_the_fullest_minutes_come_with_who_fires_in_them() -> None:
    load = a_load(counted("a", {0: 1, 60: 5}), counted("b", {60: 1, 61: 2}), counted("c", {60: 1}))

    first, second, third = load.worst()

    assert (first.at, first.count) == (MIDNIGHT + timedelta(hours=1), 7)
    assert first.shares == [("a", 5), ("b", 1), ("c", 1)]
    assert (second.count, third.count) == (2, 1)


def test_minutes_without_fires_are_not_among_the_fullest() -> None:
    assert a_load(counted("a", {})).worst() == []


def test_the_shares_of_several_tenants_are_theirs() -> None:
    load = a_load(counted("a", {0: 1}), counted("b", {0: 1}), counted("a", {0: 3}, tenant="globex"))

    assert load.worst()[0].shares == [("globex", 3), ("acme", 2)]


def test_the_smallest_spread_that_is_enough_is_suggested() -> None:
    asked: list[timedelta] = []

    def count(spread: timedelta) -> Load:
        asked.append(spread)
        return a_load(counted("a", {0: 100 // (spread // timedelta(minutes=1))}))

    suggestion = suggest(count, target=20)

    assert (suggestion.spread, suggestion.is_enough, suggestion.load.peak) == (timedelta(minutes=5), True, 20)
    assert asked == list(SPREADS[:3])


def test_without_a_spread_that_is_enough_the_one_that_comes_closest_is_suggested() -> None:
    peaks = {spread: 50 + abs(spread - timedelta(minutes=15)) // timedelta(minutes=1) for spread in SPREADS}

    suggestion = suggest(lambda spread: a_load(counted("a", {0: peaks[spread]})), target=20)

    assert (suggestion.spread, suggestion.is_enough) == (timedelta(minutes=15), False)


def test_bars_are_as_high_as_the_fullest_minute_of_their_part() -> None:
    *rows, axis = plot(a_load(counted("a", {0: 8, 70: 4, 1439: 1})), peak=8, width=100)

    bars = [row.partition("┤")[2] for row in rows]
    assert [row[:1] for row in bars] == ["█"] * 8
    assert [bar[4:5].strip() for bar in bars] == [""] * 4 + ["█"] * 4
    assert bars[-1][95] == "█"
    assert [row.partition(" ")[0] for row in (rows[0].strip(), rows[-1].strip())] == ["8", "0"]
    assert axis.split() == ["00:00", "03:00", "06:00", "09:00", "12:00", "15:00", "18:00", "21:00"]


def test_what_fires_is_seen_however_little_it_is() -> None:
    *rows, _ = plot(a_load(counted("a", {0: 1})), peak=10_000, width=80)

    assert rows[-1].endswith("┤▁")


@pytest.mark.parametrize("width", [40, 80, 100, 300])
@pytest.mark.parametrize("hours", [1, 24, 48])
def test_no_line_of_bars_is_wider_than_the_terminal(width: int, hours: int) -> None:
    every_minute = counted("a", dict.fromkeys(range(hours * 60), 3))
    *rows, _ = plot(a_load(every_minute, hours=hours), peak=3, width=width)

    assert all(len(row) <= max(width, 60) for row in rows)
    assert rows[-1].count("█") == rows[0].count("█") > 0


@pytest.mark.parametrize("minute", range(0, 180, 5))
@pytest.mark.parametrize("width", [40, 78])
def test_no_axis_is_wider_than_its_bars_whenever_they_begin(minute: int, width: int) -> None:
    start = MIDNIGHT + timedelta(minutes=minute)

    *_, axis = plot(a_load(counted("a", {0: 1}), start=start), peak=40, width=width)

    assert len(axis) <= width
    assert set(axis.split()) <= {f"{hour:02}:00" for hour in range(0, 24, 3)}
    assert len(axis.split()) >= 3


def test_the_axis_starts_at_the_next_hour_that_it_names() -> None:
    start = MIDNIGHT + timedelta(hours=10, minutes=17)

    *rows, axis = plot(a_load(counted("a", {0: 1, 103: 1}), start=start), peak=1, width=100)

    assert axis.split()[0] == "12:00"
    assert rows[-1][axis.index("12:00")] == "█"


class TestCommand:
    def test_it_shows_both_loads_the_fullest_minutes_and_a_suggestion(self, tmp_path: Path) -> None:
        with ApiServer(otherwise=a_herd) as server:
            result = run("--file", str(a_file(tmp_path)), *FROM_MIDNIGHT, "--target", "5", server=server)

        assert result.exit_code == 0, result.output
        assert "120 schedules, 120 fires in 24 hours from 2030-01-01 00:00 UTC" in result.stdout
        assert "current: at most 120 fires in a minute, 0.1 on average" in result.stdout
        assert "00:00     120  s0, s1, s10, s100, s101 and 115 more" in result.stdout
        assert "with a spread of 30m for those without one: at most 4 in a minute" in result.stdout
        assert "suggestion: spread 30m, the smallest with at most 5 fires in a minute" in result.stdout
        assert "█" in result.stdout
        spreads = [request.json.get("spread") for request in server.requests if len(request.json["schedules"]) == 100]
        assert spreads == [None, 60, 120, 300, 600, 900, 1800]

    def test_it_is_one_json_object_for_scripts(self, tmp_path: Path) -> None:
        with ApiServer(otherwise=a_herd) as server:
            result = run("--file", str(a_file(tmp_path)), *FROM_MIDNIGHT, "--target", "5", "--json", server=server)

        answer = json.loads(result.stdout)
        assert (answer["start"], answer["schedules"], answer["fires"], answer["target"]) == (
            "2030-01-01T00:00:00Z",
            120,
            120,
            5,
        )
        assert (answer["before"]["peak"], len(answer["before"]["minutes"])) == (120, 1440)
        assert (answer["suggestion"]["spread"], answer["suggestion"]["peak"], answer["suggestion"]["is_enough"]) == (
            "30m",
            4,
            True,
        )
        assert answer["worst"][0]["by"][0] == {"name": "s0", "fires": 1}
        assert answer["left_out"] == []

    def test_the_usual_target_is_four_times_the_mean(self, tmp_path: Path) -> None:
        with ApiServer(otherwise=a_herd) as server:
            result = run("--file", str(a_file(tmp_path)), *FROM_MIDNIGHT, "--json", server=server)

        answer = json.loads(result.stdout)
        assert answer["target"] == 1
        assert (answer["suggestion"]["spread"], answer["suggestion"]["is_enough"]) == ("60m", False)

    def test_a_tenant_is_counted_without_its_definitions(self) -> None:
        counts = {"results": [{"tenant": "acme", "id": "a", "minutes": {"0": 1}}], "next": None}
        with ApiServer(otherwise=lambda _: Answer(200, counts)) as server:
            result = run("--tenant", "acme", "--hours", "12", server=server)

        assert result.exit_code == 0, result.output
        assert "no minute has more than 1 fires: no spread is needed" in result.stdout
        (request,) = server.requests
        assert (request.json["tenant"], request.json["hours"], "schedules" in request.json) == ("acme", 12, False)
        assert request.json["start"].endswith(":00Z")

    def test_what_is_left_out_is_reported_with_its_reason(self) -> None:
        results: list[dict[str, Any]] = [
            {"tenant": "acme", "id": "a", "minutes": {"0": 1}},
            {"tenant": "acme", "id": "b", "problem": PROBLEM},
            {"tenant": "acme", "id": "c", "problem": PROBLEM},
        ]
        with ApiServer(otherwise=lambda _: Answer(200, {"results": results, "next": None})) as server:
            result = run("--tenant", "acme", server=server)

        assert "left out 2: depends on its runs" in result.stdout

    def test_nothing_to_show_is_no_traceback(self) -> None:
        results = [{"tenant": "acme", "id": "b", "problem": PROBLEM}]
        with ApiServer(otherwise=lambda _: Answer(200, {"results": results, "next": None})) as server:
            result = run("--tenant", "acme", server=server)

        assert result.exit_code == 1
        assert "nothing fires in these 24 hours: left out 1: depends on its runs" in result.stderr

    def test_lines_that_are_no_schedules_are_named(self, tmp_path: Path) -> None:
        file = a_file(tmp_path, "{oops")
        with ApiServer(otherwise=a_herd) as server:
            result = run("--file", str(file), *FROM_MIDNIGHT, server=server)

        assert "line 121: line: is not JSON" in result.stderr
        assert "120 schedules" in result.stdout

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ([], "either --tenant or --file"),
            (["--tenant", "acme", "--file", "x"], "either --tenant or --file"),
            (["--file", "/no/such/file"], "/no/such/file"),
            (["--tenant", "acme", "--hours", "49"], "'--hours'"),
            (["--tenant", "acme", "--target", "0"], "'--target'"),
            (["--tenant", "acme", "--start", "noon"], "'noon' is not a time"),
        ],
    )
    def test_wrong_usage_is_explained(self, arguments: list[str], said: str) -> None:
        result = run(*arguments)

        assert result.exit_code == 2
        assert said in result.stderr

    @pytest.mark.parametrize("target", ["5", "1000"])
    def test_it_draws_a_picture(self, tmp_path: Path, target: str) -> None:
        picture = tmp_path / "herd.png"
        arguments = ["--file", str(a_file(tmp_path)), *FROM_MIDNIGHT, "--target", target, "--png", str(picture)]
        with ApiServer(otherwise=a_herd) as server:
            result = run(*arguments, server=server)

        assert result.exit_code == 0, result.output
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert str(picture) in result.stderr

    def test_a_picture_without_matplotlib_says_what_to_install(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
        with ApiServer(otherwise=a_herd) as server:
            result = run("--file", str(a_file(tmp_path)), "--png", str(tmp_path / "herd.png"), server=server)

        assert result.exit_code == 1
        assert "pip install 'tickwheel[picture]'" in result.stderr

    @pytest.mark.parametrize(("name", "said"), [("herd.nothing", "cannot be drawn"), ("no/such/herd.png", "written")])
    def test_a_picture_that_cannot_be_written_is_no_traceback(self, tmp_path: Path, name: str, said: str) -> None:
        with ApiServer(otherwise=a_herd) as server:
            result = run("--file", str(a_file(tmp_path)), "--png", str(tmp_path / name), server=server)

        assert result.exit_code == 1
        assert said in result.stderr


FROM_MIDNIGHT = ["--start", "2030-01-01T00:00:30Z"]


def a_herd(request: Request) -> Answer:
    """All fire at midnight; a spread deals them out evenly."""
    minutes = max(1, request.json.get("spread", 0) // 60)
    results = [
        {"tenant": asked["tenant"], "id": asked["id"], "minutes": {str(int(asked["id"][1:]) % minutes): 1}}
        for asked in request.json["schedules"]
    ]
    return Answer(200, {"start": request.json["start"], "results": results, "next": None})


def a_file(folder: Path, *more: str) -> Path:
    file = folder / "schedules.jsonl"
    lines = [
        json.dumps({"tenant": "acme", "id": f"s{number}", "cron": "@daily", "job": {"target": "handler:echo"}})
        for number in range(120)
    ]
    file.write_text("".join(f"{line}\n" for line in (*lines, *more)))
    return file
