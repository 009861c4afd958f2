"""`tickwheel import --from …` and `tickwheel export`: the plan, its file, and what is stored."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import Answer, ApiServer, Request
from tests.command_line import assert_wrong_usage, run
from tests.unit.test_client_schedules import refused, schedule_json
from tickwheel.client.schedules import NewSchedule
from tickwheel.commands.import_plan import Applied

CRONTAB = """\
# a comment
MAILTO=ops@example.com
CRON_TZ=Europe/Berlin
30 2 * * * /usr/local/bin/backup --to s3 % line one % line two
@reboot /usr/local/bin/warm
0 5 0 * * /usr/local/bin/never
10~20 4 * * * /usr/local/bin/report \\%d
"""
WANTED = ("--tenant", "acme", "--target", "handler:run")


@pytest.fixture
def crontab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "jobs.crontab"
    file.write_text(CRONTAB)
    return file


class Stored:
    """A scheduler that keeps what is put, and counts a version where it is another."""

    def __init__(self) -> None:
        self.schedules: dict[str, dict[str, Any]] = {}
        self.puts: list[str] = []

    def __call__(self, request: Request) -> Answer:
        schedule_id = request.path.removeprefix("/v1/schedules").lstrip("/").partition("?")[0]
        if request.method == "GET":
            listed = sorted(self.schedules.values(), key=lambda each: each["id"])
            return Answer(200, self.schedules[schedule_id] if schedule_id else {"schedules": listed, "next": None})
        return Answer(200, {"results": [self.put(each) for each in request.json["schedules"]]})

    def put(self, asked: dict[str, Any]) -> dict[str, Any]:
        before = self.schedules.get(asked["id"])
        base = {name: value for name, value in schedule_json().items() if name not in {"cron", "job"}}
        body = {**base, **asked, "version": before["version"] if before else 1}
        change = "unchanged" if body == before else "updated" if before else "created"
        if change != "unchanged":
            self.puts.append(asked["id"])
            body["version"] += change == "updated"
        self.schedules[asked["id"]] = body
        standing = {name: value for name, value in body.items() if name in base}
        return {"status": 200 if before else 201, "change": change, "schedule": standing}


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_plan_says_what_becomes_of_each_line_and_stores_nothing(crontab: Path) -> None:
    with ApiServer() as server:
        result = run("import", str(crontab), "--from", "crontab", *WANTED, server=server, columns=400)

    assert server.requests == []
    assert result.exit_code == 1
    assert "jobs.crontab:4" in result.stdout
    assert "jobs.crontab:5" in result.stdout
    assert "there is no machine here" in result.stdout
    assert "'0' in the day of month is not from 1 to 31" in result.stdout
    assert "not mailed to MAILTO" in result.stdout
    assert "2 planned, 2 of them with differences, 2 left out" in result.stdout
    backup, report = lines_of(crontab.parent / "jobs.schedules.jsonl")
    assert backup["cron"] == "30 2 * * *"
    assert backup["timezone"] == "Europe/Berlin"
    assert backup["job"]["payload"] == {"command": "/usr/local/bin/backup --to s3", "stdin": " line one \n line two"}
    assert (report["cron"], report["spread"]) == ("10 4 * * *", 660)
    assert report["job"]["payload"]["command"] == "/usr/local/bin/report %d"


def test_the_same_lines_have_the_same_ids_and_a_changed_time_keeps_them(crontab: Path) -> None:
    def ids() -> list[str]:
        run("import", str(crontab), "--from", "crontab", *WANTED)
        return [line["id"] for line in lines_of(crontab.parent / "jobs.schedules.jsonl")]

    before = ids()
    crontab.write_text(CRONTAB.replace("30 2 * * *", "45 3 * * *"))

    assert ids() == before


def test_what_is_applied_twice_is_written_once(crontab: Path) -> None:
    stored = Stored()
    arguments = ("import", str(crontab), "--from", "crontab", *WANTED, "--apply")
    with ApiServer(otherwise=stored) as server:
        first = run(*arguments, server=server)
        puts = list(stored.puts)
        second = run(*arguments, server=server)
        crontab.write_text(CRONTAB.replace("30 2 * * *", "45 3 * * *"))
        third = run(*arguments, server=server)

    assert "created 2, changed 0, unchanged 0, refused 0" in first.stdout
    assert "created 0, changed 0, unchanged 2, refused 0" in second.stdout
    assert "created 0, changed 1, unchanged 1, refused 0" in third.stdout
    assert len(puts) == 2
    assert len(stored.puts) == 3


def test_what_the_scheduler_refuses_is_named(crontab: Path) -> None:
    def refuse(request: Request) -> Answer:
        if request.method == "GET":
            return Answer(200, {"schedules": [], "next": None})
        return Answer(200, {"results": [refused(422, "invalid_schedule") for _ in request.json["schedules"]]})

    with ApiServer(otherwise=refuse) as server:
        result = run("import", str(crontab), "--from", "crontab", *WANTED, "--apply", server=server)

    assert result.exit_code == 1
    assert "refused 2" in result.stdout
    assert result.stderr.count("The schedule is refused") == 2


def test_an_interrupted_application_names_what_was_not_sent(crontab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crontab.write_text("".join(f"{minute} 3 * * * /bin/job {minute}\n" for minute in range(60)) * 5)
    whole: Any = Applied.note

    def interrupted(applied: Applied, result: Any) -> None:
        if len(applied.created) == 30:
            raise KeyboardInterrupt
        whole(applied, result)

    monkeypatch.setattr(Applied, "note", interrupted)
    asked = ("import", str(crontab), "--from", "crontab", *WANTED, "--apply")
    with ApiServer(otherwise=Stored()) as server:
        result = run(*asked, "--json", server=server)
    with ApiServer(otherwise=Stored()) as server:
        text = run(*asked, server=server)

    assert (result.exit_code, text.exit_code) == (130, 130)
    applied = json.loads(result.stdout)["applied"]
    assert len(applied["created"]) == 30
    assert applied["unanswered"]
    assert applied["unsent"]
    named = [*applied["created"], *applied["unanswered"], *applied["unsent"]]
    assert len(named) == len(set(named)) == 300
    assert "interrupted: created 30, changed 0, unchanged 0, refused 0, unanswered " in text.stdout
    assert ", never sent " in text.stdout
    assert "repeat this with --apply" in text.stderr


def test_the_file_of_a_plan_is_imported_like_any_other(crontab: Path) -> None:
    run("import", str(crontab), "--from", "crontab", *WANTED)
    with ApiServer(otherwise=Stored()) as server:
        result = run("import", "jobs.schedules.jsonl", server=server)

    assert "stored 2, refused 0" in result.stdout


def test_an_export_is_imported_again_as_it_was(crontab: Path) -> None:
    stored = Stored()
    with ApiServer(otherwise=stored) as server:
        run("import", str(crontab), "--from", "crontab", *WANTED, "--apply", server=server)
        exported = run("export", "--tenant", "acme", "-o", "all.jsonl", server=server)
        printed = run("export", "--tenant", "acme", server=server)
        result = run("import", "all.jsonl", server=server)

    assert "exported 2 schedules" in exported.stdout
    assert printed.stdout == Path("all.jsonl").read_text()
    assert "stored 2, refused 0" in result.stdout
    planned = {line["id"]: NewSchedule.from_json(line) for line in lines_of(crontab.parent / "jobs.schedules.jsonl")}
    assert {line["id"]: NewSchedule.from_json(line) for line in lines_of(crontab.parent / "all.jsonl")} == planned


def test_a_large_payload_is_exported_whole_and_a_paused_schedule_as_paused(tmp_path: Path) -> None:
    large = schedule_json(job={"target": "handler:run", "payload_pointer": "s3"}, status="paused")
    whole = schedule_json(job={"target": "handler:run", "payload": {"a": 1}}, status="paused")
    with ApiServer(Answer(200, {"schedules": [large], "next": None}), Answer(200, whole)) as server:
        run("export", "--tenant", "acme", "-o", str(tmp_path / "all.jsonl"), server=server)

    (line,) = lines_of(tmp_path / "all.jsonl")
    assert line["status"] == "paused"
    assert line["job"]["payload"] == {"a": 1}


SECRET = "AKIA-very-secret"
WITH_ENVIRONMENT = f"""\
SHELL=/bin/bash
AWS_SECRET={SECRET}
0 3 * * * /usr/local/bin/backup
TOKEN = "{SECRET}"
0 4 * * * /usr/local/bin/report
"""


@pytest.mark.parametrize("printed_as", [(), ("--json",)])
def test_what_the_environment_of_a_crontab_holds_is_named_and_not_copied(
    crontab: Path, printed_as: tuple[str, ...]
) -> None:
    crontab.write_text(WITH_ENVIRONMENT)
    with ApiServer(otherwise=Stored()) as server:
        result = run("import", str(crontab), "--from", "crontab", *WANTED, "--apply", *printed_as, server=server)
        sent = b"".join(request.body for request in server.requests).decode()

    file = (crontab.parent / "jobs.schedules.jsonl").read_text()
    assert SECRET not in result.stdout + result.stderr + file + sent
    plain = " ".join(result.stdout.split())
    assert "AWS_SECRET" in plain
    assert "--with-environment" in plain
    assert all("environment" not in line["job"]["payload"] for line in lines_of(Path("jobs.schedules.jsonl")))


def test_the_environment_is_a_part_of_payloads_where_that_is_wanted(crontab: Path) -> None:
    crontab.write_text(WITH_ENVIRONMENT)
    result = run("import", str(crontab), "--from", "crontab", *WANTED, "--with-environment", "--json")

    backup, report = lines_of(Path("jobs.schedules.jsonl"))
    assert backup["job"]["payload"]["environment"] == {"SHELL": "/bin/bash", "AWS_SECRET": SECRET}
    assert report["job"]["payload"]["environment"]["TOKEN"] == SECRET
    remarks = [" ".join(each["remarks"]) for each in json.loads(result.stdout)["planned"]]
    assert "values of AWS_SECRET, SHELL, which may be secret" in remarks[0]
    assert SECRET not in " ".join(remarks)
    assert_wrong_usage("import", str(crontab), "--with-environment", said="--with-environment needs --from")


def test_standard_input_is_a_file_of_another_program_too(crontab: Path) -> None:
    result = run("import", "-", "--from", "crontab", *WANTED, typed="0 3 * * * /bin/backup\n@reboot /bin/x\n")

    assert "1 planned, 0 of them with differences, 1 left out" in result.stdout
    assert [line["cron"] for line in lines_of(Path("stdin.schedules.jsonl"))] == ["0 3 * * *"]


def test_a_file_that_cannot_be_read_is_left_out_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.crontab").write_bytes(b"\xff\xfe")
    (tmp_path / "large.crontab").write_bytes(b"#" * 8_000_001)
    result = run("import", ".", "--from", "crontab", *WANTED, "--json", "-o", "plan.jsonl")

    reasons = {Path(each["file"]).name: each["reason"] for each in json.loads(result.stdout)["left_out"]}
    assert "is not UTF-8" in reasons["bad.crontab"]
    assert "is larger than 8,000,000 bytes" in reasons["large.crontab"]
    assert result.exit_code == 1


def test_wrong_usage_is_told(crontab: Path) -> None:
    file = str(crontab)
    assert_wrong_usage("import", file, "--from", "cron", *WANTED, said="--from cron is not known: use one of crontab")
    assert_wrong_usage("import", file, "--from", "crontab", said="--tenant is required")
    assert_wrong_usage("import", file, "--apply", said="--apply needs --from")
    assert_wrong_usage("import", file, file, said="one file of schedules")
    wrong = ("--timezone", "Berlin")
    assert_wrong_usage("import", file, "--from", "crontab", *WANTED, *wrong, said="'Berlin' is no time zone")


def test_a_system_crontab_has_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cron.d").mkdir()
    (tmp_path / "cron.d" / "certbot").write_text("PATH=/bin\n0\t*/12 * * *\troot\ttest -x /usr/bin/certbot\n")
    system = run("import", "cron.d", "--from", "system-crontab", *WANTED, "--json")
    user = run("import", "cron.d", "--from", "crontab", *WANTED, "--json")

    (planned,) = json.loads(system.stdout)["planned"]
    assert planned["schedule"]["job"]["payload"] == {
        "command": "test -x /usr/bin/certbot",
        "user": "root",
    }
    assert "sets PATH" in planned["remarks"][0]
    assert planned["next_there"] == planned["next_here"]
    (mistaken,) = json.loads(user.stdout)["planned"]
    assert "is it a user" in mistaken["remarks"][0]
