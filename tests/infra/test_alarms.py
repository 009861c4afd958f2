"""Each alarm goes off by a fault: the real handlers meet it, and the alarm is evaluated on what they emit.

`FAULTS` is the list of all alarms and of what sets each off; `tests/e2e/test_alarms.py` sets some off on the local cloud
besides. What AWS counts itself is counted here from the same things: Lambda's errors from invocations
that end in one, SQS's numbers from the queues.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import pytest

from functions.adapters.dynamodb.ledger import DynamoDBLedger
from functions.adapters.dynamodb.timers import DynamoDBTimerStore
from functions.adapters.sqs import SqsReadyQueue
from functions.domain.errors import TooCostly
from functions.domain.far_ring.cursor import ClassCursor, OwnCursor, Position, first_cursors
from functions.domain.far_ring.timer_record import decode_envelope
from functions.domain.instants import DAY, MINUTE, SECOND, format_instant
from functions.domain.jobs.claims import MAX_RESCUES
from functions.domain.jobs.job import Priority, Timer
from functions.domain.stage.conditions import Conditions
from functions.ports.ready_queue import Rejected
from functions.scanner.budgets import Budgets
from functions.scanner.fair_scan import USED_UP, FairScan
from functions.services.schedules import materialiser as materialising
from functions.worker.handlers import HANDLERS
from infra.metrics import AUDITED
from infra.single_alarms import HELD_TOO_LONG
from infra.stage import Stage as StageValue
from scripts.synthesis import FUNCTIONS, Templates
from testkit.cloudwatch.alarms import Alarms, short_name
from testkit.cloudwatch.datapoints import metric
from testkit.events import Context, an_sqs_event
from tests.infra.watched import Watched, watched_stage
from tests.integration.stage import AUDIT_STREAM, NAMESPACE, QUEUES, TravellingClock
from tests.integration.test_operation_turns import accept_cancel
from tests.integration.test_whole_way import claim_and_die

A_JOB = {"tenant": "acme", "target": "handler:echo", "delay": 1}


@pytest.fixture(scope="module")
def alarms(templates_of: Callable[[StageValue], Templates]) -> Alarms:
    """Of the local stage, whose constants the handlers have here; with the alarms that the local cloud cannot keep."""
    stage = dataclasses.replace(StageValue.named("local"), emulated=False)
    return Alarms(templates_of(stage).scheduler["Resources"])


@pytest.fixture
def watched(alarms: Alarms, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Watched]:
    with watched_stage(alarms, monkeypatch, capsys) as watched:
        for _ in range(3):
            be_well(watched)
        watched.went_off.clear()  # before their first ticks, scanner and sweeper were silent
        yield watched
        assert watched.undeclared() == set()


def be_well(watched: Watched) -> None:
    """A minute in which a job is submitted and runs, and every function does its part."""
    watched.next_minute()
    watched.scan()
    watched.run("api", watched.stage.submit)
    watched.work()
    watched.handle("sweeper", {}, Context())
    watched.handle("operations", {}, Context())
    watched.look_at_queues()


def submitted_far(watched: Watched, **job: Any) -> str:
    """A job that the scanner is to promote."""
    return watched.run("api", lambda: watched.stage.submit(delay=200, **job))["id"]


def lose_a_promoted_job(watched: Watched) -> None:
    submitted_far(watched)
    watched.stage.travel(timedelta(seconds=201))
    watched.scan()
    watched.stage.sqs.purge_queue(QueueUrl=watched.stage.urls["normal"])
    watched.stage.travel(timedelta(minutes=7))


def sweep_twice(watched: Watched) -> None:
    for _ in range(2):
        watched.next_minute()
        watched.scan()
        watched.handle("sweeper", {}, Context())


def lose_a_setting(watched: Watched, functions: Iterable[str]) -> None:
    """These do not start for two minutes."""
    watched.stop_functions()
    with watched.patch.context() as patched:
        patched.delenv("LEDGER_TABLE")
        for _ in range(2):
            watched.next_minute()
            for name in functions:
                watched.handle(name, {"Records": []}, Context())


def a_job_is_passed_over(watched: Watched) -> None:
    """Its message is lost after its promotion."""
    lose_a_promoted_job(watched)
    sweep_twice(watched)


def a_schedule_loses_its_time_zone(watched: Watched) -> None:
    """It was known when the schedule was put."""
    definition = {"cron": "*/5 * * * *", "timezone": "Europe/Berlin", "job": {"target": "handler:echo"}}
    watched.run(
        "api",
        lambda: watched.stage.call("PUT", "/v1/schedules/nightly", definition, query={"tenant": "acme"}),
    )
    (row,) = watched.stage.rows("schedules")
    text = row["d"]["S"].replace("Europe/Berlin", "Mars/Olympus")
    watched.stage.dynamodb.put_item(TableName="schedules", Item={**row, "d": {"S": text}})
    watched.stage.travel(8 * MINUTE)
    for _ in range(3):
        watched.next_minute()
        watched.scan()
        watched.handle("sweeper", {}, Context())


def a_schedule_takes_too_much(watched: Watched) -> None:
    """Its rule was taken by a release that knew no budget."""
    definition = {"cron": "*/5 * * * *", "job": {"target": "handler:echo"}}
    watched.run(
        "api",
        lambda: watched.stage.call("PUT", "/v1/schedules/nightly", definition, query={"tenant": "acme"}),
    )
    with watched.patch.context() as patched:
        patched.setattr(materialising, "decide", too_costly)
        watched.stage.travel(8 * MINUTE)
        for _ in range(3):
            watched.next_minute()
            watched.scan()
            watched.handle("sweeper", {}, Context())


def too_costly(*_: Any, **__: Any) -> NoReturn:
    raise TooCostly


def a_clock_is_set_back(watched: Watched) -> None:
    """While a worker claims an attempt."""
    claim = DynamoDBLedger.claim

    def claim_and_set_back(*arguments: Any, **named: Any) -> Any:
        answer = claim(*arguments, **named)
        watched.stage.travel(-20 * SECOND)
        return answer

    watched.run("api", watched.stage.submit)
    with watched.patch.context() as patched:
        patched.setattr(DynamoDBLedger, "claim", claim_and_set_back)
        watched.work()
    watched.stage.travel(20 * SECOND)


def a_clock_is_wrong(watched: Watched) -> None:
    """The scanner's, by more than half of SKEW."""
    with watched.patch.context() as patched:
        patched.setattr(TravellingClock, "offset", lambda *_: 4 * SECOND)
        for _ in range(2):
            watched.next_minute()
            watched.scan()


def a_job_fails_for_good(watched: Watched) -> None:
    """It has a handler that is not there."""
    watched.run("api", lambda: watched.stage.submit(target="handler:none", retry={"attempts": 1}))
    watched.work()


def a_target_tells_that_it_failed(watched: Watched) -> None:
    """Through the API, for good."""
    watched.patch.setitem(HANDLERS, "long", lambda payload, invocation: {"statusCode": 202})
    job_id = watched.run("api", lambda: watched.stage.submit(target="handler:long"))["id"]
    watched.work()
    body = {"fence": 1, "error": "no", "permanent": True}
    watched.run("api", lambda: watched.stage.call("POST", f"/v1/jobs/{job_id}/fail", body))


def a_row_cannot_be_read(watched: Watched) -> None:
    """Of the far ring, so that it cannot be promoted."""
    submitted_far(watched)
    (row,) = watched.stage.rows("timers")
    watched.stage.dynamodb.put_item(TableName="timers", Item={**row, "j": {"S": "no record"}})
    watched.stage.travel(timedelta(seconds=201))
    watched.scan()


def a_foreign_message_is_dead(watched: Watched) -> None:
    """The consumer of the dead-letter queues gets it."""
    watched.stage.sqs.send_message(QueueUrl=watched.stage.urls["normal"], MessageBody="hello")
    event = an_sqs_event(watched.stage.receive(), queue="normal-dead", receive_count=10)
    watched.handle("dead_letters", event, Context())


def nobody_consumes_dead_letters(watched: Watched) -> None:
    """Messages that crash workers stay where they are."""
    url = watched.stage.sqs.create_queue(QueueName="normal-dead")["QueueUrl"]
    watched.stage.sqs.send_message(QueueUrl=url, MessageBody="hello")
    watched.look_at_queues()


def messages_wait(watched: Watched) -> None:
    """One in each queue, for longer than any may."""
    for url in watched.stage.urls.values():
        watched.stage.sqs.send_message(QueueUrl=url, MessageBody="waits")
    watched.stage.travel(timedelta(minutes=20))
    for _ in range(3):
        watched.next_minute()
        watched.look_at_queues()


def a_deployment_forgets_a_setting(watched: Watched) -> None:
    """No function starts any more."""
    lose_a_setting(watched, FUNCTIONS)


def nothing_ticks(watched: Watched) -> None:
    """For more minutes than an alarm looks back."""
    watched.stage.travel(6 * MINUTE)


def all_scanners_are_behind(watched: Watched) -> None:
    """Each of their ticks ends before it begins."""
    submitted_far(watched)
    watched.stage.travel(6 * MINUTE)
    with watched.patch.context() as patched:
        patched.setattr(FairScan, "scan", lambda *_, **__: USED_UP)
        for _ in range(3):
            watched.next_minute()
            watched.scan()


def critical_jobs_wait(watched: Watched) -> None:
    """Two minutes in a row, less long than would raise the age of their queue."""
    for _ in range(2):
        watched.next_minute()
        watched.run("api", lambda: watched.stage.submit(priority="critical"))
        watched.stage.travel(40 * SECOND)
        watched.work("critical")


def held_rows_are_not_put_anew(watched: Watched) -> None:
    """Of a tenant that is paused; the table takes no write of them."""
    watched.run("api", lambda: watched.stage.call("POST", "/v1/tenants/acme:pause", {"note": "for long"}))
    submitted_far(watched)
    (row,) = [row for row in watched.stage.rows("timers") if row["s"]["S"].startswith("2#acme#")]
    bucket, shard = map(int, row["p"]["S"].split("#"))
    watched.stage.travel(HELD_TOO_LONG + timedelta(hours=1))
    cursors = first_cursors(int(watched.now) // 60 * 60)
    cursors[Priority.NORMAL] = ClassCursor(cursors[Priority.NORMAL].at, {"acme": OwnCursor(Position(bucket))})
    watched.stage.scanned_to(cursors, shard=shard)
    with watched.patch.context() as patched:
        patched.setattr(DynamoDBTimerStore, "put", lambda _, timers: list(timers))
        for _ in range(3):
            watched.next_minute()
            watched.handle("scanner", {"shard": shard}, Context())


def some_shards_are_not_scanned(watched: Watched) -> None:
    """One rule of the scanner is disabled; the others tick, and the sweeper looks at all shards."""
    for _ in range(6):
        watched.next_minute()
        watched.handle("scanner", {"shard": 0}, Context())
        watched.handle("sweeper", {}, Context())


def a_shard_has_never_had_a_rule(watched: Watched) -> None:
    """The last of them: what it holds is promoted by nobody, and it has no cursor that could be late."""
    watched.stage.dynamodb.delete_item(TableName="shards", Key={"k": {"S": "0001"}})
    some_shards_are_not_scanned(watched)


def a_store_fails_the_api(watched: Watched) -> None:
    """It answers, and its invocations end well."""
    with watched.patch.context() as patched:
        patched.setattr(SqsReadyQueue, "send", cannot)
        for _ in range(2):
            watched.next_minute()
            watched.run("api", lambda: watched.stage.call("POST", "/v1/jobs", A_JOB))


def lambda_takes_retries_for_a_loop(watched: Watched) -> None:
    """As Lambda counts it: no code of ours runs."""
    for function in ("ApiFunction", "WorkerFunction", "DeadLettersFunction"):
        dropped = metric("AWS/Lambda", "RecursiveInvocationsDropped", FunctionName=function)
        watched.data.put(dropped, 1.0, at=watched.now)


def the_account_has_no_concurrency_left(watched: Watched) -> None:
    """For requests and batches, as Lambda tells: no code of ours runs."""
    for _ in range(2):
        watched.next_minute()
        for function in ("ApiFunction", "WorkerFunction"):
            watched.data.put(metric("AWS/Lambda", "Throttles", FunctionName=function), 3.0, at=watched.now)


def workers_die(watched: Watched) -> None:
    """In the middle of their attempts, in ten minutes one after another."""
    for _ in range(2):
        watched.run("api", lambda: watched.stage.submit(timeout=5))
        message = watched.stage.receive()[0]
        claim_and_die(watched.stage, message)
        watched.stage.travel(MINUTE)
        event = an_sqs_event([message], queue="normal", receive_count=2)
        watched.handle("worker", event, Context())
        watched.stage.travel(4 * MINUTE)
    watched.scan()


def jobs_are_late(watched: Watched) -> None:
    """A dozen, by more than is promised, in the last minutes of an hour: windows begin at multiples of their length."""
    watched.stage.travel(timedelta(seconds=3600 - 200 + 3600 * (watched.now % 3600 > 3400) - watched.now % 3600))
    for _ in range(12):
        watched.run("api", watched.stage.submit)
    watched.stage.travel(10 * SECOND)
    for _ in range(2):
        watched.work()
    watched.stage.travel(timedelta(seconds=300 - watched.now % 300))


def jobs_are_late_for_hours(watched: Watched) -> None:
    """Once in a window of half an hour and of six."""
    jobs_are_late(watched)
    watched.stage.travel(timedelta(seconds=6 * 3600 - watched.now % (6 * 3600)))
    # The short window is the one that ends with the long one.
    watched.stage.travel(-timedelta(minutes=20))
    jobs_are_late(watched)


def jobs_are_late_day_after_day(watched: Watched) -> None:
    """A dozen of each day, three times."""
    for _ in range(3):
        jobs_are_late(watched)
        watched.stage.travel(DAY)


def the_stage_is_behind(watched: Watched) -> None:
    """Nothing was promoted for as long as it takes to refuse submissions."""
    watched.stage.travel(timedelta(minutes=20))
    for _ in range(2):
        watched.next_minute()
        watched.handle("sweeper", {}, Context())


def an_operation_fails(watched: Watched) -> None:
    """Its store is not there, twice."""
    watched.run("api", lambda: watched.stage.submit(delay=3_600, tags=["eu"]))
    watched.run("api", lambda: accept_cancel(watched.stage))
    with watched.patch.context() as patched:
        patched.setattr(DynamoDBTimerStore, "read_owned", cannot)
        for _ in range(2):
            watched.next_minute()
            watched.handle("operations", {}, Context())


def the_audit_stream_is_gone(watched: Watched) -> None:
    """Each function has something to tell."""
    watched.run("api", lambda: watched.stage.submit(delay=3_600, tags=["eu"]))
    watched.stage.firehose.delete_delivery_stream(DeliveryStreamName=AUDIT_STREAM)
    watched.run("api", lambda: accept_cancel(watched.stage))
    watched.handle("operations", {}, Context())
    a_job_fails_for_good(watched)
    watched.next_minute()
    submitted_far(watched)
    watched.stage.travel(timedelta(seconds=201))
    with watched.patch.context() as patched:
        patched.setattr(SqsReadyQueue, "send", too_long)
        watched.scan()
    watched.run("api", lambda: watched.stage.submit(delivery="at_least_once"))
    messages = watched.stage.receive()
    (timer,) = decode_envelope(messages[0]["Body"])
    for _ in range(MAX_RESCUES):
        watched.stage.module("dead_letters").wiring.ledger.note_start(timer, now=timer.due_at)
    watched.handle("dead_letters", an_sqs_event(messages, queue="normal-dead", receive_count=10), Context())
    # Before the periods of what was lost so far are over.
    watched.next_minute()
    a_straggler_cannot_be_sent(watched)


def a_straggler_cannot_be_sent(watched: Watched) -> None:
    """What was passed over is taken by no queue."""
    lose_a_promoted_job(watched)
    with watched.patch.context() as patched:
        patched.setattr(SqsReadyQueue, "send", too_long)
        sweep_twice(watched)


def the_audit_stream_does_not_deliver(watched: Watched) -> None:
    """For half an hour, as Firehose tells."""
    for minutes in range(1, 30):
        watched.next_minute()
        stream = metric("AWS/Firehose", "DeliveryToS3.DataFreshness", DeliveryStreamName="AuditStream")
        watched.data.put(stream, 60.0 * minutes, at=watched.now)
    watched.stage.travel(timedelta(minutes=5))


def too_long(_: SqsReadyQueue, timers: Sequence[Timer]) -> list[Rejected]:
    """What SQS answers of messages above its limit, which no row of DynamoDB makes."""
    return [Rejected(timer, "MessageTooLong", is_permanent=True) for timer in timers]


def cannot(*_: Any, **__: Any) -> None:
    raise RuntimeError("the store is not there")


Fault = Callable[[Watched], None]


def of_each(name: str, fault: Fault) -> dict[str, Fault]:
    return {f"{name}{queue.capitalize()}": fault for queue in QUEUES}


FAULTS: dict[str, Fault] = {
    "Stragglers": a_job_is_passed_over,
    "ChainsBroken": a_schedule_loses_its_time_zone,
    "ChainsSetAside": a_schedule_takes_too_much,
    "Early": a_clock_is_set_back,
    "ClockSkewed": a_clock_is_wrong,
    "PromiseBroken": a_clock_is_set_back,
    "DeadLetteredByWorker": a_job_fails_for_good,
    "DeadLetteredByApi": a_target_tells_that_it_failed,
    "DeadLetteredByScanner": a_row_cannot_be_read,
    "DeadLetteredBySweeper": a_straggler_cannot_be_sent,
    "DeadLetteredByDeadLetters": a_foreign_message_is_dead,
    "DeadLetters": nobody_consumes_dead_letters,
    "JobsFail": a_job_fails_for_good,
    **of_each("QueueAge", messages_wait),
    **{
        f"Errors{''.join(word.capitalize() for word in name.split('_'))}": a_deployment_forgets_a_setting
        for name in FUNCTIONS
    },
    "FunctionsFail": a_deployment_forgets_a_setting,
    "OldestBucket": all_scanners_are_behind,
    "PromotionLag": some_shards_are_not_scanned,
    "CriticalLate": critical_jobs_wait,
    "SilentScanner": nothing_ticks,
    "SilentSweeper": nothing_ticks,
    "RequestsFail": a_store_fails_the_api,
    "ThrottledApi": the_account_has_no_concurrency_left,
    "ThrottledWorker": the_account_has_no_concurrency_left,
    "DroppedApi": lambda_takes_retries_for_a_loop,
    "DroppedWorker": lambda_takes_retries_for_a_loop,
    "DroppedDeadLetters": lambda_takes_retries_for_a_loop,
    "RescueRate": workers_die,
    "BurnFastLong": jobs_are_late,
    "BurnFastShort": jobs_are_late,
    "BurnSlowLong": jobs_are_late_for_hours,
    "BurnSlowShort": jobs_are_late_for_hours,
    "BurnSteady": jobs_are_late_day_after_day,
    "JobsAreLate": jobs_are_late,
    "HeldTooLong": held_rows_are_not_put_anew,
    "Shedding": the_stage_is_behind,
    "OperationFailures": an_operation_fails,
    **{f"AuditLostBy{name.title().replace('_', '')}": the_audit_stream_is_gone for name in AUDITED},
    "AuditLate": the_audit_stream_does_not_deliver,
}
"""By the alarm, what sets it off."""


def names_of(fault: Fault) -> set[str]:
    return {name for name, each in FAULTS.items() if each is fault}


def test_every_alarm_of_the_template_is_set_off_by_a_fault(alarms: Alarms) -> None:
    assert {short_name(each) for each in {**alarms.single, **alarms.composites}} == set(FAULTS)


def test_a_stage_that_is_well_sets_off_nothing(watched: Watched) -> None:
    assert watched.in_alarm() == set()
    assert len(watched.data.values) > 15


@pytest.mark.parametrize("fault", dict.fromkeys(FAULTS.values()), ids=lambda fault: fault.__name__)
def test_a_fault_sets_its_alarms_off(watched: Watched, fault: Fault) -> None:
    watched.next_minute()
    assert not watched.went_off & names_of(fault)

    fault(watched)

    watched.next_minute()
    assert names_of(fault) <= watched.went_off


def test_no_scanner_is_noticed_by_its_silence(watched: Watched) -> None:
    for _ in range(6):
        watched.next_minute()
        watched.handle("sweeper", {}, Context())
    # Jobs are late by then, which is the page; should nobody look at the lag, the silence is.
    assert {"PromotionLag", "JobsAreLate", "SilentScanner", "FunctionsFail"} <= watched.in_alarm()


def test_a_shard_that_is_not_scanned_is_noticed_though_the_others_are(watched: Watched) -> None:
    some_shards_are_not_scanned(watched)
    off = watched.in_alarm()
    assert {"PromotionLag", "JobsAreLate"} <= off
    assert "OldestBucket" not in off


def test_a_shard_that_was_never_scanned_is_noticed_though_nothing_says_how_far_it_is_behind(watched: Watched) -> None:
    a_shard_has_never_had_a_rule(watched)
    off = watched.in_alarm()
    assert {"PromotionLag", "JobsAreLate"} <= off
    assert "OldestBucket" not in off


def test_no_sweeper_is_noticed_by_its_silence(watched: Watched) -> None:
    for _ in range(7):
        watched.next_minute()
        watched.scan()
    off = watched.in_alarm()
    assert {"SilentSweeper", "FunctionsFail"} <= off
    assert "JobsAreLate" not in off


def test_a_stage_that_is_paused_as_a_whole_wakes_nobody(watched: Watched) -> None:
    for number in range(8):  # each shard has something that it may not promote
        submitted_far(watched, tenant=f"tenant-{number}")
    watched.run("api", lambda: watched.stage.call("POST", "/v1/pause", {"note": "for a while"}))
    watched.stage.travel(timedelta(seconds=201))
    for _ in range(8):
        watched.next_minute()
        watched.scan()
        watched.handle("sweeper", {}, Context())
    assert len(watched.stage.rows("timers")) >= 8
    assert watched.in_alarm() == set()


def test_on_a_new_stage_only_the_silence_is_noticed_and_no_longer_than_to_its_first_ticks(
    alarms: Alarms, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with watched_stage(alarms, monkeypatch, capsys) as new:
        assert new.in_alarm() == {"SilentScanner", "SilentSweeper", "FunctionsFail"}
        new.scan()
        new.handle("sweeper", {}, Context())
        assert new.in_alarm() == set()


def test_a_function_that_makes_jobs_late_pages_as_that_alone(watched: Watched) -> None:
    lose_a_setting(watched, ["worker"])
    watched.next_minute()
    assert {"ErrorsWorker", "JobsAreLate"} <= watched.went_off
    assert "FunctionsFail" not in watched.went_off


def test_low_priority_that_waits_for_room_wakes_nobody(watched: Watched) -> None:
    submitted_far(watched, priority="low")
    watched.stage.travel(timedelta(seconds=201))
    with watched.patch.context() as patched:
        patched.setattr(Budgets, "empty", property(lambda _: dict.fromkeys(Priority, 0)))
        patched.setattr(Conditions, "is_fresh", lambda *_: False)
        for _ in range(8):
            be_well(watched)
    assert watched.stage.rows("timers")
    assert watched.in_alarm() == set()


def test_one_invocation_that_is_lost_sets_off_nothing(watched: Watched) -> None:
    watched.stop_functions()
    with watched.patch.context() as patched:
        patched.delenv("LEDGER_TABLE")
        watched.handle("scanner", {"shard": 0}, Context())
    be_well(watched)
    assert watched.in_alarm() == set()


def test_a_few_late_jobs_wake_nobody(watched: Watched) -> None:
    for _ in range(9):
        watched.run("api", watched.stage.submit)
    watched.stage.travel(10 * SECOND)
    watched.work()
    watched.stage.travel(timedelta(seconds=3600 - watched.now % 3600))
    watched.scan()
    watched.handle("sweeper", {}, Context())
    assert not watched.in_alarm() & {"BurnFastLong", "JobsAreLate"}


def jobs_were_due_before_they_were_submitted(watched: Watched) -> None:
    for _ in range(3):
        watched.next_minute()
        asked_for = format_instant(watched.stage.now() - 58 * SECOND)
        watched.run("api", lambda at=asked_for: watched.stage.submit(priority="critical", run_at=at))
        watched.work("critical")


def tenants_are_resumed(watched: Watched) -> None:
    """One each minute, with a job that came due during its pause."""
    for tenant in ("first", "second", "third"):
        watched.next_minute()
        watched.run("api", lambda tenant=tenant: watched.stage.submit(tenant=tenant, priority="critical"))
        pause_or_resume(watched, tenant, "pause")
        watched.stage.travel(55 * SECOND)
        pause_or_resume(watched, tenant, "resume")
        watched.work("critical")


def pause_or_resume(watched: Watched, tenant: str, action: str) -> None:
    answer = watched.run("api", lambda: watched.stage.call("POST", f"/v1/tenants/{tenant}:{action}", {"note": "why"}))
    assert answer[0] == 200


@pytest.mark.parametrize(
    "mistake",
    [jobs_were_due_before_they_were_submitted, tenants_are_resumed],
    ids=lambda mistake: mistake.__name__,
)
def test_critical_jobs_to_which_nothing_sooner_was_promised_wake_nobody(watched: Watched, mistake: Fault) -> None:
    mistake(watched)
    lags = watched.data.values[metric(NAMESPACE, "lag_ms", service="worker", priority="critical")]
    watched.next_minute()
    assert max(value for _, value in lags) > 50_000
    assert not watched.went_off & {"CriticalLate", "JobsAreLate"}


def test_what_is_over_is_reported_to_be(watched: Watched) -> None:
    a_job_fails_for_good(watched)
    assert "JobsFail" in watched.in_alarm()
    for _ in range(4):
        be_well(watched)
    assert "JobsFail" in watched.in_alarm()  # what fails every few minutes does not page each time
    for _ in range(14):
        be_well(watched)
    assert watched.in_alarm() == set()
