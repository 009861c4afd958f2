"""`tickwheel submit --file`: keys by content, what is told apart after Ctrl-C, how it goes on, CSV and standard input."""

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import LOST, Answer, ApiServer, Request, accept_all
from tests.command_line import assert_wrong_usage, run


def a_line(target: str = "handler:echo", **fields: Any) -> str:
    return json.dumps({"tenant": "acme", "target": target, **fields})


def a_file(folder: Path, *lines: str, name: str = "jobs.jsonl") -> Path:
    file = folder / name
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def jobs_of(*requests: Request) -> list[dict[str, Any]]:
    return [job for request in requests for job in request.json["jobs"]]


def keys_of(*requests: Request) -> list[str]:
    return [job["idempotency_key"] for job in jobs_of(*requests)]


@pytest.fixture
def interrupt_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ctrl-C while a request is on its way: the server has it, and nobody reads the answer."""
    from tickwheel.client import Client

    whole: Any = Client._submit_batch
    sent = 0

    def at(number: int) -> None:
        nonlocal sent
        sent = 0

        def interrupted(*arguments: Any) -> Any:
            nonlocal sent
            sent += 1
            answer = whole(*arguments)
            if sent == number:
                raise KeyboardInterrupt
            return answer

        monkeypatch.setattr(Client, "_submit_batch", interrupted)

    return at


def test_a_line_without_a_key_has_one_by_its_content_and_its_own_is_kept(tmp_path: Path) -> None:
    file = a_file(tmp_path, a_line("handler:a"), a_line("handler:b"), a_line(idempotency_key="mine"))
    with ApiServer() as server:
        run("submit", "--file", str(file), server=server)
        a_file(tmp_path, a_line("handler:new"), a_line("handler:b"), a_line("handler:a"))
        run("submit", "--file", str(file), server=server)

    first, second = map(keys_of, server.requests)
    assert first[2] == "mine"
    assert re.fullmatch("line-[0-9a-f]{32}", first[0])
    assert second[1:] == [first[1], first[0]]
    assert second[0] not in first


def test_lines_that_say_the_same_are_jobs_of_their_own_each_time(tmp_path: Path) -> None:
    file = a_file(tmp_path, *[a_line()] * 3)
    with ApiServer() as server:
        run("submit", "--file", str(file), server=server)
        run("submit", "--file", str(file), server=server)

    first, second = map(keys_of, server.requests)
    assert len(set(first)) == 3
    assert first == second


def test_a_prefix_makes_other_jobs_of_the_same_lines_and_none_is_possible(tmp_path: Path) -> None:
    file = a_file(tmp_path, a_line())
    with ApiServer() as server:
        run("submit", "--file", str(file), "--key-prefix", "2027-03-01", server=server)
        run("submit", "--file", str(file), "--no-keys", server=server)

    assert keys_of(server.requests[0])[0].startswith("2027-03-01-")
    assert "idempotency_key" not in jobs_of(server.requests[1])[0]


def test_lines_that_were_accepted_before_are_counted(tmp_path: Path) -> None:
    def replay_the_first(request: Request) -> Answer:
        answer = accept_all(request)
        answer.body["results"][0]["job"]["replayed"] = True
        return answer

    file = a_file(tmp_path, a_line("handler:a"), a_line("handler:b"))
    with ApiServer(otherwise=replay_the_first) as server:
        result = run("submit", "--file", str(file), server=server)
        script = run("submit", "--file", str(file), "--json", server=server)

    assert result.stdout == "accepted 2 (1 of them before), refused 0\n"
    assert json.loads(script.stdout)["replayed"] == 1


@pytest.mark.parametrize("arguments", [["submit", "--file"], ["import"]])
@pytest.mark.parametrize("text", ["", "\n  \n"])
def test_an_empty_file_says_so(arguments: list[str], text: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text(text)

    assert_wrong_usage(*arguments, str(file), said=f"{file} has no lines")
    assert list(tmp_path.iterdir()) == [file]


def test_after_an_interrupt_what_is_in_doubt_and_what_was_never_sent_are_told_apart(
    tmp_path: Path, interrupt_at: Callable[[int], None]
) -> None:
    file = a_file(tmp_path, *(a_line(payload=number) for number in range(1_300)), "{oops", a_line("handler:last"))
    interrupt_at(2)
    with ApiServer() as server:
        result = run("submit", "--file", str(file), server=server)

    assert result.exit_code == 130
    assert result.stdout == "interrupted: accepted 500, refused 0, unanswered 500, never sent 302\n"
    assert "500 lines, 501 to 1000: interrupted before the response arrived" in result.stderr
    assert f"tickwheel submit --file {file} --resume" in result.stderr
    assert len(jobs_of(*server.requests)) == 1_000


def test_a_submission_goes_on_where_it_was_interrupted_and_makes_no_job_twice(
    tmp_path: Path, interrupt_at: Callable[[int], None]
) -> None:
    lines = [*(a_line(payload=number % 7) for number in range(1_300)), "{oops", a_line("handler:last")]
    file = a_file(tmp_path, *lines)
    interrupt_at(2)
    with ApiServer() as server:
        run("submit", "--file", str(file), server=server)
        interrupt_at(0)
        result = run("submit", "--file", str(file), "--resume", server=server)
        whole = run("submit", "--file", str(file), server=server)

    assert (result.exit_code, whole.exit_code) == (1, 1)
    assert result.stdout == "accepted 801, refused 1\n"
    first, doubtful, *rest = server.requests
    resumed, again = rest[:2], rest[2:]
    assert keys_of(*resumed)[:500] == keys_of(doubtful)
    assert keys_of(first, *resumed) == keys_of(*again)
    assert len(set(keys_of(*again))) == 1_301
    assert (tmp_path / "jobs.refused.jsonl").read_text() == "{oops\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jobs.jsonl", "jobs.refused.jsonl"]


def test_without_keys_lines_in_doubt_are_kept_apart_and_not_sent_again(
    tmp_path: Path, interrupt_at: Callable[[int], None]
) -> None:
    file = a_file(tmp_path, *(a_line(payload=number) for number in range(1_100)))
    interrupt_at(2)
    with ApiServer() as server:
        run("submit", "--file", str(file), "--no-keys", server=server)
        interrupt_at(0)
        result = run("submit", "--file", str(file), "--resume", server=server)

    assert result.stdout == "accepted 100, refused 0\n"
    kept = (tmp_path / "jobs.unanswered.jsonl").read_text().splitlines()
    assert [json.loads(line)["payload"] for line in kept] == list(range(500, 1_000))
    assert [job["payload"] for job in jobs_of(server.requests[2])] == list(range(1_000, 1_100))
    assert all("idempotency_key" not in job for job in jobs_of(*server.requests))


def test_a_process_that_is_killed_goes_on_behind_what_was_settled(tmp_path: Path) -> None:
    file = a_file(tmp_path, *(a_line(payload=number) for number in range(1_000)))
    is_second = threading.Event()

    def hang_at_the_second(request: Request) -> Answer:
        if request.json["jobs"][0]["payload"] == 500 and not is_second.is_set():
            is_second.set()
            killed.wait(60)
        return accept_all(request)

    killed = threading.Event()
    with ApiServer(otherwise=hang_at_the_second) as server:
        command = [sys.executable, "-m", "tickwheel.cli", "submit", "--file", str(file), "--endpoint", server.url]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            assert is_second.wait(60)
            process.send_signal(signal.SIGKILL)
        killed.set()
        result = run("submit", "--file", str(file), "--resume", server=server)

    assert result.stdout == "accepted 500, refused 0\n"
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.jsonl"]


def test_a_file_that_changed_or_was_never_interrupted_cannot_be_resumed(
    tmp_path: Path, interrupt_at: Callable[[int], None]
) -> None:
    file = a_file(tmp_path, *(a_line(payload=number) for number in range(1_000)))
    assert_wrong_usage("submit", "--file", str(file), "--resume", said="there is nothing to resume")
    interrupt_at(2)
    with ApiServer() as server:
        run("submit", "--file", str(file), server=server)
    interrupt_at(0)
    file.write_text(f"{a_line('handler:new')}\n{file.read_text()}")

    assert_wrong_usage("submit", "--file", str(file), "--resume", said="has changed since")


def test_lines_without_an_answer_are_kept_with_the_keys_that_they_were_sent_with(tmp_path: Path) -> None:
    file = a_file(tmp_path, a_line(), a_line(idempotency_key="mine"))
    with ApiServer(*[LOST] * 6) as server:
        run("submit", "--file", str(file), server=server)

    kept = [json.loads(line) for line in (tmp_path / "jobs.unanswered.jsonl").read_text().splitlines()]
    assert [line["idempotency_key"] for line in kept] == keys_of(server.requests[0])


def test_reasons_that_are_the_same_are_printed_once(tmp_path: Path) -> None:
    file = a_file(tmp_path, *["{}"] * 40, a_line(), "[]")
    with ApiServer() as server:
        result = run("submit", "--file", str(file), server=server)

    errors = result.stderr.splitlines()
    assert [line for line in errors if "line" in line.split(":")[0]][:2] == [
        "40 lines, 1 to 40: target: is required; tenant: is required",
        "line 42: job: is a JSON object",
    ]


def test_standard_input_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ApiServer() as server:
        result = run("submit", "--file", "-", server=server, typed=f"{a_line('handler:a')}\n{{oops\n")

    assert result.exit_code == 1
    assert "accepted 1, refused 1" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["stdin.refused.jsonl"]


def test_a_line_that_is_no_utf_8_is_refused_and_kept_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    bad = b'{"tenant": "acme", "target": "handler:echo", "payload": "\xff"}\n'
    file.write_bytes(b"\xef\xbb\xbf" + a_line().encode() + b"\r\n" + bad)
    with ApiServer() as server:
        result = run("submit", "--file", str(file), server=server)

    assert "line 2: line: is not UTF-8" in result.stderr
    assert (tmp_path / "jobs.refused.jsonl").read_bytes() == bad
    assert len(jobs_of(*server.requests)) == 1


def test_a_row_of_a_csv_file_is_a_job(tmp_path: Path) -> None:
    file = a_file(
        tmp_path,
        "tenant,target,delay,tags,payload,http.method,http.headers.X-Team,retry.attempts,asynchronous",
        'acme,https://example.com,1h30m,eu; team:a,"{""invoice"": 7}",PUT,007,3,',
        ",,,,,,,,",
        'acme,arn:aws:lambda:eu-west-1:123456789012:function:f,,,"two\nlines",,,,true',
        name="jobs.csv",
    )
    with ApiServer() as server:
        result = run("submit", "--file", str(file), "--no-keys", server=server)

    assert result.exit_code == 0, result.output
    assert jobs_of(*server.requests) == [
        {
            "tenant": "acme",
            "target": "https://example.com",
            "delay": 5400,
            "tags": ["eu", "team:a"],
            "payload": {"invoice": 7},
            "http": {"method": "PUT", "headers": {"X-Team": "007"}},
            "retry": {"attempts": 3},
        },
        {
            "tenant": "acme",
            "target": "arn:aws:lambda:eu-west-1:123456789012:function:f",
            "payload": "two\nlines",
            "asynchronous": True,
        },
    ]


def test_rows_that_are_no_jobs_are_refused_by_their_lines_and_kept_as_json(tmp_path: Path) -> None:
    file = a_file(
        tmp_path, "tenant,target,colour", "acme,handler:a,", "acme,handler:b,red", "acme,handler:c,,x", name="jobs.csv"
    )
    with ApiServer() as server:
        result = run("submit", "--file", str(file), server=server)

    assert "line 3: colour: is not a field of a job" in result.stderr
    assert "line 4: column 4: is not a field of a job" in result.stderr
    kept = (tmp_path / "jobs.refused.jsonl").read_text().splitlines()
    assert json.loads(kept[0]) == {"tenant": "acme", "target": "handler:b", "colour": "red"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "xml"], "choose from jsonl, csv"),
        (["--key-prefix", "x", "--no-keys"], "cannot be combined"),
        (["--key-prefix", "a b"], "--key-prefix is 'a b'"),
    ],
)
def test_wrong_options_of_a_file_are_explained(arguments: list[str], said: str, tmp_path: Path) -> None:
    assert_wrong_usage("submit", "--file", str(a_file(tmp_path, a_line())), *arguments, said=said)


@pytest.mark.parametrize("option", ["--resume", "--no-keys"])
def test_options_of_a_file_need_one(option: str) -> None:
    assert_wrong_usage("submit", "handler:echo", "--tenant", "acme", option, said="add --file")
    if option == "--resume":
        assert_wrong_usage("submit", "--file", "-", option, said="standard input cannot be read again")
