"""What the same jobs cost as executions of workflow services: arithmetic alone.

Each calls the same function at the same time and takes the state of an execution into its own keeping, so none needs the queue or the
table that EventBridge Scheduler needs. None batches: an invocation for each attempt.
"""

from collections.abc import Mapping
from dataclasses import replace

from bench.cost import GB, Model
from bench.cost_terms import DAYS, Bill, Line, Workload

TRANSITIONS = 2
"""Of an execution that waits and then calls a function, both counted as they are entered; each retry is one more.
https://aws.amazon.com/step-functions/pricing/"""
OPERATIONS = 2
"""Of a durable function that waits and then has a step; each retry is one more. https://aws.amazon.com/lambda/pricing/"""
ACTIONS = 2
"""Of a workflow that is started with a delay and has an activity; each retry is one more.
https://docs.temporal.io/evaluate/cloud/actions"""
TEMPORAL_PLAN = 1.1
"""A Developer plan is a tenth of what is used. https://docs.temporal.io/cloud/pricing"""

HISTORY = 512
"""Bytes of an execution beside its payload: its result, and what the service notes of it. Assumed."""
HISTORY_DAYS = 14
"""How long an execution is kept after its end. Assumed, as long as this scheduler keeps rows."""


def others(model: Model, work: Workload) -> Mapping[str, Bill]:
    """A bill for each service, by its name, in the order of their cost at a job a run."""
    bills = {
        "Lambda durable functions": _durable(model, work),
        "Step Functions, standard": _step_functions(model, work),
        "Temporal Cloud": _temporal(model, work),
    }
    return {name: model.billed(lines, work) for name, lines in bills.items()}


def _step_functions(model: Model, work: Workload) -> list[Line]:
    transitions = TRANSITIONS * work.executions + (work.attempts - work.executions)
    return [
        model.line("Step Functions", "state transitions", transitions, "step_functions_transition"),
        *_one_by_one(model, work),
    ]


def _durable(model: Model, work: Workload) -> list[Line]:
    operations = OPERATIONS * work.executions + (work.attempts - work.executions)
    written = work.executions * (work.payload + HISTORY) / GB
    kept = written / DAYS * (work.wait_days * work.far_share + HISTORY_DAYS)
    return [
        model.line("Lambda", "durable operations", operations, "durable_operation"),
        model.line("Lambda", "durable: data written", written, "durable_written_gb", is_assumed=True),
        model.line("Lambda", "durable: data kept", kept, "durable_kept_gb_month", is_assumed=True),
        model.line("Lambda", "requests: starts of executions", work.executions, "lambda_request"),
        *_one_by_one(model, work),
    ]


def _temporal(model: Model, work: Workload) -> list[Line]:
    actions = ACTIONS * work.executions + (work.attempts - work.executions)
    waiting = work.executions / DAYS * work.wait_days * work.far_share * (work.payload + HISTORY) / GB
    ended = work.executions / DAYS * HISTORY_DAYS * (work.payload + HISTORY) / GB
    lines = [
        model.line("Temporal Cloud", "actions", actions, "temporal_action"),
        model.line("Temporal Cloud", "active storage", waiting, "temporal_active_gb_month", is_assumed=True),
        model.line("Temporal Cloud", "retained storage", ended, "temporal_retained_gb_month", is_assumed=True),
    ]
    used = sum(line.usd for line in lines)
    plan = replace(
        lines[0], what="the plan, a tenth of that", quantity=TEMPORAL_PLAN - 1, usd=used * (TEMPORAL_PLAN - 1)
    )
    # Its workers run for as long as anything may come. They are taken to cost what a function costs that is called.
    return [*lines, plan, *_one_by_one(model, work)]


def _one_by_one(model: Model, work: Workload) -> list[Line]:
    """The function behind it, without batches, and without requests of its own: the service keeps the state."""
    alone = replace(work, delivery="at_least_once")
    logged = work.attempts * (model.measured.other_log_bytes + model.assumed.log_line_of_lambda) / GB
    return [
        *model.batches(work.attempts, each_s=model.batch_s(alone, model.measured.other_worker, 1)),
        model.line("CloudWatch", "logs in", logged, "log_gb", is_assumed=True),
    ]
