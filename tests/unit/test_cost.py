"""The bill of a month: each line against a figure that was worked out by hand."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bench.budgets import Units
from bench.cost import INLINE, KNOWLEDGE_SECONDS, SWEEPS, TALLIED, Model
from bench.cost import PULSE_WRITES as WRITES_OF_PULSE
from bench.cost_eventbridge import RECORD_DAYS, crossover, eventbridge, fill_of
from bench.cost_inputs import deployed_of, model_of, read_measured
from bench.cost_others import others
from bench.cost_terms import DAYS, Assumed, Bill, Deployed, Measured, Processor, Workload
from bench.prices import FreeTier, provisioned, read_free_tiers, read_prices_of_one
from functions.domain.far_ring.timer_record import INLINE_LIMIT
from functions.domain.jobs.claims import MESSAGE_LIFE
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
        together=Units(3, 0.1, 0.3),
        other_log_bytes=400,
        worker=Processor(job_s=0.001, call_s=0.001),
        other_worker=Processor(job_s=0.002, call_s=0.003),
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
    assumed=Assumed(fill=10, batch_s=0.03, rare=0.001),
)
# A million jobs a day, half of them far, a tenth tried again, ten jobs a request.
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

    # a and b all month; c 6 values in 720 hours, d 60, e 30, g 6; the other 63 a thousandth of 60. Some hours have two.
    hours = 720 + 720 + 5.97507 + 57.5682 + 29.3836 + 5.97507 + 63 * 0.0599975
    assert line(MODEL.bill(few), "metrics, by hours with values") == (
        pytest.approx(hours / 720, rel=1e-5),
        pytest.approx(hours / 720 * 0.3, rel=1e-5),
    )
    assert line(MODEL.bill(replace(few, jobs_a_day=0)), "metrics, by hours with values")[0] == pytest.approx(2)
    # 720 fires at any time: f has a value in 1 - 1/e of the hours, and a thousandth of them has one of the others
    with_fires = MODEL.bill(replace(few, jobs_a_day=0, schedules=1, fires_a_schedule_day=24, retries=0))
    assert line(with_fires, "metrics, by hours with values")[0] == pytest.approx(
        2 + 0.632121 + 63 * 0.71964 / 720, rel=1e-5
    )


@pytest.mark.parametrize(("name", "most"), [("small", 2.5), ("dev", 4), ("prod", 15)])
def test_an_idle_stage_stays_within_its_budget(name: str, most: float):
    stage = model_of(Stage.named(name), Assumed())

    assert most / 2 < stage.bill(Workload(jobs_a_day=0)).usd < most


def test_ten_thousand_jobs_a_day_stay_within_their_budget_on_a_small_stage():
    small = model_of(Stage.named("small"), Assumed())
    assert small.bill(Workload(jobs_a_day=10_000, schedules=100)).usd < 5


def test_a_count_of_usage_is_written_for_each_request_and_each_attempt_where_there_are_few():
    few = replace(WORK, jobs_a_day=1_000, schedules=0)

    # 3,000 requests of ten jobs each, and 33,000 attempts
    assert line(MODEL.bill(few), "writes: usage by tenant")[0] == pytest.approx(3_000 + 33_000)


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
    small, dev, scale = (deployed_of(Stage.named(name)) for name in ("small", "dev", "scale"))

    # Of four classes and of dead letters.
    assert (dev.limited_sources, dev.unlimited_sources, dev.pollers) == (5, 0, 0)
    assert (small.limited_sources, small.unlimited_sources, small.pollers) == (0, 5, 0)
    assert (scale.limited_sources, scale.unlimited_sources, scale.pollers) == (1, 0, 320)


def test_a_start_costs_what_its_share_and_its_time_are():
    seldom = replace(MODEL, assumed=Assumed(fill=10, cold=0.001, start_s=0.5))

    assert line(seldom.bill(WORK), "GB-s: starts, worker")[0] == pytest.approx(3.3e6 * 0.001 * 0.5)
    assert line(eventbridge(seldom, WORK), "GB-s: starts, worker")[0] == pytest.approx(3.3e6 * 0.001 * 0.5)


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
    # 24,000 fires a day, whose alarm rows of 819.2 + 100 bytes are kept for three
    assert line(bill, "storage: far rows")[0] == pytest.approx(24_000 * 3 * 919.2 / 1e9)
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


LIKELY = replace(MODEL, assumed=Assumed())


def test_few_messages_come_alone_and_a_fill_can_be_said():
    few = replace(WORK, jobs_a_day=1_000)

    assert line(LIKELY.bill(few), "receives and deletes")[0] == pytest.approx(2 * 33_000)
    filled = replace(MODEL, assumed=Assumed(fill=5))
    assert line(filled.bill(few), "receives and deletes")[0] == pytest.approx(2 * 33_000 / 5)


# With a whole vCPU a job takes 3 ms. 100 million attempts a day are 1,157.41 a second, 20 million 231.48.
WHOLE = replace(
    LIKELY,
    deployed=replace(LIKELY.deployed, memory={**LIKELY.deployed.memory, "worker": 1_769}),
    assumed=Assumed(call_s=0.01, invocation_s=0.01, received_s=0.02, target_s=0.1),
)
MANY = replace(WORK, jobs_a_day=20e6, retries=0)


def test_a_batch_takes_its_calls_its_targets_and_the_processor_time_of_each_of_its_jobs():
    # an invocation and two calls of 10 ms, targets of 100, and 3 ms for each job
    assert WHOLE.batch_s(MANY, WHOLE.measured.worker, 1) == pytest.approx(0.133)
    assert WHOLE.batch_s(MANY, WHOLE.measured.worker, 10) == pytest.approx(0.16)
    # without a ledger no calls, and 1 ms for each job
    at_least_once = replace(MANY, delivery="at_least_once")
    assert WHOLE.batch_s(at_least_once, WHOLE.measured.worker, 10) == pytest.approx(0.12)
    # half a vCPU: twice the processor time
    half = replace(WHOLE, deployed=replace(WHOLE.deployed, memory={"worker": 1_769 / 2}))
    assert half.batch_s(MANY, WHOLE.measured.worker, 10) == pytest.approx(0.19)


def test_a_batch_of_ten_on_prod_takes_73_ms_beside_its_targets_where_boto3_is_used_and_less_here():
    prod = model_of(Stage.named("prod"), Assumed(target_s=0))

    # 15 ms of waits, and ten times 0.7 + 2 * 1.339 ms at 1,024 of 1,769 MB
    assert prod.batch_s(WORK, prod.measured.other_worker, 10) == pytest.approx(0.0734, abs=0.0001)
    assert prod.batch_s(WORK, prod.measured.worker, 10) < 0.05


def test_batches_are_as_full_as_five_pollers_make_them():
    # 231.48 a second / 5 pollers = 46.296 a poller: n = 46.296 * (0.15 + 0.003 n), so n = 6.9444 / (1 - 0.13889)
    assert WHOLE.fill(MANY) == pytest.approx(8.0645, rel=1e-3)
    assert WHOLE.fill(replace(MANY, jobs_a_day=1e6)) == 1
    assert WHOLE.fill(replace(MANY, jobs_a_day=1e9)) == 10


def test_jobs_of_four_classes_are_in_four_queues_whose_batches_are_smaller():
    spread = replace(MANY, class_shares=(0.25, 0.25, 0.25, 0.25))

    # 57.87 a second each / 5 = 11.574: n = 11.574 * (0.15 + 0.003 n), so n = 1.7361 / (1 - 0.034722)
    assert WHOLE.fill(spread) == pytest.approx(1.7986, rel=1e-3)
    assert line(WHOLE.bill(spread), "requests: worker")[0] == pytest.approx(600e6 / 1.7986, rel=1e-3)
    # EventBridge Scheduler has one queue: n = 46.296 * (0.15 + 0.008 n)
    assert fill_of(WHOLE, spread) == fill_of(WHOLE, MANY) == 10
    assert fill_of(WHOLE, replace(MANY, jobs_a_day=5e6)) == pytest.approx(1.7361 / (1 - 0.092593), rel=1e-3)


def test_an_exact_job_costs_the_wait_for_its_instant_which_a_batch_shares():
    exact = replace(WORK, jobs_a_day=1e6 / DAYS, retries=0, exact_share=1)

    def held(fill: float) -> float:
        model = replace(MODEL, assumed=Assumed(fill=fill))
        return line(model.bill(exact), "GB-s: worker, waiting for `exact` jobs")[1]

    # a million jobs, 1.5 s of 1 GB for each batch
    assert held(1) == pytest.approx(20.0, abs=0.001)
    assert held(10) == pytest.approx(2.0, abs=0.001)
    # Of two in a batch, one in ten is exact: 1 - 0.9 * 0.9 of the half million batches wait.
    tenth = replace(MODEL, assumed=Assumed(fill=2)).bill(replace(exact, exact_share=0.1))
    assert line(tenth, "GB-s: worker, waiting for `exact` jobs")[0] == pytest.approx(500_000 * 0.19 * 1.5)
    assert not [each for each in MODEL.bill(WORK).lines if "exact" in each.what]


def test_x_ray_keeps_the_first_trace_of_each_second_and_a_twentieth_of_the_others():
    # 2,592,000 seconds * ln 2 invocations: half of the seconds have one
    half = 2_592_000 * 0.693147
    assert MODEL.traces(half) == pytest.approx(1_296_000 + 0.05 * (half - 1_296_000), rel=1e-5)
    assert MODEL.traces(1_000) == pytest.approx(1_000, rel=1e-3)
    assert MODEL.traces(1e9) == pytest.approx(2_592_000 + 0.05 * (1e9 - 2_592_000), rel=1e-3)


def test_ticks_are_traced_nearly_all_unless_their_functions_only_pass_traces_on():
    idle = Workload(jobs_a_day=0)
    begun = replace(MODEL, deployed=replace(MODEL.deployed, traced=("scanner", "sweeper", "operations", "worker")))

    # ten shards: 1/6 a second, of which 1 - e^(-1/6) are firsts; the two others 1/60 a second
    scanner = 2_592_000 * 0.153518 + 0.05 * (432_000 - 2_592_000 * 0.153518)
    other = 2_592_000 * 0.0165286 + 0.05 * (43_200 - 2_592_000 * 0.0165286)
    quantity, usd = line(begun.bill(idle), "traces")
    assert (quantity, usd) == (
        pytest.approx(scanner + 2 * other, rel=1e-4),
        pytest.approx((scanner + 2 * other) * 5e-6, rel=1e-4),
    )
    passed = replace(MODEL, deployed=replace(MODEL.deployed, traced=("api", "worker")))
    assert not [each for each in passed.bill(idle).lines if each.what == "traces"]


def test_a_stage_that_logs_less_pays_for_less():
    info, warning = read_measured("INFO"), read_measured("WARNING")

    assert warning.log_bytes["near"] < info.log_bytes["near"] / 2
    quiet = replace(Stage.named("prod"), log_level="WARNING")
    assert model_of(quiet, Assumed()).bill(WORK).usd < model_of(Stage.named("prod"), Assumed()).bill(WORK).usd


FREE = [
    FreeTier(name="sqs", of=("sqs_request",), a_month=7e6, page="https://x"),
    FreeTier(name="logs", of=("log_gb", "log_gb_month"), a_month=30, page="https://x"),
    FreeTier(name="scheduler", of=("eventbridge_schedule",), a_month=14e6, page="https://x"),
]


def test_what_aws_gives_each_month_is_taken_off_the_lines_of_its_units_in_their_order():
    free = replace(MODEL, free=FREE)
    left = {each.what: (each.usd_after_free, each.usd) for each in free.bill(WORK).lines}

    # 6 million sends are free, and one million of 6.6 million receives and deletes
    assert left["sends"][0] == 0
    assert left["receives and deletes"][0] == pytest.approx(5.6 * 0.4)
    assert left["both, for their message groups"][0] == left["both, for their message groups"][1]
    # 23.8 GB come in, all of them free, and of 11.9 that are kept as much as is left of 30
    written = (15e6 * 500 + 15e6 * 600 + 518_400 * 900 + 6e6 * 650 + 9_818_400 * 300) / 1e9
    assert left["logs in"][0] == 0
    assert left["logs kept"][0] == pytest.approx((written / 2 - (30 - written)) * 0.03)
    assert free.bill(WORK).usd == MODEL.bill(WORK).usd
    assert free.bill(WORK).usd_after_free == pytest.approx(sum(after for after, _ in left.values()))


def test_14_million_invocations_of_eventbridge_scheduler_are_free():
    (invocations,) = [each for each in eventbridge(replace(MODEL, free=FREE), WORK).lines if each.what == "invocations"]

    assert (invocations.usd, invocations.usd_after_free) == (pytest.approx(30), pytest.approx(16))


def test_each_free_tier_is_of_a_priced_unit_and_has_its_page():
    tiers, prices = read_free_tiers(), read_prices_of_one()

    units = [unit for tier in tiers for unit in tier.of]
    assert len(units) == len(set(units))
    assert set(units) <= prices.keys()
    assert all(tier.page.startswith("https://aws.amazon.com/") and tier.a_month > 0 for tier in tiers)


def test_a_dashboard_of_more_than_50_metrics_is_in_no_free_tier():
    small = replace(MODEL, free=read_free_tiers(), deployed=replace(MODEL.deployed, metrics_of_a_dashboard=50))
    large = replace(small, deployed=replace(small.deployed, metrics_of_a_dashboard=51))

    def dashboard(model: Model) -> tuple[float, float]:
        (found,) = [each for each in model.bill(WORK).lines if each.what == "dashboard"]
        return found.usd, found.usd_after_free

    assert dashboard(small) == (3, 0)
    assert dashboard(large) == (3, 3)


def test_a_unit_of_provisioned_capacity_costs_its_hour_by_what_is_used_of_it():
    prices = provisioned(read_prices_of_one(), used=0.7)

    # 0.00065 USD an hour of 3,600 seconds, of which 0.7 are used
    assert prices["dynamodb_write_unit"] * 1e6 == pytest.approx(0.258, abs=0.0005)
    assert prices["dynamodb_read_unit"] * 1e6 == pytest.approx(0.0516, abs=0.0005)
    assert provisioned(prices, used=1)["dynamodb_write_unit"] * 1e6 == pytest.approx(0.1806, abs=0.0005)


def test_shares_of_classes_must_be_a_whole():
    with pytest.raises(ValueError, match=r"add up to 0\.9"):
        Workload(jobs_a_day=1, class_shares=(0.4, 0.5, 0, 0))


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
        # a million a day for 14 days, of 300 + 100 bytes
        ("storage of them", 5.6, 1.4),
        ("their point-in-time recovery", 5.6, 1.12),
        ("reads: look-ups", 3e6, 0.375),
        ("requests: worker", 3.3e6, 0.66),
        ("GB-s: worker", 429_000, 429_000 * 13.3334e-6),
        ("GB-s: starts, worker", 33_000, 33_000 * 13.3334e-6),
        # 30 million lines of 400 bytes, and 3.3 million invocations of 300
        ("logs in", 12 + 0.99, 6.495),
        ("logs kept", 12.99 / 2, 12.99 / 2 * 0.03),
        ("alarms: dead letters, age, errors, throttles", 4, 0.4),
    ],
)
def test_eventbridge_scheduler_is_what_it_is_by_hand(what: str, quantity: float, usd: float):
    assert line(eventbridge(MODEL, WORK), what) == (pytest.approx(quantity), pytest.approx(usd))


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
    crossing = crossover(MODEL, WORK)

    assert crossing is not None
    at = replace(WORK, jobs_a_day=crossing)
    assert MODEL.bill(at).usd == pytest.approx(eventbridge(MODEL, at).usd, rel=0.002)
    assert (
        MODEL.bill(replace(at, jobs_a_day=2 * crossing)).usd
        < eventbridge(MODEL, replace(at, jobs_a_day=2 * crossing)).usd
    )


def test_the_crossing_moves_with_how_full_batches_are():
    by_fill = [crossover(replace(MODEL, assumed=Assumed(fill=fill)), WORK) or 1e12 for fill in (1, 5, 10)]

    assert by_fill[0] > by_fill[1] > by_fill[2]


def test_the_crossing_is_further_where_14_million_invocations_are_free():
    free = replace(MODEL, free=FREE)
    without, after = crossover(free, WORK), crossover(free, WORK, of=lambda bill: bill.usd_after_free)

    assert without is not None
    assert after is not None
    assert after > without


def test_a_record_of_eventbridge_scheduler_outlives_every_copy_of_its_message():
    assert timedelta(days=RECORD_DAYS) == MESSAGE_LIFE


def test_where_they_never_cross_nothing_is_reported():
    free = replace(MODEL, prices={**MODEL.prices, "eventbridge_schedule": 0.0})
    dear = replace(MODEL, prices={**MODEL.prices, "eventbridge_schedule": 1.0})

    assert crossover(free, WORK) is None
    assert crossover(dear, replace(WORK, schedules=10_000)) == 1.0


def test_a_stage_is_what_it_deploys():
    dev, prod = deployed_of(Stage.named("dev")), deployed_of(Stage.named("prod"))

    assert (dev.shards, prod.shards) == (4, 16)
    assert (dev.log_days, prod.log_days) == (7, 30)
    assert (dev.dashboards, prod.dashboards) == (0, 1)
    assert prod.alarm_metrics > prod.composite_alarms > dev.composite_alarms == 0
    assert (dev.alarm_metrics, dev.metrics, prod.metrics) == (13, 4, 144)
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
