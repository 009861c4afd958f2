"""Dead letters through the real handlers, over tables, queues and a bucket."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from functions.adapters.dynamodb.dead_letters import DynamoDBDeadLetters
from functions.adapters.dynamodb.shards import DynamoDBShardStore
from functions.adapters.dynamodb.table import Table
from functions.adapters.dynamodb.tables import DEAD_LETTERS, SHARDS
from functions.domain.far_ring.timer_key import NO_TENANT
from functions.domain.jobs.job import Payload
from functions.domain.jobs.job_id import job_id_of
from functions.domain.jobs.retry import RetryPolicy, Strategy
from functions.domain.stage.conditions import Conditions
from functions.domain.targets.options import TargetOptions
from functions.ports.dead_letters import DeadLetter
from testkit.builders import a_timer
from testkit.events import Context
from tests.integration.stage import BUCKET, Stage

ANN = "arn:aws:iam::123456789012:user/ann"
ONCE = {"attempts": 1}


def test_a_job_that_failed_for_good_is_found_inspected_and_replayed(stage: Stage):
    accepted = stage.submit(target="handler:none-of-this-name", payload={"n": 1}, retry=ONCE, tags=["eu"])
    stage.work()

    status, page = call(stage, "GET", "", query={"tenant": "acme"})
    [entry] = page["dead_letters"]
    _, inspected = call(stage, "GET", f"/{entry['id']}")
    replayed = call(stage, "POST", f"/{entry['id']}:replay")
    again = call(stage, "POST", f"/{entry['id']}:replay")

    assert (status, page["next"]) == (200, None)
    assert (entry["job_id"], entry["tenant"], entry["attempt"]) == (accepted["id"], "acme", 1)
    assert (entry["target"], entry["tags"], entry["is_replayable"]) == ("handler:none-of-this-name", ["eu"], True)
    assert {name: inspected[name] for name in entry} == entry
    assert (inspected["payload"], inspected["job"]["retry"]["attempts"]) == ({"n": 1}, 1)
    assert (replayed[0], replayed[1]["outcome"], replayed[1]["attempt"]) == (202, "replayed", 3)
    assert (again[0], again[1]["outcome"], again[1]["state"]) == (200, "already_replayed", "retrying")
    assert stage.letters() == []
    stage.work(within_seconds=2)
    assert (stage.get(accepted["id"])["attempt"], len(stage.letters())) == (3, 1)


def test_a_purged_dead_letter_is_gone_with_its_payload(stage: Stage):
    letter = put(stage, large=True)
    assert call(stage, "GET", f"/{letter.letter_id}")[1]["payload"] == {"large": True}

    for _ in range(2):
        assert call(stage, "DELETE", f"/{letter.letter_id}") == (
            200,
            {"id": str(letter.letter_id), "outcome": "purged"},
        )

    assert stage.letters() == []
    assert stage.s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0
    assert call(stage, "GET", f"/{letter.letter_id}")[1]["code"] == "dead_letter_not_found"


def test_a_dead_letter_whose_payload_is_gone_is_reported_so_and_not_replayed(stage: Stage):
    letter = put(stage, large=True)
    stage.s3.delete_object(Bucket=BUCKET, Key="jobs/acme/large")

    assert call(stage, "GET", f"/{letter.letter_id}")[1]["is_payload_gone"] is True
    status, problem = call(stage, "POST", f"/{letter.letter_id}:replay")

    assert (status, problem["code"]) == (409, "payload_gone")
    assert (len(stage.letters()), stage.rows("ledger")) == (1, [])


def test_what_tickwheel_did_not_write_is_reported_as_it_was_received(stage: Stage):
    foreign = DeadLetter(
        tenant=NO_TENANT,
        identity="c5f0",
        dead_at=stage.now(),
        error="undecodable: not an envelope",
        error_class="undecodable",
        raw="hello",
    )
    letters(stage).put(foreign)

    _, page = call(stage, "GET", "", query={"tenant": "?"})
    _, inspected = call(stage, "GET", f"/{foreign.letter_id}")
    status, problem = call(stage, "POST", f"/{foreign.letter_id}:replay")

    [entry] = page["dead_letters"]
    assert (entry["id"], entry["tenant"], entry["is_replayable"]) == (str(foreign.letter_id), "?", False)
    assert not {"job_id", "target", "tags"} & set(entry)
    assert inspected == {**entry, "raw": "hello"}
    assert (status, problem["code"]) == (409, "not_replayable")


def test_values_of_headers_are_reported_to_nobody(stage: Stage):
    letter = put(stage, options=TargetOptions(headers=(("Authorization", "Bearer s3cret"),)))

    _, inspected = call(stage, "GET", f"/{letter.letter_id}")

    assert inspected["job"]["http"] == {"headers": ["Authorization"]}
    assert "s3cret" not in json.dumps(inspected)


def test_a_list_is_reported_page_by_page_and_filtered(stage: Stage):
    for number in range(5):
        put(stage, minutes_ago=number * 50, error_class="timeout" if number % 2 else "http_500")

    found: list[str] = []
    after: str | None = ""
    while after is not None:
        status, page = call(stage, "GET", "", query={"tenant": "acme", "limit": 2, "after": after})
        assert status == 200
        found += [entry["id"] for entry in page["dead_letters"]]
        after = page["next"]
    _, timeouts = call(stage, "GET", "", query={"tenant": "acme", "error_class": "timeout"})

    assert len(found) == len(set(found)) == 5
    assert [entry["id"] for entry in timeouts["dead_letters"]] == [found[1], found[3]]


def test_however_far_back_a_list_reaches_it_is_two_queries_for_one_dead_letter(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    stage.submit(target="handler:none-of-this-name", retry=ONCE)
    stage.work()
    stage.module("sweeper").handler({}, Context())
    queries: list[str] = []
    client = stage.module("api").wiring.dead_letters.table.client

    def query(ask: Any = client.query, **asked: Any) -> Any:
        queries.append(asked["TableName"])
        return ask(**asked)

    monkeypatch.setattr(client, "query", query)

    _, page = call(stage, "GET", "", query={"tenant": "acme", "since": "2000-01-01T00:00:00Z"})

    assert (len(page["dead_letters"]), page["next"], queries) == (1, None, [DEAD_LETTERS.name] * 2)


def test_dead_letters_of_a_stage_of_the_release_before_are_found_as_well(stage: Stage):
    letter = put(stage, minutes_ago=200)
    DynamoDBShardStore(Table(stage.dynamodb, SHARDS.name)).publish(Conditions(published_at=stage.now()))
    for row in stage.rows(DEAD_LETTERS.name):
        if row not in stage.letters():
            stage.dynamodb.delete_item(TableName=DEAD_LETTERS.name, Key={"p": row["p"], "s": row["s"]})
    stage.module("sweeper").handler({}, Context())

    _, page = call(stage, "GET", "", query={"tenant": "acme"})

    assert [entry["id"] for entry in page["dead_letters"]] == [str(letter.letter_id)]


def test_many_are_counted_then_replayed_at_a_rate(stage: Stage, caplog: pytest.LogCaptureFixture):
    for number in range(3):
        put(stage, minutes_ago=number, error_class="timeout")
    put(stage, minutes_ago=1)
    body = {"tenant": "acme", "error_class": "timeout", "rate": 10}

    _, counted = call(stage, "POST", ":replay", {**body, "dry_run": True})
    assert (counted["matched"], len(counted["dead_letters"]), counted["next"]) == (3, 3, None)
    assert (len(stage.letters()), stage.rows("ledger")) == (4, [])
    status, replayed = call(stage, "POST", ":replay", body)

    assert (status, replayed["matched"], replayed["replayed"], replayed["failed"]) == (200, 3, 3, [])
    assert (len(stage.letters()), len(stage.rows("ledger"))) == (1, 3)
    dues = sorted(int(row["d"]["N"]) for row in stage.rows("ledger"))
    assert [due - dues[0] for due in dues] == [0, 100, 200]
    [line] = audit(caplog, "dead_letters_replayed")
    assert (line["caller"], line["tenant"], line["filter"]) == (ANN, "acme", {"error_class": "timeout"})
    assert (line["replayed"], len(line["dead_letters"])) == (3, 3)


def test_many_are_purged(stage: Stage, caplog: pytest.LogCaptureFixture):
    put(stage, error_class="timeout", large=True)
    put(stage, minutes_ago=1)

    status, purged = call(stage, "POST", ":purge", {"tenant": "acme", "error_class": "timeout"})

    assert (status, purged["matched"], purged["purged"], purged["failed"], purged["next"]) == (200, 1, 1, [], None)
    assert len(stage.letters()) == 1
    assert stage.s3.list_objects_v2(Bucket=BUCKET)["KeyCount"] == 0
    assert [line["caller"] for line in audit(caplog, "dead_letters_purged")] == [ANN]


@pytest.mark.parametrize(
    ("method", "path", "body", "query", "status", "said"),
    [
        ("GET", "", None, {}, 422, "tenant is required"),
        ("GET", "", None, {"tenant": "a#b"}, 422, "tenant must match"),
        ("GET", "", None, {"tenant": "acme", "limit": 501}, 422, "limit"),
        ("GET", "", None, {"tenant": "acme", "since": "yesterday"}, 422, "since must be an RFC 3339 instant"),
        ("GET", "", None, {"tenant": "acme", "after": "x"}, 422, "after is not the `next` of an answer"),
        ("GET", "/x", None, {}, 404, "'x' is not the id of a dead letter"),
        ("DELETE", "/j1~acme~2e~a0~1~b0~x", None, {}, 404, "is not the id of a dead letter"),
        ("POST", "/x:replay", None, {}, 404, "'x' is not the id of a dead letter"),
        ("POST", "/d1~acme~a0~x:mend", None, {}, 404, "'mend' is nothing that can be asked of a dead letter"),
        ("POST", "/d1~acme~a0~x:replay", None, {}, 404, "there is no dead letter d1~acme~a0~x"),
        ("POST", ":replay", {"tenant": "acme", "rate": 0}, {}, 422, "rate"),
        ("POST", ":purge", {"tenant": "acme", "rate": 1}, {}, 422, "rate is not a field here"),
        ("POST", ":purge", {"tenant": "acme", "dry_run": "yes"}, {}, 422, "dry_run"),
        (
            "POST",
            ":purge",
            {"tenant": "acme", "since": "2027-01-02T00:00:00Z", "until": "2027-01-01T00:00:00Z"},
            {},
            422,
            "until must be after since",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_to_do(
    stage: Stage, method: str, path: str, body: Any, query: dict[str, Any], status: int, said: str
):
    answered, problem = call(stage, method, path, body, query=query)

    assert answered == status, problem
    assert said in problem["detail"]


def test_a_caller_that_the_gateway_does_not_name_is_unknown(stage: Stage, caplog: pytest.LogCaptureFixture):
    letter = put(stage)

    stage.call("DELETE", f"/v1/dead-letters/{letter.letter_id}")

    assert [line["caller"] for line in audit(caplog, "dead_letters_purged")] == ["unknown"]


def call(stage: Stage, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
    return stage.call(method, f"/v1/dead-letters{path}", body, caller=ANN, **options)


def letters(stage: Stage) -> DynamoDBDeadLetters:
    return DynamoDBDeadLetters(Table(stage.dynamodb, DEAD_LETTERS.name))


def put(
    stage: Stage, *, minutes_ago: int = 0, error_class: str = "http_500", large: bool = False, **job: Any
) -> DeadLetter:
    if large:
        stage.s3.put_object(Bucket=BUCKET, Key="jobs/acme/large", Body=b'{"large":true}')
        job["payload"] = Payload(pointer="jobs/acme/large")
    retry = RetryPolicy(strategy=Strategy.FIXED, attempts=1, base=timedelta(seconds=1))
    timer = a_timer(due_at=stage.now(), retry=retry, **job)
    letter = DeadLetter(
        tenant="acme",
        identity=timer.job.identity,
        dead_at=stage.now() - timedelta(minutes=minutes_ago),
        error="it hurts",
        error_class=error_class,
        attempt=1,
        job_id=str(job_id_of(timer.job)),
        timer=timer,
    )
    letters(stage).put(letter)
    return letter


def audit(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.message == event]
