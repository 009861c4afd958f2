"""How jobs and schedules go on when something is in their way, by whichever function carries them on."""

from datetime import timedelta
from typing import Any

import pytest

from functions.adapters.dynamodb.tables import SHARDS
from functions.domain.instants import format_instant
from functions.domain.jobs.claims import MAX_RESCUES
from functions.services.schedules.pauser import PAUSED_AFTER, Asides
from functions.services.tenants.plans import KNOWN_FOR
from testkit.events import Context, an_sqs_event
from tests.integration.stage import Stage
from tests.integration.test_whole_way import claim_and_die
from tests.least_privilege.plugin import recorder

OFTEN = {"every": 20, "job": {"target": "handler:echo"}}
AFTER_THE_LAST = {"every": {"interval": 200, "from": "end"}, "job": {"target": "handler:echo"}}
ONE_FAILURE_IS_ENOUGH = {
    "every": 3_600,
    "pause_after_failures": 1,
    "job": {"target": "handler:nobody", "retry": {"attempts": 1}},
}


@pytest.mark.parametrize("function", ["api", "scanner", "worker", "sweeper", "operations"])
def test_whichever_function_of_a_new_stage_comes_first_records_its_constants(stage: Stage, function: str):
    stage.module(function)

    assert "wheel" in {row["k"]["S"] for row in stage.rows(SHARDS.name)}


def test_fires_above_the_rate_of_their_tenant_wait_in_the_far_ring(stage: Stage):
    put(stage, **OFTEN, start=later(stage, seconds=300))
    limit_the_rate(stage)
    stage.travel(timedelta(seconds=300))

    assert handled(stage) == 1
    assert waiting_fires(stage) > 1


def test_a_sweep_carries_a_lost_chain_on_within_the_rate_of_its_tenant(stage: Stage):
    put(stage, **OFTEN, start=later(stage, seconds=300))
    limit_the_rate(stage)
    lose_the_alarms(stage)
    pass_by(stage, timedelta(minutes=10))

    assert stage.module("sweeper").handler({}, Context())["healed"] == 1
    assert waiting_fires(stage) > 1


def test_an_operation_that_meets_a_chain_which_takes_too_much_pauses_it_in_the_end(stage: Stage):
    put(stage, **OFTEN)
    asides = stage.module("operations").wiring.part("asides", Asides)
    _, standing = stage.call("GET", "/v1/schedules/nightly", query={"tenant": "acme"})

    with recorder.acting("operations"):
        for _ in range(PAUSED_AFTER):
            asides.set_aside("acme#nightly", version=standing["version"], why="it takes too much")
            stage.travel(timedelta(seconds=1))

    _, answer = stage.call("GET", "/v1/schedules/nightly", query={"tenant": "acme"})
    assert (answer["status"], "it takes too much" in answer["note"]) == ("paused", True)


def test_a_sweep_asks_for_the_end_of_a_run_that_is_awaited(stage: Stage):
    put(stage, **AFTER_THE_LAST)
    stage.travel(timedelta(seconds=200))
    assert handled(stage) == 1
    lose_the_alarms(stage)
    pass_by(stage, timedelta(minutes=10))

    assert stage.module("sweeper").handler({}, Context())["healed"] == 1


# Of eight, four or more come in one bucket, whenever a minute ends: so many are asked for at once.
@pytest.mark.parametrize("count", [1, 8])
def test_alarms_ask_for_the_ends_of_runs_that_are_awaited(stage: Stage, count: int):
    for number in range(count):
        put(stage, f"s{number}", **AFTER_THE_LAST)
    stage.travel(timedelta(seconds=200))
    assert handled(stage) == count

    stage.travel(timedelta(seconds=200))

    assert handled(stage) == count
    assert {schedule_of(stage, f"s{number}")["fires"] for number in range(count)} == {1}


def test_the_end_of_a_run_begins_the_wait_for_the_next(stage: Stage):
    put(stage, **AFTER_THE_LAST)
    stage.travel(timedelta(seconds=200))
    stage.scan()

    stage.work(within_seconds=2)

    assert schedule_of(stage)["last_outcome"] == "succeeded"
    assert schedule_of(stage)["next_fire"]["at"] > later(stage, seconds=150)


def test_a_fire_carries_the_large_payload_of_its_schedule(stage: Stage):
    payload = {str(number): f"{number * 7919 % 104_729:x}" for number in range(5_000)}
    put(stage, every=3_600, start=later(stage, seconds=200), job={"target": "handler:echo", "payload": payload})
    stage.travel(timedelta(seconds=200))
    stage.scan()

    stage.work(within_seconds=2)

    assert schedule_of(stage)["last_outcome"] == "succeeded"


@pytest.mark.parametrize(
    "end",
    ["fails", "loses its workers"],
)
def test_a_run_pauses_its_schedule_when_it(stage: Stage, end: str):
    put(stage, **ONE_FAILURE_IS_ENOUGH, start=later(stage, seconds=200))
    stage.travel(timedelta(seconds=200))
    stage.scan()

    if end == "fails":
        stage.work(within_seconds=2)
    else:
        bury(stage)

    assert schedule_of(stage)["status"] == "paused"


def test_after_a_run_whose_workers_die_the_next_is_waited_for(stage: Stage):
    put(stage, **AFTER_THE_LAST)
    stage.travel(timedelta(seconds=200))
    stage.scan()

    bury(stage)

    assert schedule_of(stage)["last_outcome"] == "failed"
    assert schedule_of(stage)["next_fire"]["at"] > later(stage, seconds=150)


def test_a_job_of_a_paused_tenant_waits_on_when_it_comes_from_the_dead_letter_queue(stage: Stage):
    stage.submit()
    messages = stage.receive()
    stage.call("POST", "/v1/tenants/acme:pause", {"note": "why"})
    stage.travel(KNOWN_FOR)
    event = an_sqs_event(messages, queue="normal-dead", receive_count=10)

    assert stage.module("dead_letters").handler(event, Context()) == {"batchItemFailures": []}

    assert len(stage.rows("timers")) == 1


def test_a_row_that_cannot_be_read_is_kept_as_a_dead_letter_and_passed(stage: Stage):
    stage.submit(delay=200)
    (row,) = stage.rows("timers")
    stage.dynamodb.put_item(TableName="timers", Item={**row, "j": {"S": '{"lunar":28}'}})
    stage.travel(timedelta(seconds=201))

    assert sum(report["buried"] for report in stage.scan()) == 1
    assert len(stage.letters()) == 1


def test_a_job_that_no_queue_will_take_fails_for_good(stage: Stage):
    job_id = stage.submit(delay=200)["id"]
    sqs = stage.module("scanner").wiring.promoted._client
    sqs.meta.events.register("after-call.sqs.SendMessageBatch", refuse)
    stage.travel(timedelta(seconds=201))

    assert sum(report["buried"] for report in stage.scan()) == 1
    assert stage.get(job_id)["state"] == "failed"


def test_a_run_that_no_queue_will_take_pauses_its_schedule(stage: Stage):
    put(stage, **ONE_FAILURE_IS_ENOUGH, start=format_instant(stage.now() - timedelta(hours=2)))
    backfill(stage)
    stage.travel(timedelta(minutes=5))
    stage.module("scanner").wiring.promoted._client.meta.events.register("after-call.sqs.SendMessageBatch", refuse)

    assert sum(report["buried"] for report in stage.scan()) == 1

    assert schedule_of(stage)["status"] == "paused"


def test_a_straggler_that_no_queue_will_take_fails_for_good_and_pauses_its_schedule(stage: Stage):
    put(stage, **ONE_FAILURE_IS_ENOUGH, start=format_instant(stage.now() - timedelta(hours=2)))
    stage.module("sweeper").handler({}, Context())
    backfill(stage)
    stage.travel(timedelta(minutes=5))
    stage.scan()
    stage.sqs.purge_queue(QueueUrl=stage.urls["normal"])
    pass_by(stage, timedelta(minutes=10))
    stage.module("sweeper").wiring.ready._client.meta.events.register("after-call.sqs.SendMessageBatch", refuse)

    stage.module("sweeper").handler({}, Context())

    assert [row["c"]["S"] for row in stage.letters()] == ["not_promoted"]
    assert schedule_of(stage)["status"] == "paused"
    assert [line["outcome"] for line in stage.audit_lines() if line["kind"] == "execution"] == ["failed"]


def test_an_operation_that_cancels_an_awaited_run_lets_the_next_one_be_waited_for(stage: Stage):
    put(stage, **AFTER_THE_LAST)
    stage.travel(timedelta(seconds=200))
    stage.scan()
    stage.call("POST", "/v1/tenants/acme:pause", {"note": "why"})
    stage.travel(KNOWN_FOR)
    stage.work(within_seconds=2)
    before = schedule_of(stage)["next_fire"]
    stage.travel(timedelta(minutes=2))

    status, accepted = stage.call(
        "POST", "/v1/operations", {"tenant": "acme", "action": "cancel", "schedule": "nightly"}
    )
    assert status == 202, accepted
    stage.module("operations").handler({}, Context())

    assert schedule_of(stage)["last_outcome"] == "cancelled"
    assert schedule_of(stage)["next_fire"] != before


def test_a_retry_that_is_far_waits_in_the_far_ring(stage: Stage):
    retry = {"strategy": "fixed", "attempts": 2, "base": 600, "cap": 600}
    job_id = stage.submit(target="https://127.0.0.1:1", retry=retry)["id"]

    stage.work()

    assert stage.get(job_id)["state"] == "retrying"
    assert len(stage.rows("timers")) == 1


def put(stage: Stage, schedule_id: str = "nightly", /, **definition: Any) -> None:
    status, answer = stage.call("PUT", f"/v1/schedules/{schedule_id}", definition, query={"tenant": "acme"})
    assert status == 201, answer


def backfill(stage: Stage) -> None:
    """The two fires before now, so far apart that the second goes to the far ring."""
    start, end = (format_instant(stage.now() - timedelta(minutes=minutes)) for minutes in (150, 30))
    asked = {"start": start, "end": end, "per_minute": 0.25}
    status, answer = stage.call("POST", "/v1/schedules/nightly:backfill", asked, query={"tenant": "acme"})
    assert (status, answer["count"]) == (202, 2)


def schedule_of(stage: Stage, schedule_id: str = "nightly") -> dict[str, Any]:
    status, found = stage.call("GET", f"/v1/schedules/{schedule_id}", query={"tenant": "acme"})
    assert status == 200, found
    return found


def later(stage: Stage, *, seconds: float) -> str:
    return format_instant(stage.now() + timedelta(seconds=seconds))


def limit_the_rate(stage: Stage) -> None:
    status, answer = stage.call("PATCH", "/v1/tenants/acme", {"limits": {"execution_rate": 0.01}})
    assert status == 200, answer
    stage.travel(KNOWN_FOR)


def refuse(parsed: dict[str, Any], **_: Any) -> None:
    """What SQS answers for messages that it will never take."""
    refused = parsed.pop("Successful")
    parsed["Failed"] = [{"Id": each["Id"], "SenderFault": True, "Code": "InvalidMessageContents"} for each in refused]


def handled(stage: Stage) -> int:
    return sum(report["alarms_due"] for report in stage.scan())


def waiting_fires(stage: Stage) -> int:
    """Fires in the far ring; alarms have a key of their own kind."""
    return len([row for row in stage.rows("timers") if "nightly:" in row["s"]["S"]])


def lose_the_alarms(stage: Stage) -> None:
    for row in stage.rows("timers"):
        stage.dynamodb.delete_item(TableName="timers", Key={"p": row["p"], "s": row["s"]})


def pass_by(stage: Stage, duration: timedelta) -> None:
    """Time goes on, and the scanner with it."""
    stage.travel(duration)
    stage.scan()


def bury(stage: Stage) -> None:
    """All workers of the only message die, until it comes to the dead-letter queue."""
    messages = stage.receive(within_seconds=2)
    for _ in range(1 + MAX_RESCUES):
        claim_and_die(stage, messages[0])
        stage.travel(timedelta(minutes=1))
    event = an_sqs_event(messages, queue="normal-dead", receive_count=10)
    assert stage.module("dead_letters").handler(event, Context()) == {"batchItemFailures": []}
