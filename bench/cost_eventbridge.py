"""What the same jobs cost by EventBridge Scheduler, with what gives it the same guarantees: arithmetic alone.

A schedule for each job and each fire. Its target is a queue with a dead-letter queue, because direct invocations are retried
without a limit of concurrency; a worker of the same size takes batches from it, and is written with Powertools: an
idempotency table, a line of log an execution, boto3.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from bench.cost import DAYS, GB, LEDGER_CALLS, POLLS, SECONDS, STORED_OVERHEAD, UNLIMITED_POLLERS, Model
from bench.cost_fill import Source, likely_fill
from bench.cost_terms import Bill, Line, Workload

RECORD_DAYS = 14
"""How long an idempotency record is kept: as long as a queue and its dead-letter queue may bring its message again.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-quotas.html"""

RECORD_WRITES = 2
"""Powertools puts a record and completes it. https://docs.powertools.aws.dev/lambda/python/latest/utilities/idempotency/"""

ALARMS = 4
"""On dead letters, age, errors and throttles."""

_MOST = 1e9
_STEP = 10**0.2
_CLOSE = 1.001


def eventbridge(model: Model, work: Workload) -> Bill:
    """A month of it."""
    fill = fill_of(model, work)
    batches = work.attempts / fill
    is_recorded = LEDGER_CALLS[work.delivery] > 0
    writes = RECORD_WRITES * work.attempts if is_recorded else 0
    row = model.assumed.ledger_row + STORED_OVERHEAD
    stored = work.executions / DAYS * RECORD_DAYS * row / GB if is_recorded else 0
    logged = work.executions * model.measured.other_log_bytes + batches * model.assumed.log_line_of_lambda
    lines: list[Line] = [
        model.line("EventBridge Scheduler", "invocations", work.executions, "eventbridge_schedule"),
        model.line("SQS", "sends, one message each", work.executions, "sqs_request"),
        model.line("SQS", "receives and deletes", 2 * batches, "sqs_request", is_assumed=True),
        model.line("SQS", "receives of nothing", UNLIMITED_POLLERS * POLLS, "sqs_request", is_assumed=True),
        model.line("DynamoDB", "writes: an idempotency record put and completed", writes, "dynamodb_write_unit"),
        model.line("DynamoDB", "storage of them", stored, "dynamodb_gb_month", is_assumed=True),
        model.line("DynamoDB", "their point-in-time recovery", stored, "dynamodb_pitr_gb_month", is_assumed=True),
        model.line("DynamoDB", "reads: look-ups", work.look_ups * work.jobs, "dynamodb_read_unit"),
        *model.batches(batches, each_s=model.batch_s(_recorded(work), model.measured.other_worker, fill)),
        *model.logs(logged),
        model.line(
            "CloudWatch", "alarms: dead letters, age, errors, throttles", ALARMS, "alarm_metric", is_assumed=True
        ),
        model.line("X-Ray", "traces", model.traces(batches), "xray_trace", is_assumed=True),
    ]
    return model.billed(lines, work)


def fill_of(model: Model, work: Workload) -> float:
    """Messages of a batch of its one queue."""
    a_second = work.attempts / SECONDS
    if model.assumed.fill is not None or not a_second:
        return model.assumed.fill or 1.0
    punctual = replace(_recorded(work), exact_share=0)
    return likely_fill(
        a_second,
        source=Source.of(0),
        seconds_of=lambda fill: model.kept_s(punctual, model.measured.other_worker, fill),
    )


def crossover(model: Model, work: Workload, *, of: Callable[[Bill], float] = lambda bill: bill.usd) -> float | None:
    """The jobs a day from which on Tickwheel costs less; None where it never does, below a thousand million.

    of: what of a bill is compared. Where they cross more than once, the last time.
    """

    def is_dearer(jobs_a_day: float) -> bool:
        changed = replace(work, jobs_a_day=jobs_a_day)
        return of(model.bill(changed)) > of(eventbridge(model, changed))

    high = _MOST
    if is_dearer(high):
        return None
    # From above: below the last crossing nothing has to be known.
    while not is_dearer(low := high / _STEP):
        high = low
        if high <= 1:
            return 1.0
    while high / low > _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_dearer(middle) else (low, middle)
    return high


def _recorded(work: Workload) -> Workload:
    """The same, as its worker sees it: a record put and completed, or none."""
    return work if work.delivery == "at_least_once" else replace(work, delivery="exactly_once")
