"""The audit trail of a whole stage: what its handlers send, and what the saved queries find in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from functions.domain.audit import COLUMNS
from functions.domain.instants import SECOND
from functions.ports.recorder import AuditTrail
from infra.audit_queries import TABLE, SavedQuery, queries
from testkit.events import Context, a_request
from tests.integration.queues import hidden_receipts
from tests.integration.stage import AUDIT_BUCKET, AUDIT_STREAM, Stage

ANN = "arn:aws:iam::123456789012:user/ann"
ONCE = {"attempts": 1}
TYPES = {"int": "INTEGER", "bigint": "BIGINT", "string": "VARCHAR", "boolean": "BOOLEAN"}
QUERIES = {query.name: query for query in queries(2 * SECOND)}


def ask(stage: Stage, method: str, path: str, body: Any = None, **options: Any) -> Any:
    """Ann asks the API."""
    request = a_request(method, path, body, caller=ANN, **options)
    answer = stage.module("api").handler(request, Context())
    assert answer["statusCode"] < 300, answer["body"]
    return json.loads(answer["body"])


def executions(stage: Stage) -> list[dict[str, Any]]:
    return [line for line in stage.audit_lines() if line["kind"] == "execution"]


def actions(stage: Stage) -> list[dict[str, Any]]:
    return [line for line in stage.audit_lines() if line["kind"] == "action"]


def requests_to_firehose(stage: Stage) -> int:
    """Each of them leaves an object on moto."""
    return len(stage.s3.list_objects_v2(Bucket=AUDIT_BUCKET).get("Contents", []))


def test_a_batch_of_jobs_is_one_request_with_a_line_for_each(stage: Stage):
    ids = [stage.submit(payload={"secret": number})["id"] for number in range(5)]
    assert requests_to_firehose(stage) == 0

    stage.work()

    assert requests_to_firehose(stage) == 1
    assert sorted(line["job_id"] for line in executions(stage)) == sorted(ids)
    assert {line["outcome"] for line in executions(stage)} == {"succeeded"}
    assert all(line["duration_ms"] >= 0 and line["lag_ms"] >= 0 for line in executions(stage))
    assert "secret" not in json.dumps(stage.audit_lines())


def test_what_reads_leaves_no_line(stage: Stage):
    job_id = stage.submit(delay=600)["id"]
    ask(stage, "GET", f"/v1/jobs/{job_id}")
    ask(stage, "GET", "/v1/tenants/acme")
    ask(stage, "GET", "/v1/schedules", query={"tenant": "acme"})

    assert requests_to_firehose(stage) == 0


def test_a_worker_that_dies_before_its_lines_are_sent_is_followed_by_one_that_says_them(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    job_id = stage.submit()["id"]
    worker = stage.module("worker")
    with monkeypatch.context() as dying:

        def die(_: AuditTrail) -> None:
            raise SystemExit

        dying.setattr(type(worker.wiring.audit), "flush", die)
        with pytest.raises(SystemExit):
            stage.work()
    assert (stage.get(job_id)["state"], stage.audit_lines()) == ("succeeded", [])

    stage.forget_modules()
    # The message was not acknowledged, and comes back.
    for url in stage.urls.values():
        for receipt in hidden_receipts(url):
            stage.sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=receipt, VisibilityTimeout=0)
    assert stage.work() == {"batchItemFailures": []}

    (line,) = executions(stage)
    assert (line["job_id"], line["outcome"], line["attempt"], line["again"]) == (job_id, "succeeded", 1, True)


def test_jobs_go_on_without_the_stream_and_their_lines_are_in_the_log(stage: Stage, caplog: pytest.LogCaptureFixture):
    stage.firehose.delete_delivery_stream(DeliveryStreamName=AUDIT_STREAM)
    caplog.set_level("INFO")
    job_id = stage.submit()["id"]

    assert stage.work() == {"batchItemFailures": []}

    assert stage.get(job_id)["state"] == "succeeded"
    (lost,) = [vars(record) for record in caplog.records if record.message == "audit_lines_lost"]
    assert "ResourceNotFoundException" in lost["reason"]
    (line,) = lost["lines"]
    assert (line["job_id"], line["outcome"]) == (job_id, "succeeded")


def test_an_action_is_not_acknowledged_before_its_line_is_sent_or_logged(
    stage: Stage, caplog: pytest.LogCaptureFixture
):
    stage.firehose.delete_delivery_stream(DeliveryStreamName=AUDIT_STREAM)
    caplog.set_level("INFO")

    ask(stage, "POST", "/v1/tenants/acme:pause", {"note": "why"})

    (lost,) = [vars(record) for record in caplog.records if record.message == "audit_lines_lost"]
    (line,) = lost["lines"]
    assert (line["action"], line["caller"], json.loads(line["after"])["note"]) == ("tenant.pause", ANN, "why")


def test_every_action_is_reported_with_who_what_before_and_after(stage: Stage):
    every_action(stage)

    lines = actions(stage)
    assert [line["action"] for line in lines] == [
        "schedule.put",
        "schedule.patch",
        "schedule.pause",
        "schedule.resume",
        "schedule.trigger",
        "schedule.backfill",
        "schedule.delete",
        "job.change",
        "job.run_now",
        "job.cancel",
        "tenant.put",
        "tenant.patch",
        "tenant.pause",
        "tenant.drain",
        "tenant.resume",
        "stage.pause",
        "stage.resume",
        "breaker.reset",
        "flow.put",
        "flow.delete",
        "operation.accept",
        "operation.stop",
        "dead_letters.replay",
        "dead_letters.purge",
        "tenant.delete",
    ]
    assert {line["caller"] for line in lines} == {ANN}
    assert "secret" not in json.dumps(lines)
    by_action = {line["action"]: line for line in lines}
    put, paused = by_action["schedule.put"], by_action["schedule.pause"]
    assert "before" not in put
    assert json.loads(put["after"])["cron"] == "0 3 * * *"
    assert json.loads(put["after"])["job"]["target"] == "https://example.com"
    assert (json.loads(paused["before"])["status"], json.loads(paused["after"])["status"]) == ("active", "paused")
    moved = by_action["job.change"]
    assert json.loads(moved["before"])["id"] == moved["subject"] != json.loads(moved["after"])["id"]


def test_a_request_that_is_repeated_leaves_a_line_again_with_nothing_changed(stage: Stage):
    for _ in range(2):
        ask(stage, "POST", "/v1/tenants/acme:pause", {"note": "why"})

    _, again = actions(stage)
    assert again["before"] == again["after"]


def test_a_refused_request_leaves_no_line(stage: Stage):
    status, _ = stage.call("POST", "/v1/schedules/none:pause", query={"tenant": "acme"})

    assert (status, stage.audit_lines()) == (404, [])


def every_action(stage: Stage) -> None:
    job = {"target": "https://example.com/secret", "payload": "secret", "http": {"headers": {"x-key": "secret"}}}
    of_acme = {"query": {"tenant": "acme"}}
    ask(stage, "PUT", "/v1/schedules/nightly", {"cron": "0 3 * * *", "job": job}, **of_acme)
    ask(stage, "PATCH", "/v1/schedules/nightly", {"cron": "0 4 * * *"}, **of_acme)
    ask(stage, "POST", "/v1/schedules/nightly:pause", {"note": "n"}, **of_acme)
    ask(stage, "POST", "/v1/schedules/nightly:resume", {}, **of_acme)
    ask(stage, "POST", "/v1/schedules/nightly:trigger", {}, **of_acme)
    span = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}
    ask(stage, "POST", "/v1/schedules/nightly:backfill", span, **of_acme)
    ask(stage, "DELETE", "/v1/schedules/nightly", **of_acme)
    waiting = stage.submit(delay=3_600, payload="secret")["id"]
    ask(stage, "PATCH", f"/v1/jobs/{waiting}", {"delay": 7_200})
    ask(stage, "POST", f"/v1/jobs/{stage.submit(delay=3_600)['id']}:run-now")
    ask(stage, "DELETE", f"/v1/jobs/{stage.submit(delay=3_600)['id']}")
    ask(stage, "PUT", "/v1/tenants/acme", {"limits": {"weight": 2}})
    ask(stage, "PATCH", "/v1/tenants/acme", {"note": "n"})
    for verb in ("pause", "drain", "resume"):
        ask(stage, "POST", f"/v1/tenants/acme:{verb}", {})
    ask(stage, "POST", "/v1/pause", {})
    ask(stage, "POST", "/v1/resume", {})
    ask(stage, "POST", "/v1/breakers:reset", {"tenant": "acme", "destination": "https://example.com"})
    ask(stage, "PUT", "/v1/flows/stripe", {"rate": "60/min"}, **of_acme)
    ask(stage, "DELETE", "/v1/flows/stripe", **of_acme)
    operation = ask(stage, "POST", "/v1/operations", {"tenant": "acme", "action": "cancel", "all": True})["id"]
    ask(stage, "POST", f"/v1/operations/acme/{operation}:stop")
    ask(stage, "POST", "/v1/dead-letters:replay", {"tenant": "acme", "since": "2026-01-01T00:00:00Z"})
    ask(stage, "POST", "/v1/dead-letters:purge", {"tenant": "acme", "since": "2026-01-01T00:00:00Z"})
    ask(stage, "DELETE", "/v1/tenants/acme", query={"confirm": "acme"})


@pytest.fixture
def database(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The table as the Glue catalogue describes it, over files in folders by the day."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        columns = {name: TYPES[kind] for name, kind in COLUMNS.items()}
        keep(tmp_path, days_ago=40, lines=[])
        connection.execute(
            f"CREATE VIEW {TABLE} AS SELECT * FROM read_json('{tmp_path}/*/*.json', format = 'newline_delimited', "
            f"columns = {columns}, hive_partitioning = true, hive_types = {{'day': VARCHAR}})"
        )
        yield connection


def keep(folder: Path, *, days_ago: int, lines: list[dict[str, Any]]) -> None:
    """Put lines where the stream would have put them."""
    day = folder / f"day={datetime.now(UTC).date() - timedelta(days=days_ago)}"
    day.mkdir(exist_ok=True)
    file = day / f"{len(list(day.iterdir()))}.json"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def found(database: duckdb.DuckDBPyConnection, query: SavedQuery, *values: str) -> list[dict[str, Any]]:
    answer = database.execute(query.sql, values)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


def yesterday(line: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A line as if it had been written a day ago."""
    moved = {
        name: (datetime.fromisoformat(line[name]) - timedelta(days=1)).isoformat(timespec="milliseconds")[:-6] + "Z"
        for name in ("happened_at", "due_at", "began_at")
        if name in line
    }
    return {**line, **moved, **changes}


def test_what_ran_late_yesterday_is_found_once_and_the_latest_first(
    stage: Stage, database: duckdb.DuckDBPyConnection, tmp_path: Path
):
    for _ in range(3):
        stage.submit()
    stage.work()
    late, later, in_time = executions(stage)
    copies = [yesterday(late, lag_ms=2_001), yesterday(late, lag_ms=None, again=True)]
    keep(tmp_path, days_ago=1, lines=[*copies, yesterday(in_time, lag_ms=2_000)])
    keep(tmp_path, days_ago=0, lines=[yesterday(later, lag_ms=9_000), {**in_time, "lag_ms": 5_000}])

    rows = found(database, QUERIES["LateYesterday"])

    assert [(row["job_id"], row["lag_ms"]) for row in rows] == [(later["job_id"], 9_000), (late["job_id"], 2_001)]


def test_a_tenant_s_history_has_its_executions_and_what_was_done_and_nothing_of_others(
    stage: Stage, database: duckdb.DuckDBPyConnection, tmp_path: Path
):
    own, other = stage.submit()["id"], stage.submit(tenant="globex")["id"]
    stage.work()
    ask(stage, "POST", "/v1/tenants/acme:pause", {"note": "n"})
    keep(tmp_path, days_ago=0, lines=stage.audit_lines())

    rows = found(database, QUERIES["TenantHistory"], "acme")

    assert [(row["kind"], row["subject"], row["what"]) for row in rows] == [
        ("action", "acme", "tenant.pause"),
        ("execution", own, "succeeded"),
    ]
    assert json.loads(rows[0]["after"])["status"] == "paused"
    assert [row["subject"] for row in found(database, QUERIES["TenantHistory"], "globex")] == [other]


def test_dead_letters_are_counted_by_error_each_once(stage: Stage, database: duckdb.DuckDBPyConnection, tmp_path: Path):
    for name in ("none", "none", "nothing"):
        stage.submit(target=f"handler:{name}", retry=ONCE)
    stage.submit(target="handler:none", retry=ONCE, delivery="at_most_once")
    stage.submit()
    stage.work()
    lines = stage.audit_lines()
    keep(tmp_path, days_ago=0, lines=[*lines, *({**line, "again": True, "error_class": "x"} for line in lines)])

    rows = found(database, QUERIES["LettersByError"])

    (error,) = {line["error_class"] for line in lines if line["outcome"] == "failed"}
    assert [(row["tenant"], row["target"], row["error"], row["jobs"]) for row in rows] == [
        ("acme", "handler:none", error, 2),
        ("acme", "handler:nothing", error, 1),
    ]


def test_what_was_done_by_hand_is_found_newest_first(stage: Stage, database: duckdb.DuckDBPyConnection, tmp_path: Path):
    every_action(stage)
    keep(tmp_path, days_ago=0, lines=stage.audit_lines() * 2)

    rows = found(database, QUERIES["DoneByHand"])

    assert len(rows) == 25
    assert (rows[0]["action"], rows[-1]["action"]) == ("tenant.delete", "schedule.put")
    assert {row["caller"] for row in rows} == {ANN}


def test_queries_leave_alone_what_is_older_than_they_say(
    stage: Stage, database: duckdb.DuckDBPyConnection, tmp_path: Path
):
    stage.submit()
    stage.work()
    keep(tmp_path, days_ago=8, lines=stage.audit_lines())

    assert [found(database, query, *(["acme"] if "?" in query.sql else [])) for query in QUERIES.values()] == [[]] * 4
