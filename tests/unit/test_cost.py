"""The bill of a month: each line against a figure that was worked out by hand."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bench.budgets import Units
from bench.cost import INLINE, KNOWLEDGE_SECONDS, SWEEPS, TALLIED, Model
from bench.cost import PULSE_WRITES as WRITES_OF_PULSE
from bench.cost_inputs import deployed_of, model_of, read_measured
from bench.cost_others import others
from bench.cost_terms import DAYS, Assumed, Bill, Deployed, Measured, Workload
from bench.prices import read_prices_of_one
from functions.domain.far_ring.timer_record import INLINE_LIMIT
from functions.domain.stage.pulse import MOST_NAMED
from functions.services.telemetry.pulse import NAMED_EVERY, WRITTEN_EVERY
from functions.services.telemetry.usage import ENOUGH_JOBS
from functions.services.tenants.plans import KNOWN_FOR
from functions.sweeper.heal import PASS_INTERVAL
from infra.stage import Stage

MILLION = 1e6
MINUTES = 43_200  # in 30 days

MODEL = Model(
    deployed=Deployed(
        ready=0,
        name="test",
        shards=10,
        memory={"api": 512, "scanner": 1_769, "worker": 1_024, "sweeper": 512, "operations": 512, "dead_letters": 256},
        audit_sample=0.5,
        log_days=15,
        limited_sources=7,
        unlimited_sources=1,
        pollers=0,
        metrics=70,
        alarm_metrics=40,
        composite_alarms=6,
        dashboards=1,
        keys=1,
    ),
    measured=Measured(
        paths={
            "near, exactly_once": Units(2, 0, 0.3),
            "far, exactly_once": Units(3, 0.1, 0.3),
            "near, exactly_once, keyed": Units(3, 0, 0.3),
            "far, exactly_once, keyed": Units(4, 0.1, 0.3),
            "near, at_least_once": Units(0, 0, 0.3),
            "far, at_least_once": Units(1, 0.1, 0.3),  # 0.1 of a read unit is a row of 819.2 bytes
            "near, at_least_once, keyed": Units(1, 0, 0.3),
            "far, at_least_once, keyed": Units(2, 0.1, 0.3),
        },
        fire=Units(4, 1.5, 0.3),
        tick=Units(2, 0.5, 0),
        mark=Units(1, 0.5, 0),
        payload=512,
        log_bytes={"near": 500, "far": 600, "tick": 900, "request": 200},
        promoted_a_second=5_000,
        emitted={
            "idle": ["a", "b"],
            "request": ["c"],
            "near": ["a", "d"],
            "far": ["a", "d", "e"],
            "fire": ["f"],
            "retry": ["g"],
        },
        audit_line=600,
        audit_line_kept=50,
    ),
    prices=read_prices_of_one(),
)
# A million jobs a day, half of them far, a tenth tried again, ten jobs a request; 11.6 a second, so that batches are full.
WORK = Workload(
    jobs_a_day=1e6, far_share=0.5, retries=0.1, batch=10, look_ups=0.1, tenants=100, wait_days=2, keyed_share=0.2
)


def line(bill: Bill, what: str, service: str = "") -> tuple[float, float]:
    """Quantity and USD of the one line."""
    (found,) = [each for each in bill.lines if each.what == what and service in each.service]
    return found.quantity, found.usd


@pytest.mark.parametrize(
    ("service", "what", "quantity", "usd"),
    [
        # half of 2 and half of 3, and a fifth of them one more: 2.7 units
        ("DynamoDB", "writes: jobs", 30e6 * 2.7, 81 * 0.625),
        ("DynamoDB", "writes: retries", 30e6 * 0.1 * 2, 6 * 0.625),
        ("DynamoDB", "writes: idle shards: leases and checkpoints", 864_000, 0.864 * 0.625),
        ("DynamoDB", "writes: the sweeper: conditions and places", 129_600, 0.1296 * 0.625),
        ("DynamoDB", "writes: marks of tenants' days", 3_000, 0.003 * 0.625),
        # once a minute of each tenant, which is more than a two-hundredth of 60 million
        ("DynamoDB", "writes: usage by tenant", 100 * MINUTES, 4.32 * 0.625),
        ("DynamoDB", "reads: jobs", 30e6 * 0.05, 1.5 * 0.125),
        ("DynamoDB", "reads: idle shards", 216_000, 0.216 * 0.125),
        # half of 15 million far jobs, each 0.1 of its row and 0.5 of the ledger, and half of the empty shards
        ("DynamoDB", "reads: the audit of ended buckets", 0.5 * (15e6 * 0.6 + 10 * MINUTES / 2), 4.608 * 0.125),
        ("DynamoDB", "reads: look-ups", 3e6, 3 * 0.125),
        # 500,000 rows a day for 14 + 2 days, of 819.2 + 100 bytes
        ("DynamoDB", "storage: far rows", 7.3536, 7.3536 * 0.25),
        # a million a day for 22 days, of 300 + 100 bytes
        ("DynamoDB", "storage: ledger", 8.8, 2.2),
        ("DynamoDB", "point-in-time recovery of all", 16.1536, 16.1536 * 0.2),
        # near ones in tens; far ones 34.7 a minute and shard, in tens; retries alone
        ("SQS", "sends", 1.5e6 + 1.5e6 + 3e6, 6 * 0.4),
        ("SQS", "receives and deletes", 6.6e6, 6.6 * 0.4),
        ("SQS", "both, for their message groups", 12.6e6, 12.6 * 0.1),
        # seven sources with five pollers and one with two, three times a minute
        ("SQS", "receives of nothing", (7 * 5 + 2) * 3 * MINUTES, 4.7952 * 0.4),
        ("Lambda", "requests: worker", 3.3e6, 3.3 * 0.2),
        ("Lambda", "GB-s: worker", 3.3e6 * 0.13, 429_000 * 13.3334e-6),
        # 3 million requests with jobs, 3 million look-ups
        ("Lambda", "requests: API", 6e6, 6 * 0.2),
        ("Lambda", "GB-s: API", (6e6 * 0.02 + 30e6 * 0.002) * 0.5, 90_000 * 13.3334e-6),
        ("Lambda", "requests: ticks", 12 * MINUTES, 0.5184 * 0.2),
        # 432,000 ticks of 50 ms, and 15 million jobs at 5,000 a second
        ("Lambda", "GB-s: scanner", (21_600 + 3_000) * 1_769 / 1_024, 24_600 * 1_769 / 1_024 * 13.3334e-6),
        ("Lambda", "GB-s: sweeper, operations", MINUTES * 0.35 * 0.5, 7_560 * 13.3334e-6),
        # a second of one in a hundred: 3.3 million batches of a worker of 1 GB
        ("Lambda", "GB-s: starts, worker", 33_000, 33_000 * 13.3334e-6),
        # 6 million requests and 86,400 ticks of 0.5 GB, 432,000 ticks of a vCPU
        (
            "Lambda",
            "GB-s: starts, API and ticks",
            30_432 + 4_320 * 1_769 / 1_024,
            (30_432 + 4_320 * 1_769 / 1_024) * 13.3334e-6,
        ),
        ("API Gateway", "requests", 6e6, 6.0),
        # all but f, which only a fire has values for
        ("CloudWatch", "metrics, by hours with values", 69, 20.7),
        ("CloudWatch", "alarms, by their metrics", 40, 4.0),
        ("CloudWatch", "composite alarms", 6, 3.0),
        ("CloudWatch", "dashboard", 1, 3.0),
        # 9.8184 million invocations: workers, requests, ticks
        ("X-Ray", "traces", 0.05 * 9_818_400, 0.49092 * 5),
        # ten lines of 600 bytes are two steps of 5 KB
        ("Firehose", "the audit trail, in 5 KB", 6e6, 6 * 0.1383),
        # a million lines a day, 400 days
        ("S3", "the audit trail, once it is 400 days old", 20.0, 20 * 0.023),
        ("Secrets Manager", "the secret of webhooks", 1, 0.4),
        ("KMS", "the key of the topics", 1, 1.0),
    ],
)
def test_each_line_is_what_it_is_by_hand(service: str, what: str, quantity: float, usd: float):
    assert line(MODEL.bill(WORK), what, service) == (pytest.approx(quantity), pytest.approx(usd))


def test_logs_are_what_executions_ticks_requests_and_lambda_write():
    # near 15M of 500, far 15M of 600, ticks of 900, requests of 200 + 450, invocations of 300
    written = (15e6 * 500 + 15e6 * 600 + 518_400 * 900 + 6e6 * 650 + 9_818_400 * 300) / 1e9

    assert line(MODEL.bill(WORK), "logs in") == (pytest.approx(written), pytest.approx(written * 0.5))
    assert line(MODEL.bill(WORK), "logs kept") == (pytest.approx(written / 2), pytest.approx(written / 2 * 0.03))


def test_a_metric_costs_the_hours_in_which_it_has_values():
    few = replace(WORK, jobs_a_day=2)  # 60 a month, 6 requests, 6 retries

    # a and b all month; c 6 hours, d 60, e 30, g 6; the other 63 a thousandth of 60
    hours = 720 + 720 + 6 + 60 + 30 + 6 + 63 * 0.06
    assert line(MODEL.bill(few), "metrics, by hours with values") == (
        pytest.approx(hours / 720),
        pytest.approx(hours / 720 * 0.3),
    )
    assert line(MODEL.bill(replace(few, jobs_a_day=0)), "metrics, by hours with values")[0] == 2
    # 720 fires: f, too, has a value in every hour
    with_fires = MODEL.bill(replace(few, jobs_a_day=0, schedules=1, fires_a_schedule_day=24, retries=0))
    assert line(with_fires, "metrics, by hours with values")[0] == pytest.approx(3 + 63 * 0.72 / 720)


def test_an_idle_stage_stays_within_its_budget():
    dev = model_of(Stage.named("dev"), Assumed())

    assert 10 < dev.bill(Workload(jobs_a_day=1)).usd < 25


def test_provisioned_pollers_cost_their_hours_and_grow_with_what_they_receive():
    provisioned = replace(MODEL, deployed=replace(MODEL.deployed, limited_sources=4, unlimited_sources=0, pollers=50))
    bill = provisioned.bill(WORK)

    # 12.73 attempts a second in tens are 1.3 receives: fifty pollers are more than enough, all of 720 hours
    assert line(bill, "provisioned pollers, hours") == (pytest.approx(36_000), pytest.approx(36_000 * 0.00925))
    assert line(bill, "receives of nothing")[0] == pytest.approx((4 * 5 + 50) * 3 * MINUTES)
    # a thousand times as many are 12,731 a second, by 100 a poller
    busy = provisioned.bill(replace(WORK, jobs_a_day=1e9))
    assert line(busy, "provisioned pollers, hours")[0] == pytest.approx(1.1e9 / 86_400 / 100 * 720)
    assert [each for each in MODEL.bill(WORK).lines if each.unit == "poller_hour"] == []


def test_workers_that_are_kept_started_cost_their_memory_all_the_time():
    kept = replace(MODEL, deployed=replace(MODEL.deployed, ready=2, memory={**MODEL.deployed.memory, "worker": 512}))

    quantity, usd = line(kept.bill(WORK), "GB-s: workers kept started")
    assert quantity == 2 * 0.5 * 30 * 86_400
    assert usd == pytest.approx(2 * 4.32, abs=0.01)
    assert [each for each in MODEL.bill(WORK).lines if each.unit == "ready_gb_second"] == []


def test_an_event_source_is_idle_as_its_stage_limits_it():
    dev, scale = deployed_of(Stage.named("dev")), deployed_of(Stage.named("scale"))

    assert (dev.limited_sources, dev.unlimited_sources, dev.pollers) == (8, 0, 0)
    assert (scale.limited_sources, scale.unlimited_sources, scale.pollers) == (4, 0, 320)


def test_a_start_costs_what_its_share_and_its_time_are():
    seldom = replace(MODEL, assumed=Assumed(cold=0.001, start_s=0.5))

    assert line(seldom.bill(WORK), "GB-s: starts, worker")[0] == pytest.approx(3.3e6 * 0.001 * 0.5)
    assert line(seldom.eventbridge(WORK), "GB-s: starts, worker")[0] == pytest.approx(3.3e6 * 0.001 * 0.5)


def test_the_pulse_and_what_processes_know_is_by_the_process():
    # 12.73 attempts a second in tens of 0.13 s are a sixth of a process: there is one
    assert line(MODEL.bill(WORK), "writes: the pulse")[0] == 6 * MINUTES
    assert line(MODEL.bill(WORK), "reads: what processes know")[0] == 2 * MINUTES

    # 1,000 times as many are 165.5
    many = MODEL.bill(replace(WORK, jobs_a_day=1e9))
    assert line(many, "writes: the pulse")[0] == pytest.approx(1.1e9 * 30 / 2_592_000 / 10 * 0.13 * 6 * MINUTES)


def test_schedules_cost_their_fires_their_rows_and_their_sweep():
    bill = MODEL.bill(replace(WORK, jobs_a_day=0, schedules=1_000, fires_a_schedule_day=24))

    assert line(bill, "writes: fires of schedules") == (pytest.approx(2.88e6), pytest.approx(1.8))
    assert line(bill, "reads: fires of schedules") == (pytest.approx(1.08e6), pytest.approx(0.135))
    # 8,640 passes over 1,000 rows of 600 bytes
    assert line(bill, "reads: the sweep of schedules")[0] == pytest.approx(8_640 * 1_000 * 600 / 8_192)
    assert line(bill, "storage: schedules")[0] == pytest.approx(1_000 * 2_300 / 1e9)
    assert bill.executions == 720_000


def test_a_larger_payload_is_more_units_and_a_large_one_is_an_object():
    # a row of 819.2 - 512 + 2,048 = 2,355.2 bytes: three units, and 0.1875 read units more
    larger = MODEL.bill(replace(WORK, payload=2_048))
    assert line(larger, "writes: jobs")[0] == pytest.approx(30e6 * 2.7 + 15e6 * 2)
    assert line(larger, "reads: jobs")[0] == pytest.approx(30e6 * 0.05 + 15e6 * 0.1875)

    large = MODEL.bill(replace(WORK, payload=100_000))
    assert line(large, "writes: jobs")[0] == pytest.approx(30e6 * 2.7)
    assert line(large, "payloads put") == (pytest.approx(30e6), pytest.approx(150.0))
    assert line(large, "payloads read") == (pytest.approx(33e6), pytest.approx(13.2))
    # a million a day, of which half wait for two days
    assert line(large, "payloads kept") == (pytest.approx(100.0), pytest.approx(2.3))


def test_few_messages_come_alone_and_a_fill_can_be_said():
    few = replace(WORK, jobs_a_day=1_000)

    assert line(MODEL.bill(few), "receives and deletes")[0] == pytest.approx(2 * 33_000)
    filled = replace(MODEL, assumed=Assumed(fill=5))
    assert line(filled.bill(few), "receives and deletes")[0] == pytest.approx(2 * 33_000 / 5)


def test_an_at_least_once_job_has_no_ledger_row():
    bill = MODEL.bill(replace(WORK, delivery="at_least_once", keyed_share=0))

    assert line(bill, "writes: jobs")[0] == pytest.approx(15e6)
    assert [each for each in bill.lines if each.what in ("storage: ledger", "writes: retries")] == []


@pytest.mark.parametrize(
    ("what", "quantity", "usd"),
    [
        ("invocations", 30e6, 30.0),
        ("sends, one message each", 30e6, 12.0),
        ("receives and deletes", 6.6e6, 2.64),
        ("receives of nothing", 259_200, 0.10368),
        ("writes: an idempotency record put and completed", 66e6, 41.25),
        ("storage of them", 8.8, 2.2),
        ("their point-in-time recovery", 8.8, 1.76),
        ("reads: look-ups", 3e6, 0.375),
        ("requests: worker", 3.3e6, 0.66),
        ("GB-s: worker", 429_000, 429_000 * 13.3334e-6),
        ("GB-s: starts, worker", 33_000, 33_000 * 13.3334e-6),
        ("logs in", 15 + 0.99, 7.995),
        ("logs kept", 15.99 / 2, 15.99 / 2 * 0.03),
        ("alarms: dead letters, age, errors, throttles", 4, 0.4),
        ("traces", 165_000, 0.825),
    ],
)
def test_eventbridge_scheduler_is_what_it_is_by_hand(what: str, quantity: float, usd: float):
    assert line(MODEL.eventbridge(WORK), what) == (pytest.approx(quantity), pytest.approx(usd))


@pytest.mark.parametrize(
    ("service", "what", "quantity", "usd"),
    [
        ("Step Functions, standard", "state transitions", 63e6, 1_575.0),
        ("Step Functions, standard", "requests: worker", 33e6, 6.6),
        ("Lambda durable functions", "durable operations", 63e6, 504.0),
        ("Lambda durable functions", "durable: data written", 30.72, 7.68),
        ("Lambda durable functions", "requests: starts of executions", 30e6, 6.0),
        ("Temporal Cloud", "actions", 63e6, 3_150.0),
    ],
)
def test_workflow_services_are_what_they_are_by_hand(service: str, what: str, quantity: float, usd: float):
    assert line(others(MODEL, WORK)[service], what) == (pytest.approx(quantity), pytest.approx(usd))


def test_a_plan_of_temporal_is_a_tenth_of_what_is_used():
    lines = [each for each in others(MODEL, WORK)["Temporal Cloud"].lines if each.service == "Temporal Cloud"]
    used = sum(each.usd for each in lines if not each.what.startswith("the plan"))

    assert sum(each.usd for each in lines) == pytest.approx(1.1 * used)


def test_a_total_is_the_sum_of_its_lines_and_reported_for_a_million():
    bill = MODEL.bill(WORK)

    assert bill.usd == pytest.approx(sum(each.usd for each in bill.lines))
    assert bill.usd_a_million == pytest.approx(bill.usd / 30)
    assert MODEL.bill(replace(WORK, jobs_a_day=0)).usd_a_million is None


def test_they_cost_the_same_where_they_cross():
    crossing = MODEL.crossover(WORK)

    assert crossing is not None
    at = replace(WORK, jobs_a_day=crossing)
    assert MODEL.bill(at).usd == pytest.approx(MODEL.eventbridge(at).usd, rel=0.002)
    assert (
        MODEL.bill(replace(at, jobs_a_day=2 * crossing)).usd
        < MODEL.eventbridge(replace(at, jobs_a_day=2 * crossing)).usd
    )


def test_where_they_never_cross_nothing_is_reported():
    free = replace(MODEL, prices={**MODEL.prices, "eventbridge_schedule": 0.0})
    dear = replace(MODEL, prices={**MODEL.prices, "eventbridge_schedule": 1.0})

    assert free.crossover(WORK) is None
    assert dear.crossover(replace(WORK, schedules=10_000)) == 1.0


def test_a_stage_is_what_it_deploys():
    dev, prod = deployed_of(Stage.named("dev")), deployed_of(Stage.named("prod"))

    assert (dev.shards, prod.shards) == (4, 16)
    assert (dev.log_days, prod.log_days) == (7, 30)
    assert dev.dashboards == dev.secrets == 1
    assert dev.alarm_metrics > dev.composite_alarms > 0
    assert prod.memory["scanner"] == 1_769


def test_what_was_measured_has_every_path():
    measured = read_measured()
    model: Any = model_of(Stage.named("prod"), Assumed())

    assert measured.log_bytes.keys() == {"near", "far", "tick", "request"}
    for delivery in ("exactly_once", "at_least_once", "at_most_once"):
        for keyed_share in (0, 1):
            assert model.bill(replace(WORK, delivery=delivery, keyed_share=keyed_share)).usd > 0


def test_what_the_bill_says_of_the_code_is_what_the_code_does():
    assert timedelta(minutes=1) / WRITTEN_EVERY + MOST_NAMED * timedelta(minutes=1) / NAMED_EVERY == WRITES_OF_PULSE
    assert TALLIED == ENOUGH_JOBS
    assert timedelta(days=DAYS) / PASS_INTERVAL == SWEEPS
    assert INLINE == INLINE_LIMIT
    assert timedelta(seconds=KNOWLEDGE_SECONDS) == KNOWN_FOR
