"""`tickwheel import FILE`: a file of schedules is put as it is read, goes on after Ctrl-C, and may be CSV."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import Answer, ApiServer, Request
from tests.command_line import assert_wrong_usage, run
from tests.unit.test_cli_schedules import NIGHTLY, a_file
from tests.unit.test_client_schedules import take_batch
from tickwheel.commands.schedules_file import ScheduleFile


class TestLongImport:
    """A file of many lines: what is told apart after Ctrl-C, and how it goes on."""

    @pytest.fixture
    def interrupt_at(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
        """Ctrl-C when so many schedules are settled."""
        whole: Any = ScheduleFile.settle
        settled = 0

        def at(number: int) -> None:
            def interrupted(file: Any, result: Any) -> None:
                nonlocal settled
                settled += 1
                if settled == number:
                    raise KeyboardInterrupt
                whole(file, result)

            monkeypatch.setattr(ScheduleFile, "settle", interrupted)

        return at

    def test_after_an_interrupt_what_is_in_doubt_and_what_was_never_sent_are_told_apart(
        self, tmp_path: Path, interrupt_at: Callable[[int], None]
    ) -> None:
        interrupt_at(61)
        lines: list[Any] = [{**NIGHTLY, "id": f"s{number}"} for number in range(1_000)]
        lines[30] = "{oops"
        file = a_file(tmp_path, *lines)
        with ApiServer(otherwise=take_batch) as server:
            result = run("import", str(file), "--json", server=server)

        answer = json.loads(result.stdout)
        assert result.exit_code == 130
        assert (answer["stored"], answer["refused"]) == (60, 1)
        assert 1 <= answer["unanswered"] <= 5 * 25 + 1
        assert answer["stored"] + answer["refused"] + answer["unanswered"] + answer["never_sent"] == 1_000
        assert not (tmp_path / "schedules.unanswered.jsonl").exists()
        sent = sum(len(request.json["schedules"]) for request in server.requests)
        assert sent <= answer["stored"] + answer["unanswered"]

    def test_an_import_goes_on_where_it_was_interrupted(
        self, tmp_path: Path, interrupt_at: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lines: list[Any] = [{**NIGHTLY, "id": f"s{number}"} for number in range(300)]
        lines[10], lines[200] = "{oops", {**NIGHTLY, "id": "s5"}
        file = a_file(tmp_path, *lines)
        with monkeypatch.context() as patched, ApiServer(otherwise=take_batch) as server:
            interrupt_at(61)
            first = run("import", str(file), server=server)
            patched.undo()
        monkeypatch.undo()
        with ApiServer(otherwise=take_batch) as server:
            second = run("import", str(file), "--resume", "--json", server=server)

        assert first.exit_code == 130
        assert f"go on with `tickwheel import {file} --resume`" in first.stderr
        answer = json.loads(second.stdout)
        assert (answer["stored"], answer["refused"]) == (298 - 60, 1)
        assert answer["schedules"][0]["line"] == 62
        assert answer["problems"][0]["errors"][0]["message"] == "is also that of line 6"
        assert (tmp_path / "schedules.refused.jsonl").read_text().splitlines() == [
            "{oops",
            json.dumps({**NIGHTLY, "id": "s5"}),
        ]
        assert not (tmp_path / "schedules.jsonl.journal").exists()

    def test_a_file_that_changed_or_was_never_interrupted_cannot_be_resumed(
        self, tmp_path: Path, interrupt_at: Callable[[int], None]
    ) -> None:
        lines: list[Any] = [{**NIGHTLY, "id": f"s{number}"} for number in range(300)]
        file = a_file(tmp_path, *lines)
        assert_wrong_usage("import", str(file), "--resume", said="nothing to resume")
        assert_wrong_usage("import", "-", "--resume", said="--resume needs a file")
        interrupt_at(61)
        with ApiServer(otherwise=take_batch) as server:
            run("import", str(file), server=server)
        a_file(tmp_path, {**NIGHTLY, "id": "another"}, *lines)
        assert_wrong_usage("import", str(file), "--resume", said="has changed since")

    @pytest.mark.long
    def test_memory_does_not_grow_with_the_lines(self, tmp_path: Path) -> None:
        def peak(count: int) -> int:
            file = a_file(tmp_path, *({**NIGHTLY, "id": f"s{number}"} for number in range(count)))

            def take_and_forget(request: Request) -> Answer:
                # What the server of the test remembers is not the command's.
                server.requests.clear()
                return take_batch(request)

            with ApiServer(otherwise=take_and_forget) as server:
                tracemalloc.start()
                result = run("import", str(file), server=server)
                _, most = tracemalloc.get_traced_memory()
                tracemalloc.stop()
            assert f"stored {count}, refused 0" in result.stdout
            return most

        # With what is imported and compiled once, and with a whole thousand, which are one call of the client.
        peak(1_500)
        assert peak(4_500) < peak(1_500) + 1_000_000


class TestCsv:
    def test_a_row_is_a_schedule(self, tmp_path: Path) -> None:
        file = tmp_path / "schedules.csv"
        file.write_text(
            "name,cron,every,timezone,windows,target,payload.report,tags,priority\n"
            'nightly,30 2 * * *,,Europe/Berlin,"mon-fri 09:00-17:00; sat 10:00-12:00",handler:run,7,a;b,high\n'
            "7,,90,,,https://example.com,,,\n"
        )
        with ApiServer(otherwise=take_batch) as server:
            result = run("import", str(file), "--tenant", "acme", server=server)

        assert result.exit_code == 0, result.output
        first, second = server.requests[0].json["schedules"]
        assert first == {
            "tenant": "acme",
            "id": "nightly",
            "cron": "30 2 * * *",
            "timezone": "Europe/Berlin",
            "windows": [
                {"start": "09:00", "end": "17:00", "days": ["mon", "tue", "wed", "thu", "fri"]},
                {"start": "10:00", "end": "12:00", "days": ["sat"]},
            ],
            "job": {"target": "handler:run", "payload": {"report": 7}, "tags": ["a", "b"], "priority": "high"},
        }
        assert second == {"tenant": "acme", "id": "7", "every": 90, "job": {"target": "https://example.com"}}

    def test_a_row_that_is_none_is_refused_by_its_line_and_kept_as_json(self, tmp_path: Path) -> None:
        file = tmp_path / "schedules.csv"
        file.write_text("id,cron,target,colour\na,@daily,handler:run,\nb,@daily,handler:run,red\nc,,handler:run,\n")
        with ApiServer(otherwise=take_batch) as server:
            result = run("import", str(file), "--tenant", "acme", server=server)

        assert result.exit_code == 1
        assert "line 3: colour" in result.stderr
        assert "line 4: rule: give exactly one of" in result.stderr
        kept = [json.loads(line) for line in (tmp_path / "schedules.refused.jsonl").read_text().splitlines()]
        assert [row["id"] for row in kept] == ["b", "c"]

    def test_the_format_is_that_of_the_option(self, tmp_path: Path) -> None:
        with ApiServer(otherwise=take_batch) as server:
            result = run(
                *("import", "-", "--format", "csv", "--tenant", "acme"),
                server=server,
                typed="id,every,target\na,60,handler:run\n",
            )

        assert "stored 1, refused 0" in result.stdout
        assert_wrong_usage("import", "-", "--format", "xml", said="--format is jsonl or csv")
