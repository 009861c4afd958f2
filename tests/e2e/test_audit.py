"""The audit trail of all that the other tests made the stack do."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from functions.adapters.dynamodb.ledger_row import STARTS
from functions.domain.instants import from_ms
from functions.domain.jobs.collection import release_named
from functions.domain.jobs.job import Delivery
from functions.domain.jobs.job_id import parse_job_id
from functions.domain.lifecycle import TERMINAL, State
from infra.audit_queries import SavedQuery, queries
from infra.stage import Stage
from testkit.deployment import Deployment
from testkit.polling import eventually
from tests.e2e.sink import Sink
from tests.e2e.waiting import Update, send
from tickwheel.client import Client
from tickwheel.client.jobs import NewJob, RetryPolicy, Submitted

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

EVER = datetime.min.replace(tzinfo=UTC)
QUERIES = {query.name: query for query in queries(Stage.named("local").objective.lag)}


def lines(deployment: Deployment) -> list[dict[str, Any]]:
    """Everything in the bucket that the stream delivers to."""
    s3 = deployment.client("s3")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=deployment.audit, Prefix="lines/day=")
    keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
    bodies = [s3.get_object(Bucket=deployment.audit, Key=key)["Body"].read().decode() for key in keys]
    return [json.loads(line) for body in bodies for line in body.splitlines()]


def states(deployment: Deployment, *, since: datetime = EVER) -> dict[str, State]:
    """Of every job that the ledger knows, and whose row has changed since then."""
    pages = deployment.client("dynamodb").get_paginator("scan").paginate(TableName=deployment.table("Ledger"))
    items = (item for page in pages for item in page["Items"] if STARTS not in item["k"]["S"])
    rows = [row for row in items if from_ms(int(row["u"]["N"])) >= since]
    found = {row["k"]["S"]: State(row["s"]["S"]) for row in rows}
    # A release of a collection is no job of its tenant's: the trail has the jobs that it gave.
    return {key: state for key, state in found.items() if release_named(*key.split("#", 1)) is None}


FUNCTIONS = ("Api", "Scanner", "Worker", "Operations", "DeadLetters")

SLOW_TO_ANSWER = ("ReadTimeoutError", "ConnectTimeoutError", "the stream was slow to fail")
"""Why a local cloud on a busy laptop does not take lines. They are in the log then, whole."""


def lost(deployment: Deployment) -> list[dict[str, Any]]:
    """The events of lines that are in the log alone."""
    return [event for name in FUNCTIONS for event in deployment.events(name, "audit_lines_lost")]


def ends_by_trail(deployment: Deployment) -> dict[str, set[str]]:
    """How the jobs ended that have a row in the ledger, by the trail, with the lines that would be loaded into it."""
    ends: dict[str, set[str]] = {}
    for line in lines(deployment) + [line for event in lost(deployment) for line in event["lines"]]:
        if line["kind"] == "execution" and line["delivery"] != Delivery.AT_LEAST_ONCE:
            ends.setdefault(parse_job_id(line["job_id"]).key, set()).add(line["outcome"])
    return ends


def test_the_trail_reports_every_job_that_has_ended_and_of_no_other(
    deployment: Deployment, client: Client, sink: Sink, update: Update
) -> None:
    # The release before kept no trail, and its functions were at work until the end of the update.
    since = update.ended_at
    sent = send(client, sink.target(), seconds=0)
    sent.target.wait()
    eventually(
        lambda: (
            {key for key, state in states(deployment, since=since).items() if state in TERMINAL - {State.MOVED}}
            - set(ends_by_trail(deployment))
        ),
        lambda missing: not missing,
        what="every job that has ended is in the trail",
    )

    ends, ended = ends_by_trail(deployment), states(deployment)
    assert ends[parse_job_id(sent.job.id).key] == {"succeeded"}
    for key, outcomes in ends.items():
        # A dead letter that was replayed has ended before, and may go on.
        assert outcomes <= {ended[key].value, State.FAILED} or ended[key] is State.ATTEMPTED, key


def test_what_is_done_by_hand_is_in_the_trail(deployment: Deployment, client: Client) -> None:
    client.tenants.pause("a-paused", note="why")
    client.tenants.resume("a-paused")

    found = [line for line in lines(deployment) if line.get("tenant") == "a-paused"]

    assert sorted(line["action"] for line in found) == ["tenant.pause", "tenant.resume"]
    (paused,) = [line for line in found if line["action"] == "tenant.pause"]
    assert paused["caller"].startswith("arn:aws:iam::000000000000:")
    assert (json.loads(paused["before"]), json.loads(paused["after"])["note"]) == ({}, "why")


def test_nothing_was_lost_on_its_way_but_while_the_local_cloud_did_not_answer(deployment: Deployment) -> None:
    assert [event for event in lost(deployment) if not event["reason"].startswith(SLOW_TO_ANSWER)] == []
    assert sum(len(event["lines"]) for event in lost(deployment)) < len(lines(deployment)) / 2


def test_athena_finds_dead_letters_in_the_bucket_by_their_error(deployment: Deployment, client: Client) -> None:
    once = RetryPolicy(attempts=1)
    job = NewJob("handler:trial", tenant="a-failing", payload={"refuses": True}, retry=once)
    accepted = [each for each in client.submit_many([job] * 3) if isinstance(each, Submitted)]
    eventually(
        lambda: [client.get(each.id).state for each in accepted], lambda seen: set(seen) == {"failed"}, what="they fail"
    )

    header, *rows = asked(deployment, QUERIES["LettersByError"])

    assert header == ["tenant", "target", "error", "jobs", "first_at", "last_at"]
    assert [(row[1], row[3]) for row in rows if row[0] == "a-failing"] == [("handler:trial", "3")]


def asked(deployment: Deployment, query: SavedQuery) -> list[list[str]]:
    """The rows that a query finds on the local cloud, with its header."""
    athena = deployment.client("athena")
    query_id = athena.start_query_execution(
        QueryString=query.sql, WorkGroup="tickwheel-local", QueryExecutionContext={"Database": "tickwheel_local"}
    )["QueryExecutionId"]
    status: dict[str, Any] = eventually(
        lambda: athena.get_query_execution(QueryExecutionId=query_id)["QueryExecution"]["Status"],
        lambda status: status["State"] not in ("QUEUED", "RUNNING"),
        what="the query has ended",
    )
    assert status["State"] == "SUCCEEDED", status
    rows = athena.get_query_results(QueryExecutionId=query_id)["ResultSet"]["Rows"]
    return [[cell.get("VarCharValue", "") for cell in row["Data"]] for row in rows]
